package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/cosi/wire/recovery"
	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

// expect answers resp and complains of any other request than want.
func expect(t *testing.T, want proto.Message, resp any) func(context.Context, any) (any, error) {
	return func(_ context.Context, req any) (any, error) {
		if diff := cmp.Diff(want, req, protocmp.Transform()); diff != "" {
			t.Errorf("the driver got another request than expected:\n%s", diff)
		}
		return resp, nil
	}
}

func is[T any](t *testing.T, what string, got, want T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

var (
	params     = map[string]string{"k": "v"}
	s3Proto    = &v1alpha2.ObjectProtocol{Type: v1alpha2.ObjectProtocol_S3}
	keyAuth    = &v1alpha2.AuthenticationType{Type: v1alpha2.AuthenticationType_KEY}
	s3Info     = &v1alpha2.ObjectProtocolAndBucketInfo{S3: &v1alpha2.S3BucketInfo{BucketId: "b", Endpoint: "http://e", Region: "r", AddressingStyle: &v1alpha2.S3AddressingStyle{Style: v1alpha2.S3AddressingStyle_PATH}}}
	s3InfoWire = wire.BucketInfo{S3: &wire.S3Bucket{BucketID: "b", Endpoint: "http://e", Region: "r", AddressingStyle: wire.PathStyle}}
	request    = wire.BucketRequest{Name: "bc-1", Protocols: []wire.Protocol{wire.S3}, Parameters: params}
	grant      = wire.GrantRequest{Name: "ba-1", Protocol: wire.S3, Authentication: wire.Key, ServiceAccountName: "sa", Parameters: params,
		Buckets: []wire.AccessedBucket{{ID: "b1", Mode: wire.ReadWrite}, {ID: "b2", Mode: wire.WriteOnly}}}
	accessed = []*v1alpha2.DriverGrantBucketAccessRequest_AccessedBucket{
		{BucketId: "b1", AccessMode: &v1alpha2.AccessMode{Mode: v1alpha2.AccessMode_READ_WRITE}},
		{BucketId: "b2", AccessMode: &v1alpha2.AccessMode{Mode: v1alpha2.AccessMode_WRITE_ONLY}},
	}
)

func TestOnePhase(t *testing.T) {
	socket := socketPath(t)
	f := v2("d").
		on("DriverCreateBucket", expect(t, &v1alpha2.DriverCreateBucketRequest{Name: "bc-1", Protocols: []*v1alpha2.ObjectProtocol{s3Proto}, Parameters: params},
			&v1alpha2.DriverCreateBucketResponse{BucketId: "id", Protocols: s3Info})).
		on("DriverGetExistingBucket", expect(t, &v1alpha2.DriverGetExistingBucketRequest{ExistingBucketId: "id", Protocols: []*v1alpha2.ObjectProtocol{s3Proto}, Parameters: params},
			&v1alpha2.DriverGetExistingBucketResponse{BucketId: "id", Protocols: s3Info})).
		on("DriverDeleteBucket", expect(t, &v1alpha2.DriverDeleteBucketRequest{BucketId: "id", Parameters: params}, &v1alpha2.DriverDeleteBucketResponse{})).
		on("DriverGrantBucketAccess", expect(t, &v1alpha2.DriverGrantBucketAccessRequest{AccountName: "ba-1", Protocol: s3Proto, AuthenticationType: keyAuth, ServiceAccountName: "sa", Parameters: params, Buckets: accessed},
			&v1alpha2.DriverGrantBucketAccessResponse{AccountId: "acc", Buckets: []*v1alpha2.DriverGrantBucketAccessResponse_BucketInfo{{BucketId: "b1", BucketInfo: s3Info}},
				Credentials: &v1alpha2.CredentialInfo{S3: &v1alpha2.S3CredentialInfo{AccessKeyId: "AK", AccessSecretKey: "SK"}}})).
		on("DriverRevokeBucketAccess", expect(t, &v1alpha2.DriverRevokeBucketAccessRequest{AccountId: "acc", Protocol: s3Proto, AuthenticationType: keyAuth, ServiceAccountName: "sa", Parameters: params,
			Buckets: []*v1alpha2.DriverRevokeBucketAccessRequest_AccessedBucket{{BucketId: "b1"}}}, &v1alpha2.DriverRevokeBucketAccessResponse{}))
	f.serve(t, socket, "v1alpha2")
	c := dial(t, socket)
	ctx := deadline(t)

	for range 3 { // asked once, then remembered
		if _, err := c.GenerateBucketID(ctx, request); !errors.Is(err, wire.ErrNotOffered) || wire.Code(err) != codes.Unimplemented {
			t.Errorf("generate: got %v", err)
		}
		if _, err := c.GenerateAccountID(ctx, grant); !errors.Is(err, wire.ErrNotOffered) {
			t.Errorf("generate: got %v", err)
		}
	}
	if f.called("DriverGenerateBucketId") != 1 || f.called("DriverGenerateBucketAccessId") != 1 {
		t.Errorf("generate calls asked more than once: %v", f.calls)
	}
	b, err := c.CreateBucket(ctx, request)
	is(t, "create", b, wire.Bucket{ID: "id", Info: s3InfoWire}, err)
	b, err = c.GetBucket(ctx, wire.GetBucketRequest{ID: "id", Protocols: request.Protocols, Parameters: params})
	is(t, "get", b, wire.Bucket{ID: "id", Info: s3InfoWire}, err)
	is(t, "delete", "", "", c.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "id", Parameters: params}))
	g, err := c.GrantAccess(ctx, grant)
	is(t, "grant", g, wire.Grant{AccountID: "acc", Buckets: []wire.Bucket{{ID: "b1", Info: s3InfoWire}}, Credentials: wire.Credentials{S3: &wire.S3Credentials{AccessKeyID: "AK", AccessSecretKey: "SK"}}}, err)
	is(t, "revoke", "", "", c.RevokeAccess(ctx, wire.RevokeRequest{AccountID: "acc", Protocol: wire.S3, Authentication: wire.Key, ServiceAccountName: "sa", Parameters: params, BucketIDs: []string{"b1"}}))
	for _, err := range []error{
		c.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "n"}),
		second(c.FindByName(ctx, wire.KindAccount, wire.NameRequest{Name: "n"})),
		second(c.List(ctx, wire.KindBucket, wire.ListRequest{})),
	} {
		if !errors.Is(err, wire.ErrNotOffered) {
			t.Errorf("recovery call to a driver without: got %v", err)
		}
	}
	if f.called("DeleteBucketByName")+f.called("FindAccountByName")+f.called("ListBuckets") != 0 {
		t.Error("calls that the driver did not offer were sent")
	}
}

func second[T any](_ T, err error) error { return err }

func TestTwoPhases(t *testing.T) {
	socket := socketPath(t)
	f := v2("d").
		on("DriverGenerateBucketId", expect(t, &v1alpha2.DriverGenerateBucketIdRequest{Name: "bc-1", Protocols: []*v1alpha2.ObjectProtocol{s3Proto}, Parameters: params},
			&v1alpha2.DriverGenerateBucketIdResponse{BucketId: "id"})).
		on("DriverCreateBucket", expect(t, &v1alpha2.DriverCreateBucketRequest{Name: "id", Protocols: []*v1alpha2.ObjectProtocol{s3Proto}, Parameters: params},
			&v1alpha2.DriverCreateBucketResponse{Protocols: s3Info})). // the id is not repeated
		answer("DriverGetBucket", &v1alpha2.DriverGetBucketResponse{BucketId: "id", Protocols: s3Info}).
		on("DriverGenerateBucketAccessId", expect(t, &v1alpha2.DriverGenerateBucketAccessIdRequest{AccountName: "ba-1", Protocol: s3Proto, AuthenticationType: keyAuth, ServiceAccountName: "sa", Parameters: params, Buckets: accessed},
			&v1alpha2.DriverGenerateBucketAccessIdResponse{AccountId: "acc"})).
		on("DriverGrantBucketAccess", expect(t, &v1alpha2.DriverGrantBucketAccessRequest{AccountName: "acc", Protocol: s3Proto, AuthenticationType: keyAuth, ServiceAccountName: "sa", Parameters: params, Buckets: accessed},
			&v1alpha2.DriverGrantBucketAccessResponse{}))
	f.serve(t, socket, "v1alpha2")
	c := dial(t, socket)
	ctx := deadline(t)

	// Before anything is known of the phases, a look falls through from one name to the other.
	b, err := c.GetBucket(ctx, wire.GetBucketRequest{ID: "id"})
	is(t, "get", b, wire.Bucket{ID: "id", Info: s3InfoWire}, err)
	b, err = c.GetBucket(ctx, wire.GetBucketRequest{ID: "id"})
	is(t, "get again", b, wire.Bucket{ID: "id", Info: s3InfoWire}, err)
	if n := f.called("DriverGetExistingBucket"); n != 1 {
		t.Errorf("the look that the driver has not was tried %d times", n)
	}
	id, err := c.GenerateBucketID(ctx, request)
	is(t, "generate", id, "id", err)
	req := request
	req.ID = id
	b, err = c.CreateBucket(ctx, req)
	is(t, "create", b, wire.Bucket{ID: "id", Info: s3InfoWire}, err)
	id, err = c.GenerateAccountID(ctx, grant)
	is(t, "generate account", id, "acc", err)
	greq := grant
	greq.ID = id
	g, err := c.GrantAccess(ctx, greq)
	is(t, "grant", g.AccountID, "acc", err)
}

func TestV1alpha1(t *testing.T) {
	socket := socketPath(t)
	f := v1("d").
		on("DriverCreateBucket", expect(t, &v1alpha1.DriverCreateBucketRequest{Name: "bc-1", Parameters: params},
			&v1alpha1.DriverCreateBucketResponse{BucketId: "id", BucketInfo: &v1alpha1.Protocol{Type: &v1alpha1.Protocol_S3{S3: &v1alpha1.S3{Region: "r", SignatureVersion: v1alpha1.S3SignatureVersion_S3V4}}}})).
		on("DriverDeleteBucket", expect(t, &v1alpha1.DriverDeleteBucketRequest{BucketId: "id", DeleteContext: params}, &v1alpha1.DriverDeleteBucketResponse{})).
		on("DriverGrantBucketAccess", expect(t, &v1alpha1.DriverGrantBucketAccessRequest{BucketId: "b1", Name: "ba-1", AuthenticationType: v1alpha1.AuthenticationType_Key, Parameters: params},
			&v1alpha1.DriverGrantBucketAccessResponse{AccountId: "acc", Credentials: map[string]*v1alpha1.CredentialDetails{"s3": {Secrets: map[string]string{
				"accessKeyID": "AK", "accessSecretKey": "SK", "endpoint": "http://e", "region": "r",
			}}}})).
		on("DriverRevokeBucketAccess", expect(t, &v1alpha1.DriverRevokeBucketAccessRequest{BucketId: "b1", AccountId: "acc", RevokeAccessContext: params}, &v1alpha1.DriverRevokeBucketAccessResponse{}))
	f.serve(t, socket, "v1alpha1")
	c := dial(t, socket)
	ctx := deadline(t)

	b, err := c.CreateBucket(ctx, request)
	is(t, "create", b, wire.Bucket{ID: "id", Info: wire.BucketInfo{S3: &wire.S3Bucket{BucketID: "id", Region: "r"}}}, err)
	if _, err := c.GetBucket(ctx, wire.GetBucketRequest{ID: "id"}); !errors.Is(err, wire.ErrNotOffered) {
		t.Errorf("get: %v", err)
	}
	is(t, "delete", "", "", c.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "id", Parameters: params}))

	one := grant
	one.Buckets = one.Buckets[:1]
	g, err := c.GrantAccess(ctx, one)
	is(t, "grant", g, wire.Grant{
		AccountID:   "acc",
		Buckets:     []wire.Bucket{{ID: "b1", Info: wire.BucketInfo{S3: &wire.S3Bucket{BucketID: "b1", Endpoint: "http://e", Region: "r"}}}},
		Credentials: wire.Credentials{S3: &wire.S3Credentials{AccessKeyID: "AK", AccessSecretKey: "SK"}},
	}, err)
	is(t, "revoke", "", "", c.RevokeAccess(ctx, wire.RevokeRequest{AccountID: "acc", Parameters: params, BucketIDs: []string{"b1"}}))

	before := f.called("DriverGrantBucketAccess")
	if _, err := c.GrantAccess(ctx, grant); wire.Code(err) != codes.OutOfRange || !wire.NotSent(err) {
		t.Errorf("several buckets: %v", err)
	}
	one.Buckets = []wire.AccessedBucket{{ID: "b1", Mode: wire.ReadOnly}}
	if _, err := c.GrantAccess(ctx, one); wire.Code(err) != codes.InvalidArgument || !wire.NotSent(err) {
		t.Errorf("read only: %v", err)
	}
	if f.called("DriverGrantBucketAccess") != before {
		t.Error("a refused grant was sent")
	}
}

func TestV1alpha1Azure(t *testing.T) {
	socket := socketPath(t)
	v1("d").
		answer("DriverCreateBucket", &v1alpha1.DriverCreateBucketResponse{BucketId: "id", BucketInfo: &v1alpha1.Protocol{Type: &v1alpha1.Protocol_AzureBlob{AzureBlob: &v1alpha1.AzureBlob{StorageAccount: "sa"}}}}).
		answer("DriverGrantBucketAccess", &v1alpha1.DriverGrantBucketAccessResponse{AccountId: "acc", Credentials: map[string]*v1alpha1.CredentialDetails{"Azure": {Secrets: map[string]string{
			"accessToken": "T", "expiryTimeStamp": "2030",
		}}}}).serve(t, socket, "v1alpha1")
	c := dial(t, socket)
	b, err := c.CreateBucket(deadline(t), request)
	is(t, "create", b, wire.Bucket{ID: "id", Info: wire.BucketInfo{Azure: &wire.AzureBucket{StorageAccount: "sa"}}}, err)
	g, err := c.GrantAccess(deadline(t), wire.GrantRequest{Name: "n", Buckets: []wire.AccessedBucket{{ID: "b"}}})
	is(t, "grant", g.Credentials, wire.Credentials{Azure: &wire.AzureCredentials{AccessToken: "T", Expiry: "2030"}}, err)
}

// Whatever else is wrong with an answer, an id in it reaches the caller.
func TestIDsAreHandedOut(t *testing.T) {
	made := wire.WithMadeID(status.Error(codes.DeadlineExceeded, "backend slow"), "id-made")
	for _, tc := range []struct {
		name    string
		fake    *fake
		service string
	}{
		{"v1alpha2", v2("d"), "v1alpha2"},
		{"v1alpha1", v1("d"), "v1alpha1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket := socketPath(t)
			f := tc.fake.fail("DriverCreateBucket", made).fail("DriverGrantBucketAccess", made)
			f.serve(t, socket, tc.service)
			c := dial(t, socket)
			b, err := c.CreateBucket(deadline(t), request)
			if b.ID != "id-made" || wire.MadeID(err) != "id-made" || wire.Code(err) != codes.DeadlineExceeded {
				t.Errorf("create: %+v, %v", b, err)
			}
			one := grant
			one.Buckets = one.Buckets[:1]
			g, err := c.GrantAccess(deadline(t), one)
			if g.AccountID != "id-made" || wire.MadeID(fmt.Errorf("wrapped: %w", err)) != "id-made" {
				t.Errorf("grant: %+v, %v", g, err)
			}
			// Control: the same error without the detail hands out nothing.
			f.mu.Lock()
			f.fail("DriverCreateBucket", status.Error(codes.DeadlineExceeded, "backend slow"))
			f.mu.Unlock()
			if b, err := c.CreateBucket(deadline(t), request); b.ID != "" || wire.MadeID(err) != "" {
				t.Errorf("create: %+v, %v", b, err)
			}
		})
	}
}

// Programs narrow a code to a byte and give meanings of their own to what follows gRPC's last one: 256 would be a
// success, and 17 "never sent", after which nobody looks.
func TestCodesOutsideGRPC(t *testing.T) {
	socket := socketPath(t)
	f := v2("d")
	f.serve(t, socket, "v1alpha2")
	c := dial(t, socket)
	for _, tc := range []struct{ sent, want codes.Code }{
		{codes.Unauthenticated, codes.Unauthenticated}, // control: the last one that there is
		{17, codes.Unknown},
		{256, codes.Unknown},
		{272, codes.Unknown},
	} {
		f.mu.Lock()
		f.fail("DriverDeleteBucket", status.Error(tc.sent, "nonsense"))
		f.mu.Unlock()
		err := c.DeleteBucket(deadline(t), wire.DeleteBucketRequest{ID: "b"})
		if err == nil || wire.Code(err) != tc.want || wire.NotSent(err) {
			t.Errorf("%d: code %d of %v, want %d", tc.sent, wire.Code(err), err, tc.want)
		}
	}
}

func TestAnswerWithoutID(t *testing.T) {
	for _, tc := range []struct {
		name, service string
		fake          *fake
	}{
		{"v1alpha2", "v1alpha2", v2("d").answer("DriverCreateBucket", &v1alpha2.DriverCreateBucketResponse{}).answer("DriverGrantBucketAccess", &v1alpha2.DriverGrantBucketAccessResponse{}).answer("DriverGenerateBucketId", &v1alpha2.DriverGenerateBucketIdResponse{})},
		{"v1alpha1", "v1alpha1", v1("d").answer("DriverCreateBucket", &v1alpha1.DriverCreateBucketResponse{}).answer("DriverGrantBucketAccess", &v1alpha1.DriverGrantBucketAccessResponse{})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket := socketPath(t)
			tc.fake.serve(t, socket, tc.service)
			c := dial(t, socket)
			one := grant
			one.Buckets = one.Buckets[:1]
			errs := []error{second(c.CreateBucket(deadline(t), request)), second(c.GrantAccess(deadline(t), one))}
			if tc.service == "v1alpha2" {
				errs = append(errs, second(c.GenerateBucketID(deadline(t), request)))
			}
			for _, err := range errs {
				var noID *wire.NoIDError
				if !errors.As(err, &noID) || wire.Code(err) != codes.Internal || wire.NotSent(err) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestRecovery(t *testing.T) {
	all := &recovery.Capabilities{DeleteByName: true, FindByName: true, List: true}
	socket := socketPath(t)
	byName := &recovery.DeleteByNameRequest{Name: "n", Parameters: params}
	find := &recovery.FindByNameRequest{Name: "n", Parameters: params}
	items := []*recovery.Item{{Id: "i", Name: "n", OwnerMark: "n"}, {Id: "j", Name: "n", OwnerMark: "else"}, {Id: "k"}}
	f := v1("d").
		answer("GetCapabilities", &recovery.GetCapabilitiesResponse{Buckets: all, Accounts: all}).
		on("DeleteBucketByName", expect(t, byName, &recovery.DeleteByNameResponse{})).
		fail("DeleteAccountByName", status.Error(codes.Aborted, "a create runs")).
		on("FindBucketByName", expect(t, find, &recovery.FindByNameResponse{Items: items})).
		on("ListBuckets", expect(t, &recovery.ListRequest{PageSize: 2, PageToken: "p", Parameters: params}, &recovery.ListResponse{Items: items[:2], NextPageToken: "q"})).
		answer("ListAccounts", &recovery.ListResponse{})
	f.serve(t, socket, "v1alpha1", "recovery")
	c := dial(t, socket)
	ctx := deadline(t)
	name := wire.NameRequest{Name: "n", Parameters: params}

	is(t, "delete", "", "", c.DeleteByName(ctx, wire.KindBucket, name))
	if err := c.DeleteByName(ctx, wire.KindAccount, name); wire.Code(err) != codes.Aborted || wire.Message(err) != "a create runs" {
		t.Errorf("got %v", err)
	}
	found, err := c.FindByName(ctx, wire.KindBucket, name)
	is(t, "find", found, []wire.Item{{ID: "i", Name: "n", Owner: "n"}, {ID: "j", Name: "n", Owner: "else"}, {ID: "k"}}, err)
	var ours []bool
	for _, i := range found {
		ours = append(ours, i.MadeFor("n"))
	}
	is(t, "ours", ours, []bool{true, false, false}, nil)
	// It said it could, and cannot: the next way is taken, not an error shown for ever.
	if _, err := c.FindByName(ctx, wire.KindAccount, name); !errors.Is(err, wire.ErrNotOffered) {
		t.Errorf("got %v", err)
	}
	page, err := c.List(ctx, wire.KindBucket, wire.ListRequest{PageSize: 2, PageToken: "p", Parameters: params})
	is(t, "list", page, wire.Page{Items: found[:2], NextPageToken: "q"}, err)
	page, err = c.List(ctx, wire.KindAccount, wire.ListRequest{})
	is(t, "list accounts", page, wire.Page{}, err)
}

func TestErrorsSayWhatWasAsked(t *testing.T) {
	socket := socketPath(t)
	v2("d").fail("DriverDeleteBucket", status.Error(codes.FailedPrecondition, "it holds 3 objects")).serve(t, socket, "v1alpha2")
	err := dial(t, socket).DeleteBucket(deadline(t), wire.DeleteBucketRequest{ID: "b-9"})
	for _, want := range []string{"DriverDeleteBucket", `"b-9"`, "driver d", socket, "FailedPrecondition", "it holds 3 objects"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	if wire.Message(err) != "it holds 3 objects" || wire.Code(err) != codes.FailedPrecondition {
		t.Errorf("message %q, code %v", wire.Message(err), wire.Code(err))
	}
	if wire.Code(nil) != codes.OK || wire.Code(errors.New("x")) != codes.Unknown || wire.Code(fmt.Errorf("x: %w", context.DeadlineExceeded)) != codes.DeadlineExceeded {
		t.Error("codes of other errors")
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	const key, secret = "AKIDTEST", "topsecret"
	g := wire.Grant{AccountID: "acc", Credentials: wire.Credentials{
		S3:    &wire.S3Credentials{AccessKeyID: key, AccessSecretKey: secret},
		Azure: &wire.AzureCredentials{AccessToken: secret},
		GCS:   &wire.GCSCredentials{AccessID: key, AccessSecret: secret},
	}}
	var out strings.Builder
	for _, v := range []any{g, &g, *g.Credentials.S3, *g.Credentials.Azure, *g.Credentials.GCS, g.Credentials.S3.AccessSecretKey} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
		slog.New(slog.NewTextHandler(&out, nil)).Info("grant", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("grant", "v", v)
	}
	text := out.String()
	for _, s := range []string{key, secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret)} {
		if strings.Contains(text, s) {
			t.Errorf("%q was printed in %q", s, text[max(0, strings.Index(text, s)-200):strings.Index(text, s)+20])
		}
	}
	if !strings.Contains(text, "[redacted]") || g.Credentials.S3.AccessSecretKey.Reveal() != secret {
		t.Error("the control failed: nothing was printed at all, or the secret is lost")
	}
}
