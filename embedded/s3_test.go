package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// s3Client acts with the keys of one account. It tries each request once: a test
// wants to see the first answer.
func s3Client(server *S3, access, secret string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint:     aws.String(server.Endpoint()),
		Region:           server.Region(),
		UsePathStyle:     true,
		Credentials:      credentials.NewStaticCredentialsProvider(access, secret, ""),
		RetryMaxAttempts: 1,
	})
}

// s3Admin calls versitygw's admin API as root: PATCH with an XML body, signed as
// a request to S3 is. The answer is its body.
func s3Admin(ctx context.Context, server *S3, call string, body any) ([]byte, error) {
	text := []byte{}
	if body != nil {
		var err error
		if text, err = xml.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, server.Endpoint()+"/"+call, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	access, secret := server.Root()
	keys := aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hash, "s3", server.Region(), time.Now()); err != nil {
		return nil, err
	}
	resp, err := oneShot().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s: %s", call, resp.Status, answer)
	}
	return answer, nil
}

// s3Account is the body of create-user.
type s3Account struct {
	XMLName xml.Name `xml:"Account"`
	Access  string
	Secret  string
	Role    string
}

func s3Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

func put(ctx context.Context, c *s3.Client, bucket, key, text string) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)})
	return err
}

func get(t *testing.T, c *s3.Client, bucket, key string) string {
	t.Helper()
	out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func startS3(t *testing.T, o S3Options) *S3 {
	t.Helper()
	server, err := StartS3(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestS3(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers, which may have to be built")
	}
	ctx, dir := t.Context(), t.TempDir()
	server := startS3(t, S3Options{Dir: dir, Region: "eu-test-1"})
	access, secret := server.Root()
	root := s3Client(server, access, secret)
	if _, err := root.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("ours")}); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, root, "ours", "a", "one"); err != nil {
		t.Fatal(err)
	}

	// An account sees the bucket once a policy lets it in, and with its own key.
	if _, err := s3Admin(ctx, server, "create-user", s3Account{Access: "alice", Secret: "alice-secret", Role: "user"}); err != nil {
		t.Fatal(err)
	}
	users, err := s3Admin(ctx, server, "list-users", nil)
	if err != nil || !strings.Contains(string(users), "alice") {
		t.Fatalf("list-users: %s, %v", users, err)
	}
	alice := s3Client(server, "alice", "alice-secret")
	if code := s3Code(put(ctx, alice, "ours", "b", "two")); code != "AccessDenied" {
		t.Errorf("put without a policy: %s", code)
	}
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["alice"]},
		"Action":["s3:GetObject","s3:PutObject"],"Resource":["arn:aws:s3:::ours/*"]}]}`
	if _, err := root.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: aws.String("ours"), Policy: &policy}); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, alice, "ours", "b", "two"); err != nil {
		t.Errorf("put with a policy: %v", err)
	}
	if code := s3Code(put(ctx, s3Client(server, "alice", "guessed"), "ours", "b", "two")); code != "SignatureDoesNotMatch" {
		t.Errorf("put with a wrong secret: %s", code)
	}

	// Killed and started again, it has the same data on the same port.
	if err := server.Process().Kill(); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, root, "ours", "c", "three"); err == nil {
		t.Error("a killed server answers")
	}
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if text := get(t, alice, "ours", "b"); text != "two" {
		t.Errorf("after a kill: %q", text)
	}

	// Paused, it accepts and answers nothing.
	if err := server.Process().Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := put(short, root, "ours", "d", "four"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused server: %v", err)
	}
	if err := server.Process().Resume(); err != nil {
		t.Fatal(err)
	}
	if text := get(t, root, "ours", "a"); text != "one" {
		t.Errorf("after a pause: %q", text)
	}

	// Stopped and started anew, it keeps port, root keys and accounts; a deleted
	// account is refused at once.
	endpoint := server.Endpoint()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server = startS3(t, S3Options{Dir: dir, Region: "eu-test-1"})
	if again, _ := server.Root(); server.Endpoint() != endpoint || again != access {
		t.Errorf("second start at %s, root %s; first at %s, %s", server.Endpoint(), again, endpoint, access)
	}
	if text := get(t, alice, "ours", "b"); text != "two" {
		t.Errorf("after a second start: %q", text)
	}
	if _, err := s3Admin(ctx, server, "delete-user?access=alice", nil); err != nil {
		t.Fatal(err)
	}
	if code := s3Code(put(ctx, alice, "ours", "b", "two")); code != "InvalidAccessKeyId" {
		t.Errorf("put of a deleted account: %s", code)
	}

	// Who else wants the folder or the port is told so.
	_, err = StartS3(ctx, S3Options{Dir: dir})
	wantText(t, err, dir, "in use by process")
	_, err = StartS3(ctx, S3Options{Port: server.state.Port})
	wantText(t, err, fmt.Sprint("port ", server.state.Port), "--s3-port", "versitygw)")
	_, err = StartS3(ctx, S3Options{AccessKey: "half"})
	wantText(t, err, "AccessKey and SecretKey")
}
