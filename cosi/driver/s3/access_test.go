package s3_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/cosi/wire"
)

// Each mode is used for real: what it allows works, what it forbids is refused by the server.
func TestAccessModes(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	r.create("bc-other")
	if err := put(r.root, "bc-1", "seed"); err != nil {
		t.Fatal(err)
	}
	const yes, no = "ok", "AccessDenied"
	for mode, want := range map[wire.AccessMode]struct{ put, get, list, remove, multipart string }{
		wire.ReadWrite: {yes, yes, yes, yes, yes},
		wire.ReadOnly:  {no, yes, yes, no, no},
		wire.WriteOnly: {yes, no, no, no, yes},
	} {
		t.Run(string(mode), func(t *testing.T) {
			g := r.grant("ba-"+strings.ToLower(string(mode)), wire.AccessedBucket{ID: "bc-1", Mode: mode})
			if len(g.Buckets) != 1 || g.Buckets[0].Info.S3 == nil || g.Buckets[0].Info.S3.Endpoint != r.server.Endpoint() || g.Buckets[0].Info.S3.BucketID != "bc-1" {
				t.Errorf("bucket info %+v", g.Buckets)
			}
			c := r.as(g)
			for what, x := range map[string]struct {
				err  error
				want string
			}{
				"put":            {put(c, "bc-1", "by-"+string(mode)), want.put},
				"get":            {get(c, "bc-1", "seed"), want.get},
				"list":           {list(c, "bc-1"), want.list},
				"delete":         {remove(c, "bc-1", "by-"+string(mode)), want.remove},
				"multipart":      {multipart(c, "bc-1", "m"), want.multipart},
				"another bucket": {put(c, "bc-other", "x"), no},
				"make a bucket":  {second(c.CreateBucket(deadline(t), &awss3.CreateBucketInput{Bucket: aws.String("bc-own")})), no},
				"delete bucket":  {second(c.DeleteBucket(deadline(t), &awss3.DeleteBucketInput{Bucket: aws.String("bc-1")})), no},
				"read policy":    {second(c.GetBucketPolicy(deadline(t), &awss3.GetBucketPolicyInput{Bucket: aws.String("bc-1")})), no},
			} {
				if got := s3Code(x.err); got != x.want {
					t.Errorf("%s %s: got %s, want %s", mode, what, got, x.want)
				}
			}
		})
	}
	if err := get(r.root, "bc-1", "seed"); err != nil {
		t.Errorf("the object is gone: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestSeveralBucketsOneAccount(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	r.create("bc-2")
	g := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}, wire.AccessedBucket{ID: "bc-2", Mode: wire.WriteOnly})
	c := r.as(g)
	for what, x := range map[string]struct {
		err  error
		want string
	}{
		"put 1": {put(c, "bc-1", "a"), "ok"}, "put 2": {put(c, "bc-2", "a"), "ok"},
		"list 1": {list(c, "bc-1"), "ok"}, "list 2": {list(c, "bc-2"), "AccessDenied"},
	} {
		if got := s3Code(x.err); got != x.want {
			t.Errorf("%s: %s, want %s", what, got, x.want)
		}
	}
	// The order of a Secret's life: the id of the bucket that is missing does not lose the account's.
	g, err := r.GrantAccess(deadline(t), access("ba-2", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadOnly}, wire.AccessedBucket{ID: "bc-gone", Mode: wire.ReadOnly}))
	r.code("grant with a missing bucket", err, codes.NotFound)
	if g.AccountID != "ba-2" || wire.MadeID(err) != "ba-2" {
		t.Errorf("the id of the account was lost: %+v, %v", g, err)
	}
	r.code("revoke", r.RevokeAccess(deadline(t), wire.RevokeRequest{AccountID: "ba-2", BucketIDs: []string{"bc-1", "bc-gone"}}), codes.OK)
}

func TestRepeatedGrantHasOneKey(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	first := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	for range 3 {
		again := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
		if again.AccountID != first.AccountID || *again.Credentials.S3 != *first.Credentials.S3 {
			t.Errorf("a repeated grant answered another id or key")
		}
	}
	if err := put(r.as(first), "bc-1", "a"); err != nil {
		t.Errorf("the first key no longer works: %v", err)
	}
	p, err := r.List(deadline(t), wire.KindAccount, wire.ListRequest{})
	if err != nil || len(p.Items) != 1 {
		t.Errorf("accounts %+v, %v", p, err)
	}
	// The same account in another mode: the new one holds, the old one is over.
	g := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadOnly})
	if got := s3Code(put(r.as(g), "bc-1", "b")); got != "AccessDenied" {
		t.Errorf("write with read-only access: %s", got)
	}
	// Another seed: the key is replaced under the same id, and the old one dies.
	_, d := r.driver(func(o *s3.Options) { o.Seed = "a new seed" })
	rotated, err := d.GrantAccess(deadline(t), access("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}))
	if err != nil || rotated.AccountID != "ba-1" || rotated.Credentials.S3.AccessSecretKey == first.Credentials.S3.AccessSecretKey {
		t.Fatalf("rotation: %+v, %v", rotated, err)
	}
	if err := put(r.as(rotated), "bc-1", "c"); err != nil {
		t.Errorf("the new key does not work: %v", err)
	}
	if got := s3Code(put(r.as(first), "bc-1", "d")); got != "SignatureDoesNotMatch" {
		t.Errorf("the old key: %s", got)
	}
}

func TestRevoke(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	g := r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	other := r.grant("ba-2", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	revoke := wire.RevokeRequest{AccountID: "ba-1", Protocol: wire.S3, Authentication: wire.Key, BucketIDs: []string{"bc-1"}}
	r.code("revoke", r.RevokeAccess(deadline(t), revoke), codes.OK)
	if got := s3Code(put(r.as(g), "bc-1", "a")); got != "InvalidAccessKeyId" {
		t.Errorf("the revoked key: %s", got)
	}
	if strings.Contains(r.policy("bc-1"), "ba-1") {
		t.Errorf("the policy still names the account: %s", r.policy("bc-1"))
	}
	if err := put(r.as(other), "bc-1", "a"); err != nil {
		t.Errorf("another account lost its access: %v", err)
	}
	r.code("revoke again", r.RevokeAccess(deadline(t), revoke), codes.OK)
	r.code("revoke of what never was", r.RevokeAccess(deadline(t), wire.RevokeRequest{AccountID: "ba-9", BucketIDs: []string{"bc-9"}}), codes.OK)
	r.code("revoke the other", r.RevokeAccess(deadline(t), wire.RevokeRequest{AccountID: "ba-2", BucketIDs: []string{"bc-1"}}), codes.OK)
	if p := r.policy("bc-1"); p != "" {
		t.Errorf("a policy is left: %s", p)
	}
}

// A name that a crash left in the policy does not stop later grants.
func TestStaleNameInPolicy(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	r.admin("delete-user", "access=ba-1", "") // as if the driver had died between the account and the policy
	if !strings.Contains(r.policy("bc-1"), "ba-1") {
		t.Fatal("the control failed: the policy does not name the account")
	}
	g := r.grant("ba-2", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	if err := put(r.as(g), "bc-1", "a"); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.policy("bc-1"), "ba-1") {
		t.Errorf("the stale name is still there: %s", r.policy("bc-1"))
	}
}

// Statements of others in a policy stay.
func TestForeignStatementsStay(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	r.admin("create-user", "", "<Account><Access>alice</Access><Secret>s</Secret><Role>user</Role></Account>")
	const foreign = `{"Sid":"Theirs","Effect":"Allow","Principal":{"AWS":["alice"]},"Action":"s3:GetObject","Resource":"arn:aws:s3:::bc-1/*"}`
	if _, err := r.root.PutBucketPolicy(deadline(t), &awss3.PutBucketPolicyInput{Bucket: aws.String("bc-1"), Policy: aws.String(`{"Version":"2012-10-17","Id":"x","Statement":[` + foreign + `]}`)}); err != nil {
		t.Fatal(err)
	}
	r.grant("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	if p := r.policy("bc-1"); !strings.Contains(p, foreign) || !strings.Contains(p, "ba-1") {
		t.Errorf("after the grant: %s", p)
	}
	r.code("revoke", r.RevokeAccess(deadline(t), wire.RevokeRequest{AccountID: "ba-1", BucketIDs: []string{"bc-1"}}), codes.OK)
	if p := r.policy("bc-1"); !strings.Contains(p, foreign) || !strings.Contains(p, `"Id":"x"`) || strings.Contains(p, "ba-1") {
		t.Errorf("after the revoke: %s", p)
	}
}

func TestForeignAccountIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	r.admin("create-user", "", "<Account><Access>ba-1</Access><Secret>theirs</Secret><Role>user</Role></Account>")
	_, err := r.GrantAccess(deadline(t), access("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}))
	r.code("grant", err, codes.AlreadyExists)
	r.code("revoke", r.RevokeAccess(deadline(t), wire.RevokeRequest{AccountID: "ba-1", BucketIDs: []string{"bc-1"}}), codes.FailedPrecondition)
	r.code("delete by name", r.DeleteByName(deadline(t), wire.KindAccount, wire.NameRequest{Name: "ba-1"}), codes.OK)
	items, err := r.FindByName(deadline(t), wire.KindAccount, wire.NameRequest{Name: "ba-1"})
	if err != nil || len(items) != 1 || items[0].MadeFor("ba-1") || items[0].Owner == "" {
		t.Errorf("find: %+v, %v", items, err)
	}
	// It is untouched: its own key is the one that counts.
	if got := s3Code(list(client(r.server, "ba-1", "theirs"), "bc-1")); got != "AccessDenied" {
		t.Errorf("the foreign account: %s", got)
	}
	// So is an account of the same name by the driver of another cluster.
	_, d2 := r.driver(func(o *s3.Options) { o.Owner = "cluster-2" })
	if _, err := d2.GrantAccess(deadline(t), access("ba-2", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})); err != nil {
		t.Fatal(err)
	}
	_, err = r.GrantAccess(deadline(t), access("ba-2", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}))
	r.code("grant of another cluster's", err, codes.AlreadyExists)
	r.code("delete another cluster's by name", r.DeleteByName(deadline(t), wire.KindAccount, wire.NameRequest{Name: "ba-2"}), codes.OK)
	items, err = d2.FindByName(deadline(t), wire.KindAccount, wire.NameRequest{Name: "ba-2"})
	if err != nil || len(items) != 1 || !items[0].MadeFor("ba-2") {
		t.Errorf("the other cluster's account: %+v, %v", items, err)
	}
}

func TestGrantRefuses(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	req := access("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite})
	req.Authentication = wire.ServiceAccount
	r.code("service account", second(r.GrantAccess(deadline(t), req)), codes.InvalidArgument)
	req.Authentication, req.Parameters = wire.Key, map[string]string{"quota": "1"}
	r.code("parameter", second(r.GrantAccess(deadline(t), req)), codes.InvalidArgument)
	root, _ := r.server.Root()
	r.code("root's own name", second(r.GrantAccess(deadline(t), access(root, wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}))), codes.Aborted)
	if p, err := r.List(deadline(t), wire.KindAccount, wire.ListRequest{}); err != nil || len(p.Items) != 0 {
		t.Errorf("a refused grant left %+v, %v", p, err)
	}
}
