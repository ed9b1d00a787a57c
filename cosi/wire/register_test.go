package wire_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// echo is a Driver that keeps the last request and answers what it is told to.
type echo struct {
	info   wire.Info
	last   any
	bucket wire.Bucket
	grant  wire.Grant
	items  []wire.Item
	err    error
}

func (e *echo) Info() wire.Info { return e.info }
func (e *echo) GenerateBucketID(_ context.Context, r wire.BucketRequest) (string, error) {
	e.last = r
	return e.bucket.ID, e.err
}
func (e *echo) CreateBucket(_ context.Context, r wire.BucketRequest) (wire.Bucket, error) {
	e.last = r
	return e.bucket, e.err
}
func (e *echo) GetBucket(_ context.Context, r wire.GetBucketRequest) (wire.Bucket, error) {
	e.last = r
	return e.bucket, e.err
}
func (e *echo) DeleteBucket(_ context.Context, r wire.DeleteBucketRequest) error {
	e.last = r
	return e.err
}
func (e *echo) GenerateAccountID(_ context.Context, r wire.GrantRequest) (string, error) {
	e.last = r
	return e.grant.AccountID, e.err
}
func (e *echo) GrantAccess(_ context.Context, r wire.GrantRequest) (wire.Grant, error) {
	e.last = r
	return e.grant, e.err
}
func (e *echo) RevokeAccess(_ context.Context, r wire.RevokeRequest) error {
	e.last = r
	return e.err
}
func (e *echo) DeleteByName(_ context.Context, _ wire.Kind, r wire.NameRequest) error {
	e.last = r
	return e.err
}
func (e *echo) FindByName(_ context.Context, _ wire.Kind, r wire.NameRequest) ([]wire.Item, error) {
	e.last = r
	return e.items, e.err
}
func (e *echo) List(_ context.Context, _ wire.Kind, r wire.ListRequest) (wire.Page, error) {
	e.last = r
	return wire.Page{Items: e.items, NextPageToken: "next"}, e.err
}

func serveDriver(t *testing.T, d wire.Driver, which wire.Services) *wire.Client {
	t.Helper()
	s := grpc.NewServer()
	if err := wire.Register(s, d, which); err != nil {
		t.Fatal(err)
	}
	socket := socketPath(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return dial(t, socket)
}

func newEcho() *echo {
	caps := wire.Capabilities{DeleteByName: true, FindByName: true, List: true, CreateRepeatSafe: true, OwnerMark: true}
	return &echo{
		info:   wire.Info{Name: "d", Protocols: []wire.Protocol{wire.S3, wire.Azure, wire.GCS}, Recovery: wire.Recovery{Buckets: caps, Accounts: caps}},
		bucket: wire.Bucket{ID: "id", Info: s3InfoWire},
		grant: wire.Grant{AccountID: "acc", Buckets: []wire.Bucket{{ID: "b1", Info: wire.BucketInfo{S3: &wire.S3Bucket{BucketID: "b1", Endpoint: "http://e", Region: "r"}}}},
			Credentials: wire.Credentials{S3: &wire.S3Credentials{AccessKeyID: "AK", AccessSecretKey: "SK"}}},
		items: []wire.Item{{ID: "i", Name: "n", Owner: "n"}},
	}
}

// What goes in at one side of the wire comes out at the other, in every dialect.
func TestRegisterRoundTrip(t *testing.T) {
	ctx := deadline(t)
	for _, tc := range []struct {
		name  string
		which wire.Services
	}{
		{"one phase", wire.Services{V1alpha2: true, Recovery: true}},
		{"two phases", wire.Services{V1alpha2: true, TwoPhase: true, Recovery: true}},
		{"v1alpha1", wire.Services{V1alpha1: true, Recovery: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEcho()
			c := serveDriver(t, e, tc.which)
			v1 := tc.which.V1alpha1
			wantInfo := e.info
			wantInfo.Dialect = wire.V1alpha2
			if v1 {
				wantInfo.Dialect, wantInfo.Protocols = wire.V1alpha1, nil
			}
			is(t, "info", c.Info(), wantInfo, nil)

			req := request
			if tc.which.TwoPhase {
				id, err := c.GenerateBucketID(ctx, req)
				is(t, "generate", id, "id", err)
				is(t, "generate: request", e.last, any(req), nil)
				req.ID = id
			}
			b, err := c.CreateBucket(ctx, req)
			if tc.which.TwoPhase {
				req.Name = "" // the generated id took its place
			}
			want := e.bucket
			if v1 {
				want.Info = wire.BucketInfo{S3: &wire.S3Bucket{BucketID: "id", Region: "r"}}
			}
			is(t, "create", b, want, err)
			is(t, "create: request", e.last, any(req), nil)

			if !v1 {
				get := wire.GetBucketRequest{ID: "id", Protocols: request.Protocols, Parameters: params}
				b, err = c.GetBucket(ctx, get)
				is(t, "get", b, e.bucket, err)
				is(t, "get: request", e.last, any(get), nil)
			}
			del := wire.DeleteBucketRequest{ID: "id", Parameters: params}
			is(t, "delete", "", "", c.DeleteBucket(ctx, del))
			is(t, "delete: request", e.last, any(del), nil)

			greq := grant
			if v1 {
				greq.Buckets, greq.ServiceAccountName = greq.Buckets[:1], ""
			}
			if tc.which.TwoPhase {
				id, err := c.GenerateAccountID(ctx, greq)
				is(t, "generate account", id, "acc", err)
				is(t, "generate account: request", e.last, any(greq), nil)
				greq.ID = id
			}
			g, err := c.GrantAccess(ctx, greq)
			if tc.which.TwoPhase {
				greq.Name = ""
			}
			is(t, "grant", g, e.grant, err)
			is(t, "grant: request", e.last, any(greq), nil)

			rev := wire.RevokeRequest{AccountID: "acc", Protocol: wire.S3, Authentication: wire.Key, ServiceAccountName: "sa", Parameters: params, BucketIDs: []string{"b1"}}
			if v1 {
				rev = wire.RevokeRequest{AccountID: "acc", Parameters: params, BucketIDs: []string{"b1"}}
			}
			is(t, "revoke", "", "", c.RevokeAccess(ctx, rev))
			is(t, "revoke: request", e.last, any(rev), nil)

			for _, kind := range []wire.Kind{wire.KindBucket, wire.KindAccount} {
				name := wire.NameRequest{Name: "n", Parameters: params}
				is(t, "delete by name", "", "", c.DeleteByName(ctx, kind, name))
				is(t, "delete by name: request", e.last, any(name), nil)
				items, err := c.FindByName(ctx, kind, name)
				is(t, "find", items, e.items, err)
				list := wire.ListRequest{PageSize: 3, PageToken: "p", Parameters: params}
				page, err := c.List(ctx, kind, list)
				is(t, "list", page, wire.Page{Items: e.items, NextPageToken: "next"}, err)
				is(t, "list: request", e.last, any(list), nil)
			}

			// An id beside an error travels as the detail; a call not offered as UNIMPLEMENTED.
			e.err = status.Error(codes.Aborted, "later")
			b, err = c.CreateBucket(ctx, req)
			if b.ID != "id" || wire.MadeID(err) != "id" || wire.Code(err) != codes.Aborted || wire.Message(err) != "later" {
				t.Errorf("got %+v, %v", b, err)
			}
			g, err = c.GrantAccess(ctx, greq)
			if g.AccountID != "acc" || wire.MadeID(err) != "acc" {
				t.Errorf("got %+v, %v", g, err)
			}
			e.err = wire.ErrNotOffered
			if _, err := c.FindByName(ctx, wire.KindBucket, wire.NameRequest{Name: "n"}); !errors.Is(err, wire.ErrNotOffered) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRegisterAzureAndGCS(t *testing.T) {
	e := newEcho()
	e.bucket.Info = wire.BucketInfo{Azure: &wire.AzureBucket{StorageAccount: "sa"}, GCS: &wire.GCSBucket{ProjectID: "p", BucketName: "b"}}
	e.grant.Buckets = nil
	e.grant.Credentials = wire.Credentials{Azure: &wire.AzureCredentials{AccessToken: "T", Expiry: "x"}, GCS: &wire.GCSCredentials{AccessID: "A", AccessSecret: "S", PrivateKeyName: "P", ServiceAccount: "SA"}}
	c := serveDriver(t, e, wire.Services{V1alpha2: true})
	req := request
	req.Protocols = []wire.Protocol{wire.Azure, wire.GCS}
	b, err := c.CreateBucket(deadline(t), req)
	is(t, "create", b, e.bucket, err)
	is(t, "request", e.last, any(req), nil)
	g, err := c.GrantAccess(deadline(t), grant)
	is(t, "grant", g, e.grant, err)
	if diff := cmp.Diff([]wire.Protocol{wire.Azure, wire.GCS}, b.Info.Protocols()); diff != "" {
		t.Error(diff)
	}
}

func TestRegisterRefusesNonsense(t *testing.T) {
	for _, which := range []wire.Services{{}, {V1alpha1: true, TwoPhase: true}, {Recovery: true}} {
		if err := wire.Register(grpc.NewServer(), newEcho(), which); err == nil {
			t.Errorf("%+v was accepted", which)
		}
	}
}
