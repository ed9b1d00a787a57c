package s3_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/embedded"
)

// rig is a real S3 server and a driver of it, served over a socket.
type rig struct {
	*testing.T
	server *embedded.S3
	root   *awss3.Client
	wire.Driver
	backend *s3.Backend
}

func newRig(t *testing.T, change ...func(*s3.Options)) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real S3 server, which may have to be built")
	}
	server, err := embedded.StartS3(t.Context(), embedded.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Its orderly end waits for clients that keep connections, and nothing here is to be kept.
		if err := errors.Join(server.Process().Kill(), server.Stop()); err != nil {
			t.Error(err)
		}
	})
	access, secret := server.Root()
	r := &rig{T: t, server: server, root: client(server, access, secret)}
	r.backend, r.Driver = r.driver(change...)
	return r
}

// driver starts one more driver of the same server and dials it.
func (r *rig) driver(change ...func(*s3.Options)) (*s3.Backend, wire.Driver) {
	r.Helper()
	access, secret := r.server.Root()
	o := s3.Options{Endpoint: r.server.Endpoint(), Region: r.server.Region(), AccessKey: access, SecretKey: wire.Secret(secret), Owner: "cluster-1"}
	for _, c := range change {
		c(&o)
	}
	b, err := s3.New(o)
	if err != nil {
		r.Fatal(err)
	}
	d, err := driver.New(b, o.Kit)
	if err != nil {
		r.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "s3driver") // t.TempDir may be longer than a socket's path can be
	if err != nil {
		r.Fatal(err)
	}
	endpoint := "unix://" + filepath.Join(dir, "cosi.sock")
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- driver.Run(ctx, d, driver.ServeOptions{Endpoint: endpoint, Services: o.Serve.Services, Ready: func() { close(ready) }})
	}()
	r.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		r.Fatal("the driver does not serve")
	}
	c, err := wire.Dial(deadline(r.T), endpoint, wire.Options{})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	return b, c
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func client(server *embedded.S3, access, secret string) *awss3.Client {
	return awss3.New(awss3.Options{
		BaseEndpoint: aws.String(server.Endpoint()),
		Region:       server.Region(),
		Credentials:  credentials.NewStaticCredentialsProvider(access, secret, ""),
		UsePathStyle: true,
		Retryer:      aws.NopRetryer{},
	})
}

// as is a client with the credentials of a grant.
func (r *rig) as(g wire.Grant) *awss3.Client {
	r.Helper()
	c := g.Credentials.S3
	if c == nil {
		r.Fatalf("the grant has no S3 credentials: %+v", g)
	}
	return client(r.server, c.AccessKeyID.Reveal(), c.AccessSecretKey.Reveal())
}

func (r *rig) create(name string) wire.Bucket {
	r.Helper()
	b, err := r.CreateBucket(deadline(r.T), wire.BucketRequest{Name: name, Protocols: []wire.Protocol{wire.S3}})
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func access(name string, buckets ...wire.AccessedBucket) wire.GrantRequest {
	return wire.GrantRequest{Name: name, Protocol: wire.S3, Authentication: wire.Key, Buckets: buckets}
}

func (r *rig) grant(name string, buckets ...wire.AccessedBucket) wire.Grant {
	r.Helper()
	g, err := r.GrantAccess(deadline(r.T), access(name, buckets...))
	if err != nil {
		r.Fatal(err)
	}
	return g
}

func (r *rig) code(what string, err error, want codes.Code) {
	r.Helper()
	if wire.Code(err) != want {
		r.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// buckets are those that the server has.
func (r *rig) buckets() string {
	r.Helper()
	got, err := r.root.ListBuckets(deadline(r.T), &awss3.ListBucketsInput{})
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, b := range got.Buckets {
		names = append(names, aws.ToString(b.Name))
	}
	return strings.Join(names, " ")
}

// policy is the bucket's policy, empty for none.
func (r *rig) policy(bucket string) string {
	r.Helper()
	got, err := r.root.GetBucketPolicy(deadline(r.T), &awss3.GetBucketPolicyInput{Bucket: &bucket})
	if s3Code(err) == "NoSuchBucketPolicy" {
		return ""
	}
	if err != nil {
		r.Fatal(err)
	}
	return aws.ToString(got.Policy)
}

func s3Code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}

func put(c *awss3.Client, bucket, key string) error {
	_, err := c.PutObject(context.Background(), &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("text of " + key)})
	return err
}

func get(c *awss3.Client, bucket, key string) error {
	out, err := c.GetObject(context.Background(), &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return err
	}
	defer func() { _ = out.Body.Close() }()
	text, err := io.ReadAll(out.Body)
	if err == nil && string(text) != "text of "+key {
		err = fmt.Errorf("got %q", text)
	}
	return err
}

func list(c *awss3.Client, bucket string) error {
	_, err := c.ListObjectsV2(context.Background(), &awss3.ListObjectsV2Input{Bucket: &bucket})
	return err
}

func remove(c *awss3.Client, bucket, key string) error {
	_, err := c.DeleteObject(context.Background(), &awss3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	return err
}

func multipart(c *awss3.Client, bucket, key string) error {
	ctx := context.Background()
	up, err := c.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return err
	}
	if _, err := c.UploadPart(ctx, &awss3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: up.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("x")}); err != nil {
		return err
	}
	_, err = c.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: up.UploadId})
	return err
}
