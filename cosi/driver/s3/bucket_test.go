package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/cosi/wire"
)

// admin calls the server's admin API as a person with root's keys would.
func (r *rig) admin(call, query, body string) {
	r.Helper()
	req, err := http.NewRequest(http.MethodPatch, r.server.Endpoint()+"/"+call+"?"+query, bytes.NewReader([]byte(body)))
	if err != nil {
		r.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	access, secret := r.server.Root()
	if err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}, req, hash, "s3", r.server.Region(), time.Now()); err != nil {
		r.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 {
		r.Fatalf("%s: %s: %s", call, resp.Status, text)
	}
}

func TestBucketLife(t *testing.T) {
	r := newRig(t, func(o *s3.Options) { o.PublicEndpoint = "http://s3.example:7070" })
	ctx := deadline(t)
	want := wire.S3Bucket{BucketID: "bc-1", Endpoint: "http://s3.example:7070", Region: r.server.Region(), AddressingStyle: wire.PathStyle}
	for range 3 { // idempotent
		if b := r.create("bc-1"); b.ID != "bc-1" || *b.Info.S3 != want {
			t.Errorf("create: %+v", b)
		}
	}
	b, err := r.GetBucket(ctx, wire.GetBucketRequest{ID: "bc-1"})
	if err != nil || *b.Info.S3 != want {
		t.Errorf("get: %+v, %v", b, err)
	}
	r.code("get what is not", second(r.GetBucket(ctx, wire.GetBucketRequest{ID: "bc-9"})), codes.NotFound)
	r.code("a name that S3 refuses", second(r.CreateBucket(ctx, wire.BucketRequest{Name: "ab"})), codes.InvalidArgument)
	r.code("a parameter", second(r.CreateBucket(ctx, wire.BucketRequest{Name: "bc-2", Parameters: map[string]string{"a": "b"}})), codes.InvalidArgument)

	if err := put(r.root, "bc-1", "a"); err != nil {
		t.Fatal(err)
	}
	err = r.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "bc-1"})
	r.code("delete a bucket with objects", err, codes.FailedPrecondition)
	if !strings.Contains(wire.Message(err), "holds objects") {
		t.Errorf("message %q", wire.Message(err))
	}
	r.code("the same by name", r.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-1"}), codes.FailedPrecondition)
	if err := get(r.root, "bc-1", "a"); err != nil {
		t.Errorf("the object is gone: %v", err)
	}
	if err := remove(r.root, "bc-1", "a"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.code("delete", r.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "bc-1"}), codes.OK)
		r.code("delete by name", r.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-1"}), codes.OK)
	}
	if got := r.buckets(); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestForeignBucketIsLeftAlone(t *testing.T) {
	r := newRig(t)
	ctx := deadline(t)
	if _, err := r.root.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String("bc-1")}); err != nil {
		t.Fatal(err)
	}
	_, d2 := r.driver(func(o *s3.Options) { o.Owner = "cluster-2" })
	if _, err := d2.CreateBucket(ctx, wire.BucketRequest{Name: "bc-2"}); err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]string{"bc-1": "", "bc-2": "owner cluster-2"} {
		b, err := r.CreateBucket(ctx, wire.BucketRequest{Name: name})
		r.code("create "+name, err, codes.AlreadyExists)
		if b.ID != "" {
			t.Errorf("%s was adopted: %+v", name, b)
		}
		r.code("delete by name "+name, r.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: name}), codes.OK)
		items, err := r.FindByName(ctx, wire.KindBucket, wire.NameRequest{Name: name})
		if err != nil || len(items) != 1 || items[0] != (wire.Item{ID: name, Name: name, Owner: owner}) || items[0].MadeFor(name) {
			t.Errorf("find: %+v, %v", items, err)
		}
	}
	r.code("delete another cluster's by id", r.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "bc-2"}), codes.FailedPrecondition)
	if got := r.buckets(); got != "bc-1 bc-2" {
		t.Errorf("buckets: %s", got)
	}
	// An administrator may name a foreign bucket by its id: to use it, and to have it deleted.
	r.code("get by id", second(r.GetBucket(ctx, wire.GetBucketRequest{ID: "bc-1"})), codes.OK)
	r.code("delete by id", r.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "bc-1"}), codes.OK)
	// Control: the owner may.
	r.code("delete by its owner", d2.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-2"}), codes.OK)
	if got := r.buckets(); got != "" {
		t.Errorf("left: %s", got)
	}
}

// The server was killed while it made the bucket: a folder without anything. The retry heals it.
func TestHalfMadeBucket(t *testing.T) {
	r := newRig(t)
	ctx := deadline(t)
	half := func(name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(r.server.Dir(), "buckets", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	half("bc-1")
	if _, err := r.root.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String("bc-1")}); err == nil {
		t.Fatal("the control failed: the server makes a half-made bucket by itself")
	}
	r.create("bc-1")
	items, err := r.FindByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-1"})
	if err != nil || len(items) != 1 || !items[0].MadeFor("bc-1") {
		t.Errorf("find: %+v, %v", items, err)
	}
	g := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	if err := put(r.as(g), "bc-1", "a"); err != nil {
		t.Errorf("the healed bucket cannot be used: %v", err)
	}
	half("bc-2")
	r.code("delete by name", r.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-2"}), codes.OK)
	half("bc-3")
	r.code("delete by id", r.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "bc-3"}), codes.OK)
	// A folder with something in it is somebody's.
	half("bc-4")
	if err := os.WriteFile(filepath.Join(r.server.Dir(), "buckets", "bc-4", "data"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.code("create over a used folder", second(r.CreateBucket(ctx, wire.BucketRequest{Name: "bc-4"})), codes.AlreadyExists)
	r.code("delete it by name", r.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-4"}), codes.OK)
	if got := r.buckets(); got != "bc-1 bc-4" {
		t.Errorf("buckets: %s", got)
	}
}

func TestDeleteAccountByName(t *testing.T) {
	r := newRig(t)
	ctx := deadline(t)
	r.create("bc-1")
	r.create("bc-2")
	r.create("bc-3")
	g := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}, wire.AccessedBucket{ID: "bc-3", Mode: wire.ReadOnly})
	r.grant("ba-2", wire.AccessedBucket{ID: "bc-3", Mode: wire.ReadOnly})
	for range 2 {
		r.code("delete by name", r.DeleteByName(ctx, wire.KindAccount, wire.NameRequest{Name: "ba-1"}), codes.OK)
	}
	if got := s3Code(put(r.as(g), "bc-1", "a")); got != "InvalidAccessKeyId" {
		t.Errorf("the key: %s", got)
	}
	if r.policy("bc-1") != "" || strings.Contains(r.policy("bc-3"), "ba-1") || !strings.Contains(r.policy("bc-3"), "ba-2") {
		t.Errorf("policies: %q, %q", r.policy("bc-1"), r.policy("bc-3"))
	}
	items, err := r.FindByName(ctx, wire.KindAccount, wire.NameRequest{Name: "ba-1"})
	if err != nil || len(items) != 0 {
		t.Errorf("find: %+v, %v", items, err)
	}
}

func TestListPages(t *testing.T) {
	r := newRig(t)
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("n-%d", i)
		r.create(name)
		r.grant(name, wire.AccessedBucket{ID: name, Mode: wire.ReadWrite})
		want = append(want, name)
	}
	if _, err := r.root.CreateBucket(deadline(t), &awss3.CreateBucketInput{Bucket: aws.String("n-33")}); err != nil {
		t.Fatal(err)
	}
	r.admin("create-user", "", "<Account><Access>n-33</Access><Secret>s</Secret><Role>user</Role></Account>")
	want = slices.Insert(want, 4, "n-33")
	for _, kind := range []wire.Kind{wire.KindBucket, wire.KindAccount} {
		for _, size := range []int32{0, 1, 3, 8} {
			var got []string
			var pages int
			req := wire.ListRequest{PageSize: size}
			for {
				p, err := r.List(deadline(t), kind, req)
				if err != nil {
					t.Fatal(err)
				}
				pages++
				if size > 0 && len(p.Items) > int(size) {
					t.Errorf("%s: a page of %d has %d", kind, size, len(p.Items))
				}
				for _, i := range p.Items {
					got = append(got, i.ID)
					if i.MadeFor(i.ID) != (i.ID != "n-33") {
						t.Errorf("%s %s: owner %q", kind, i.ID, i.Owner)
					}
				}
				if req.PageToken = p.NextPageToken; req.PageToken == "" {
					break
				}
			}
			if !slices.Equal(got, want) || (size == 3 && pages != 3) {
				t.Errorf("%s in pages of %d: %v in %d pages", kind, size, got, pages)
			}
		}
	}
}
