package v1alpha2

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectProtocol is a protocol by which clients talk to an object store.
// +kubebuilder:validation:Enum=S3;Azure;GCS
type ObjectProtocol string

// The protocols that COSI knows.
const (
	ProtocolS3    ObjectProtocol = "S3"
	ProtocolAzure ObjectProtocol = "Azure"
	ProtocolGCS   ObjectProtocol = "GCS"
)

// DeletionPolicy says what becomes of a Bucket when its BucketClaim is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionPolicyRetain keeps the Bucket object and the backend bucket.
	DeletionPolicyRetain DeletionPolicy = "Retain"
	// DeletionPolicyDelete deletes both.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// AccessMode says what an access may do with the objects of one bucket.
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly;WriteOnly
type AccessMode string

// The access modes.
const (
	AccessModeReadWrite AccessMode = "ReadWrite"
	AccessModeReadOnly  AccessMode = "ReadOnly"
	AccessModeWriteOnly AccessMode = "WriteOnly"
)

// AuthenticationType says how clients prove who they are to the object store.
// +kubebuilder:validation:Enum=Key;ServiceAccount
type AuthenticationType string

const (
	// AuthenticationTypeKey: the driver makes an access key, which is put into a
	// Secret.
	AuthenticationTypeKey AuthenticationType = "Key"
	// AuthenticationTypeServiceAccount: Pods that run under the ServiceAccount of
	// the access are let in by the backend; the Secret holds no credentials.
	AuthenticationTypeServiceAccount AuthenticationType = "ServiceAccount"
)

// MultiBucketAccess says whether one access may name several buckets.
// +kubebuilder:validation:Enum=SingleBucket;MultipleBuckets
type MultiBucketAccess string

// The two values. An absent one means SingleBucket.
const (
	MultiBucketAccessSingle   MultiBucketAccess = "SingleBucket"
	MultiBucketAccessMultiple MultiBucketAccess = "MultipleBuckets"
)

// TimestampedError is the last thing that went wrong with an object, or what it
// waits for. It is cleared once the object is ready.
type TimestampedError struct {
	// time is when the error was met.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// message says what was tried, what answered and what to do next. It is
	// logged, so it never holds secrets.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1572864
	Message *string `json:"message,omitempty"`
}

// NewError makes the value for status.error: the reason, one CamelCase word that
// programs may compare, then a colon and the text for people. The API has no field
// of its own for the reason. A text that is longer than the API takes is cut.
func NewError(at time.Time, reason, text string) *TimestampedError {
	message := reason + ": " + text
	if len(message) > MaxErrorMessage {
		message = strings.ToValidUTF8(message[:MaxErrorMessage], "")
	}
	stamp := metav1.NewTime(at)
	return &TimestampedError{Time: &stamp, Message: &message}
}

// Reason is the leading word of an error that NewError made, else the empty
// string. It may be called on nil.
func (e *TimestampedError) Reason() string {
	if e == nil || e.Message == nil {
		return ""
	}
	reason, _, found := strings.Cut(*e.Message, ": ")
	if !found || strings.ContainsAny(reason, " \t\n") {
		return ""
	}
	return reason
}

// Text is the message of an error without its reason. It may be called on nil.
func (e *TimestampedError) Text() string {
	if e == nil || e.Message == nil {
		return ""
	}
	if reason := e.Reason(); reason != "" {
		return strings.TrimPrefix(*e.Message, reason+": ")
	}
	return *e.Message
}

// CheckID tells whether the API server will take an id that a driver answered, in
// status.bucketID, status.accountID and spec.existingBucketID: 1 to 2048 of the
// letters a-z and A-Z, digits and / . _ -. The error names what is wrong. An id
// that fails here is still an id: it stays in the Intent, and what it names is
// deleted by it.
func CheckID(id string) error {
	if id == "" {
		return fmt.Errorf("the id is empty; COSI asks for 1 to %d characters", MaxIDLength)
	}
	if len(id) > MaxIDLength {
		return fmt.Errorf("the id has %d characters; COSI takes at most %d", len(id), MaxIDLength)
	}
	for at, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("/._-", r):
		default:
			return fmt.Errorf("the id has %q at position %d; COSI takes letters, digits and / . _ - only", r, at)
		}
	}
	return nil
}
