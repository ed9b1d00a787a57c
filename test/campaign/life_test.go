package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/test/double"
	"github.com/custody-storage/custody/test/oracle"
)

// poll is how often a life looks at what it waits for.
const poll = 150 * time.Millisecond

// life is a user with one claim and one access, of which there may be several in
// turn under the same names: made, waited for or not, used, deleted in any order,
// made again. At the end it keeps them or deletes them.
type life struct {
	w      *world
	d      *driver
	dice   *rand.Rand
	name   string
	keeps  bool
	retain bool // the class's policy
	// careless: what is ready and does not work is no failure of the test.
	careless bool

	mu     sync.Mutex
	bucket *kept // what was seen ready and is not asked to go
	access *kept
	shown  map[types.UID]bool // claims and accesses that were seen ready
	made   int                // claims and accesses that it has made

	// vanished: its Bucket was taken away by force. Until the controller has made it
	// again the claim stays: what is in the backend would have an Intent whose owner
	// is gone, which is an admin's to decide.
	vanished bool
}

// kept is what must stay as it was seen.
type kept struct {
	uid    types.UID
	id     string
	nonce  int    // of a double's bucket
	secret string // of an account
}

const (
	object = "precious"
	text   = "not to be lost"
)

func newLife(w *world, d *driver, n int) *life {
	dice := w.dice(1000 + uint64(n))
	return &life{w: w, d: d, dice: dice, name: fmt.Sprintf("c%03d", n), shown: map[types.UID]bool{},
		keeps: dice.IntN(2) == 0, retain: dice.IntN(8) == 0}
}

// run does one thing after the other until ctx ends.
func (l *life) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.step(ctx)
		l.rest(ctx, time.Duration(l.dice.IntN(700))*time.Millisecond)
	}
}

func (l *life) rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (l *life) step(ctx context.Context) {
	claim, access := l.claim(ctx), l.find(ctx)
	l.observe(ctx, claim, access)
	switch throw := l.dice.IntN(100); {
	case claim == nil:
		l.make(ctx, l.newClaim())
		if throw < 50 {
			l.make(ctx, l.newAccess())
		}
		if throw < 25 {
			l.rest(ctx, time.Duration(l.dice.IntN(400))*time.Millisecond) // in the middle of it
			l.dropClaim(ctx)
		}
	case claim.DeletionTimestamp != nil:
		if access != nil && throw < 60 {
			l.dropAccess(ctx)
		}
		l.await(ctx, func() bool { return l.claim(ctx) == nil })
	case access == nil:
		switch {
		case throw < 60:
			l.make(ctx, l.newAccess())
		case throw < 85:
			l.dropClaim(ctx)
		case throw < 95 && !l.retain: // out of order
			l.w.delete(ctx, &cosi.Bucket{ObjectMeta: meta.ObjectMeta{Name: cosi.BucketName(claim)}})
			l.dropClaim(ctx)
		case !l.retain: // its Bucket vanishes without its finalizers being honoured
			l.vanish(ctx, cosi.BucketName(claim))
			l.vanished = true
		}
	case access.DeletionTimestamp != nil:
		l.await(ctx, func() bool { return l.find(ctx) == nil })
	default:
		switch {
		case throw < 25:
			l.await(ctx, func() bool { a := l.find(ctx); return a != nil && isTrue(a.Status.ReadyToUse) })
		case throw < 60:
			l.dropAccess(ctx)
			if throw < 40 { // and at once again, under the same name
				l.await(ctx, func() bool { return l.find(ctx) == nil })
				l.make(ctx, l.newAccess())
			}
		case throw < 75:
			l.dropClaim(ctx)
			l.dropAccess(ctx)
		}
	}
}

// finish brings it to what it keeps; ctx gives the time for that.
func (l *life) finish(ctx context.Context) {
	if !l.keeps {
		l.dropAccess(ctx)
		l.dropClaim(ctx)
		return
	}
	for ctx.Err() == nil {
		claim, access := l.claim(ctx), l.find(ctx)
		l.observe(ctx, claim, access)
		switch {
		case claim == nil:
			l.make(ctx, l.newClaim())
		case claim.DeletionTimestamp != nil:
			if access != nil { // it stands in the way
				l.dropAccess(ctx)
			}
		case access == nil:
			l.make(ctx, l.newAccess())
		case l.saw(claim) && l.saw(access):
			return
		}
		l.rest(ctx, poll)
	}
}

// await waits for something for a few seconds at most.
func (l *life) await(ctx context.Context, is func() bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+l.dice.IntN(5))*time.Second)
	defer cancel()
	for ctx.Err() == nil && !is() {
		l.rest(ctx, poll)
	}
}

func (l *life) newClaim() client.Object {
	policy := cosi.DeletionPolicyDelete
	if l.retain {
		policy = cosi.DeletionPolicyRetain
	}
	return &cosi.BucketClaim{ObjectMeta: meta.ObjectMeta{Namespace: l.w.ns, Name: l.name},
		Spec: cosi.BucketClaimSpec{BucketClassName: l.d.class(policy), Protocols: []cosi.ObjectProtocol{cosi.ProtocolS3}}}
}

func (l *life) newAccess() client.Object {
	return &cosi.BucketAccess{ObjectMeta: meta.ObjectMeta{Namespace: l.w.ns, Name: l.name},
		Spec: cosi.BucketAccessSpec{BucketAccessClassName: l.d.name, Protocol: cosi.ProtocolS3,
			BucketClaims: []cosi.BucketClaimAccess{{BucketClaimName: l.name, AccessMode: cosi.AccessModeReadWrite, AccessSecretName: l.name}}}}
}

// make makes an object; one that is there already is as good.
func (l *life) make(ctx context.Context, o client.Object) {
	if err := l.w.again(ctx, func() error { return l.w.client.Create(ctx, o) }); err == nil {
		l.mu.Lock()
		l.made++
		l.mu.Unlock()
	} else if !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
		l.w.t.Errorf("make %T %s: %v", o, o.GetName(), err)
	}
}

// delete deletes an object; an absent one is as good.
func (w *world) delete(ctx context.Context, o client.Object) {
	err := w.again(ctx, func() error { return w.client.Delete(ctx, o) })
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		w.t.Errorf("delete %T %s: %v", o, o.GetName(), err)
	}
}

func (l *life) dropClaim(ctx context.Context) {
	for l.vanished && ctx.Err() == nil {
		claim := l.claim(ctx)
		l.vanished = claim != nil && !l.w.get(ctx, types.NamespacedName{Name: cosi.BucketName(claim)}, &cosi.Bucket{})
		l.rest(ctx, poll)
	}
	if l.vanished { // the time is up; finish has more
		return
	}
	l.mu.Lock()
	old := l.bucket
	l.bucket = nil
	l.mu.Unlock()
	if old != nil && l.d.server != nil && !l.retain { // a bucket that holds objects can't be deleted
		for ctx.Err() == nil {
			_, err := l.root().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &old.id, Key: aws.String(object)})
			var api interface{ ErrorCode() string }
			if err == nil || errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket" {
				break
			}
			l.rest(ctx, poll)
		}
	}
	l.w.delete(ctx, &cosi.BucketClaim{ObjectMeta: meta.ObjectMeta{Namespace: l.w.ns, Name: l.name}})
}

func (l *life) dropAccess(ctx context.Context) {
	l.mu.Lock()
	l.access = nil
	l.mu.Unlock()
	l.w.delete(ctx, &cosi.BucketAccess{ObjectMeta: meta.ObjectMeta{Namespace: l.w.ns, Name: l.name}})
}

// vanish deletes a Bucket object as an impatient admin does.
func (l *life) vanish(ctx context.Context, name string) {
	b := &cosi.Bucket{ObjectMeta: meta.ObjectMeta{Name: name}}
	l.w.delete(ctx, b)
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	err := l.w.again(ctx, func() error { return l.w.client.Patch(ctx, b, strip) })
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		l.w.t.Errorf("strip Bucket %s: %v", name, err)
	}
}

func (l *life) claim(ctx context.Context) *cosi.BucketClaim {
	var c cosi.BucketClaim
	if l.w.get(ctx, types.NamespacedName{Namespace: l.w.ns, Name: l.name}, &c) {
		return &c
	}
	return nil
}

func (l *life) find(ctx context.Context) *cosi.BucketAccess {
	var a cosi.BucketAccess
	if l.w.get(ctx, types.NamespacedName{Namespace: l.w.ns, Name: l.name}, &a) {
		return &a
	}
	return nil
}

// again asks the API server until it answers: in the long campaign it dies too.
func (w *world) again(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		var answered apierrors.APIStatus
		if err == nil || ctx.Err() != nil || errors.As(err, &answered) && answered.Status().Code < 500 && answered.Status().Code != 429 {
			return err
		}
		time.Sleep(poll)
	}
}

func (w *world) get(ctx context.Context, key types.NamespacedName, o client.Object) bool {
	err := w.again(ctx, func() error { return w.client.Get(ctx, key, o) })
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		w.t.Errorf("get %T %s: %v", o, key, err)
	}
	return err == nil
}

// observe takes note of what is ready for the first time, and puts something into
// the bucket.
func (l *life) observe(ctx context.Context, claim *cosi.BucketClaim, access *cosi.BucketAccess) {
	if claim != nil && claim.DeletionTimestamp == nil && isTrue(claim.Status.ReadyToUse) && !l.saw(claim) {
		if k, err := l.seeBucket(ctx, claim); err == nil {
			l.mu.Lock()
			l.bucket, l.shown[claim.UID] = k, true
			l.mu.Unlock()
		} else if ctx.Err() == nil && !errors.Is(err, errNotNow) {
			l.wrong("claim %s is ready: %v", claim.Name, err)
		}
	}
	if access != nil && access.DeletionTimestamp == nil && isTrue(access.Status.ReadyToUse) && !l.saw(access) {
		if k, err := l.seeAccess(ctx, access); err == nil {
			l.mu.Lock()
			l.access, l.shown[access.UID] = k, true
			l.mu.Unlock()
		} else if ctx.Err() == nil {
			l.wrong("access %s is ready: %v", access.Name, err)
		}
	}
}

func (l *life) wrong(format string, args ...any) {
	if !l.careless {
		l.w.t.Errorf(format, args...)
	}
}

func (l *life) saw(o client.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown[o.GetUID()]
}

// errNotNow is an S3 server that is down for the moment, or a Bucket that somebody
// has made vanish.
var errNotNow = errors.New("not now")

func (l *life) seeBucket(ctx context.Context, claim *cosi.BucketClaim) (*kept, error) {
	var b cosi.Bucket
	if !l.w.get(ctx, types.NamespacedName{Name: claim.Status.BoundBucketName}, &b) || b.Status.BucketID == "" {
		return nil, errNotNow
	}
	k := &kept{uid: claim.UID, id: b.Status.BucketID}
	if l.d.server != nil {
		_, err := l.root().PutObject(ctx, &s3.PutObjectInput{Bucket: &k.id, Key: aws.String(object), Body: strings.NewReader(text)})
		var api interface{ ErrorCode() string }
		if err != nil && !errors.As(err, &api) {
			return nil, errNotNow
		}
		return k, err
	}
	thing, found := l.d.backend.Thing(double.Bucket, k.id)
	if !found {
		return nil, fmt.Errorf("there is no bucket %q", k.id)
	}
	k.nonce = thing.Nonce
	return k, l.d.backend.Put(k.id, object, text)
}

func (l *life) seeAccess(ctx context.Context, access *cosi.BucketAccess) (*kept, error) {
	k := &kept{uid: access.UID, id: access.Status.AccountID}
	var err error
	if k.secret, err = l.secret(ctx); err != nil {
		return nil, err
	}
	return k, l.works(ctx, k)
}

func (l *life) secret(ctx context.Context) (string, error) {
	var s core.Secret
	if !l.w.get(ctx, types.NamespacedName{Namespace: l.w.ns, Name: l.name}, &s) {
		return "", errors.New("it has no Secret")
	}
	key := string(s.Data[cosi.KeyS3AccessSecretKey])
	if key == "" || string(s.Data[cosi.ClientKeyS3AccessSecretKey]) != key || string(s.Data[cosi.KeyProtocol]) != "S3" {
		return "", errors.New("its Secret lacks a key")
	}
	return key, nil
}

// works tells whether a credential is alive, by using it where that is possible.
func (l *life) works(ctx context.Context, k *kept) error {
	if l.d.server != nil {
		_, err := l.s3(k.id, k.secret).ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(l.bucketID(ctx))})
		var api interface{ ErrorCode() string }
		if errors.As(err, &api) && api.ErrorCode() != "NoSuchBucket" {
			return fmt.Errorf("account %s is refused: %w", k.id, err)
		}
		return nil
	}
	thing, found := l.d.backend.Thing(double.Account, k.id)
	if !found {
		return fmt.Errorf("there is no account %q", k.id)
	}
	if len(thing.Keys) == 0 || thing.Keys[len(thing.Keys)-1] != k.secret {
		return fmt.Errorf("account %q has the keys %v, the Secret has %q", k.id, thing.Keys, k.secret)
	}
	return nil
}

func (l *life) bucketID(ctx context.Context) string {
	if claim := l.claim(ctx); claim != nil {
		return cosi.BucketName(claim)
	}
	return "none"
}

func (l *life) root() *s3.Client {
	return l.s3(l.d.server.Root())
}

func (l *life) s3(access, secret string) *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: aws.String(l.d.server.Endpoint()), Region: l.d.server.Region(), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""), Retryer: aws.NopRetryer{}})
}

// keep is what the oracle is to find as it was.
func (l *life) keep() []oracle.Keep {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []oracle.Keep
	if b := l.bucket; b != nil {
		all = append(all, oracle.Keep{Kind: "BucketClaim", Name: l.w.ns + "/" + l.name, Check: func(ctx context.Context) error { return l.checkBucket(ctx, b) }})
	}
	if a := l.access; a != nil {
		all = append(all, oracle.Keep{Kind: "BucketAccess", Name: l.w.ns + "/" + l.name, Check: func(ctx context.Context) error { return l.checkAccess(ctx, a) }})
	}
	return all
}

func (l *life) checkBucket(ctx context.Context, k *kept) error {
	claim := l.claim(ctx)
	if claim == nil || claim.UID != k.uid {
		return errors.New("the claim is gone, and nobody deleted it")
	}
	var b cosi.Bucket
	if !l.w.get(ctx, types.NamespacedName{Name: cosi.BucketName(claim)}, &b) || b.Status.BucketID != k.id {
		return fmt.Errorf("its Bucket has the id %q, it was %q", b.Status.BucketID, k.id)
	}
	if l.d.server != nil {
		got, err := l.root().GetObject(ctx, &s3.GetObjectInput{Bucket: &k.id, Key: aws.String(object)})
		if err != nil {
			return fmt.Errorf("its object: %w", err)
		}
		return got.Body.Close()
	}
	thing, found := l.d.backend.Thing(double.Bucket, k.id)
	if !found || thing.Nonce != k.nonce || thing.Data[object] != text {
		return fmt.Errorf("bucket %q is not the one it was (nonce %d, was %d; data %v)", k.id, thing.Nonce, k.nonce, thing.Data)
	}
	return nil
}

func (l *life) checkAccess(ctx context.Context, k *kept) error {
	access := l.find(ctx)
	if access == nil || access.UID != k.uid {
		return errors.New("the access is gone, and nobody deleted it")
	}
	if access.Status.AccountID != k.id {
		return fmt.Errorf("the account is %q, it was %q", access.Status.AccountID, k.id)
	}
	secret, err := l.secret(ctx)
	if err != nil {
		return err
	}
	if secret != k.secret {
		return errors.New("its Secret has another key than before")
	}
	return l.works(ctx, k)
}

func isTrue(b *bool) bool { return b != nil && *b }
