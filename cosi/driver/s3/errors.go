package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// S3 and admin error codes that mean something to this driver.
const (
	errNoSuchBucket       = "NoSuchBucket"
	errNotFound           = "NotFound" // HEAD has no body to say which
	errBucketExists       = "BucketAlreadyExists"
	errBucketOwnedByYou   = "BucketAlreadyOwnedByYou"
	errBucketNotEmpty     = "BucketNotEmpty"
	errVersionsNotEmpty   = "VersionedBucketNotEmpty"
	errNoTags             = "NoSuchTagSet"
	errNoPolicy           = "NoSuchBucketPolicy"
	errNoOwnershipRule    = "OwnershipControlsNotFoundError"
	errMalformedPolicy    = "MalformedPolicy"
	errInvalidBucketName  = "InvalidBucketName"
	errTooManyBuckets     = "TooManyBuckets"
	errInvalidAccessKeyID = "InvalidAccessKeyId"
	errSignature          = "SignatureDoesNotMatch"
	errUserExists         = "XAdminUserExists"
	errUserNotFound       = "XAdminUserNotFound"
)

// answered is the server's error code, empty if it did not answer.
func answered(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// httpStatus is the status of the server's answer, 0 if there was none.
func httpStatus(err error) int {
	var a *adminError
	if errors.As(err, &a) {
		return a.status
	}
	var r *smithyhttp.ResponseError
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}

// failed makes a status error of a failed request: what was tried on what, what the server answered. Which
// code it has decides whether the kit takes the call for answered (see package driver).
func failed(err error, what, subject string) error {
	if err == nil {
		return nil
	}
	code, hint := codes.Unavailable, ""
	httpCode := httpStatus(err)
	var dial *net.OpError
	switch c := answered(err); {
	case c == errNoSuchBucket, c == errNotFound, c == errUserNotFound:
		code = codes.NotFound
	case c == errInvalidAccessKeyID, c == errSignature:
		code, hint = codes.Unauthenticated, "; see the keys that the driver was given"
	case httpCode == http.StatusForbidden:
		code, hint = codes.PermissionDenied, "; the driver's account needs the role admin"
	case c == errInvalidBucketName:
		code = codes.InvalidArgument
	case c == errTooManyBuckets:
		code = codes.ResourceExhausted
	case httpCode >= 400 && httpCode < 500 && httpCode != http.StatusRequestTimeout && httpCode != http.StatusTooManyRequests:
		code = codes.FailedPrecondition
	case errors.As(err, &dial) && dial.Op == "dial":
		// Nothing was sent, so nothing can land: an answer of a kind, and one to try again after.
		code, hint = codes.Aborted, "; the S3 server cannot be reached, nothing was sent"
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Errorf(code, "%s %q: %s%s", what, subject, plain(err), hint)
}

// plain is an error's text without the SDK's wrapping, which names request ids and itself.
func plain(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return fmt.Sprintf("the S3 server answered %s: %s", api.ErrorCode(), api.ErrorMessage())
	}
	return err.Error()
}
