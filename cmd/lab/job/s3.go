package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	core "k8s.io/api/core/v1"

	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
)

// bucketUser acts on buckets with one account's credentials.
type bucketUser struct {
	who    string
	bucket string // that the credentials came for; "" for the administrator
	s3     *s3.Client
}

func newUser(who, bucket, endpoint, region, access, secret string) bucketUser {
	return bucketUser{who, bucket, s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint), Region: region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""),
		Retryer:     aws.NopRetryer{}, // the first answer is the one to see
	})}
}

// newRoot acts as the administrator of the S3 server.
func newRoot(server *embedded.S3) bucketUser {
	access, secret := server.Root()
	return newUser("administrator", "", server.Endpoint(), server.Region(), access, secret)
}

// userOf acts with what a Secret says, as any S3 tool would read it.
func userOf(secret *core.Secret) (bucketUser, error) {
	field := func(key string) string { return string(secret.Data[key]) }
	for _, key := range []string{cosi.ClientKeyBucketName, cosi.ClientKeyS3Endpoint, cosi.ClientKeyS3Region, cosi.ClientKeyS3AccessKeyID, cosi.ClientKeyS3AccessSecretKey} {
		if field(key) == "" {
			return bucketUser{}, fmt.Errorf("the Secret %s has no %s", secret.Name, key)
		}
	}
	return newUser(secret.Name, field(cosi.ClientKeyBucketName), field(cosi.ClientKeyS3Endpoint), field(cosi.ClientKeyS3Region),
		field(cosi.ClientKeyS3AccessKeyID), field(cosi.ClientKeyS3AccessSecretKey)), nil
}

func (u bucketUser) put(ctx context.Context, bucket, key, text string) error {
	_, err := u.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)})
	return u.named(err, "put %s into %s", key, bucket)
}

func (u bucketUser) get(ctx context.Context, bucket, key string) (string, error) {
	out, err := u.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return "", u.named(err, "get %s from %s", key, bucket)
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	return string(text), u.named(err, "read %s of %s", key, bucket)
}

func (u bucketUser) list(ctx context.Context, bucket string) (keys []string, err error) {
	out, err := u.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		return nil, u.named(err, "list %s", bucket)
	}
	for _, o := range out.Contents {
		keys = append(keys, aws.ToString(o.Key))
	}
	return keys, nil
}

// empty deletes all objects of a bucket.
func (u bucketUser) empty(ctx context.Context, bucket string) error {
	keys, err := u.list(ctx, bucket)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := u.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
			return u.named(err, "delete %s of %s", key, bucket)
		}
	}
	return nil
}

func (u bucketUser) make(ctx context.Context, bucket string) error {
	_, err := u.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
	return u.named(err, "make %s", bucket)
}

// exists tells whether a bucket is there.
func (u bucketUser) exists(ctx context.Context, bucket string) (bool, error) {
	_, err := u.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
	switch code(err) {
	case "":
		return true, nil
	case "NotFound", "NoSuchBucket":
		return false, nil
	}
	return false, u.named(err, "look for %s", bucket)
}

func (u bucketUser) named(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", u.who, fmt.Sprintf(what, args...), err)
}

// code is S3's word for an error; "" for none.
func code(err error) string {
	if err == nil {
		return ""
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return err.Error()
}

// refused is nil if the server has refused something for want of the right to it.
func refused(what string, err error) error {
	switch code(err) {
	case "AccessDenied", "InvalidAccessKeyId", "Forbidden":
		return nil
	case "":
		return fmt.Errorf("%s was not refused", what)
	}
	return fmt.Errorf("%s: a refusal was expected: %w", what, err)
}
