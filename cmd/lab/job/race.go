package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	custody "github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/test/proxy"
)

// raceSteps play on purpose what seldom happens by chance: the race of COSI issue
// "gRPC resource provision-deprovision race condition", by each of its ways, for
// buckets and for accounts.
func (j *job) raceSteps() []step {
	return []step{
		{"race", "delete a claim while its create call runs", j.deleteDuringCreate(j.newClaim)},
		{"race", "delete an access while its grant call runs", j.deleteDuringCreate(j.newAccess)},
		{"race", "lose the reply to the write of a bucket's id", j.loseReply(j.newClaim)},
		{"race", "lose the reply to the write of an account's id", j.loseReply(j.newAccess)},
		{"race", "kill -9 the sidecar between create and write; delete the claim", j.killThenDelete},
		{"race", "kill -9 the sidecar between grant and write; keep the access", j.killThenKeep},
	}
}

func (j *job) newClaim(name string) client.Object {
	return &cosi.BucketClaim{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       cosi.BucketClaimSpec{BucketClassName: "s3", Protocols: []cosi.ObjectProtocol{cosi.ProtocolS3}},
	}
}

func (j *job) newAccess(name string) client.Object {
	return &cosi.BucketAccess{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name},
		Spec: cosi.BucketAccessSpec{
			BucketAccessClassName: "s3-key", Protocol: cosi.ProtocolS3,
			BucketClaims: []cosi.BucketClaimAccess{{BucketClaimName: "photos", AccessMode: cosi.AccessModeReadWrite, AccessSecretName: name}},
		},
	}
}

// deleteDuringCreate has the driver do its work, holds its answer back until the
// object is being deleted, and then lets it pass.
func (j *job) deleteDuringCreate(make func(name string) client.Object) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		o := make("deleted-early")
		answer := j.gate.Hold()
		defer answer.Release()
		if err := j.client.Create(ctx, o); err != nil {
			return "", err
		}
		id, err := answer.wait(ctx)
		if err != nil {
			return "", err
		}
		if err := j.mustExist(ctx, id, true); err != nil {
			return "", fmt.Errorf("the driver has done its work: %w", err)
		}
		if err := j.client.Delete(ctx, o); err != nil {
			return "", err
		}
		if err := j.await(ctx, func(ctx context.Context) (string, error) {
			if err := j.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return "", err
			}
			if o.GetDeletionTimestamp() == nil {
				return "the deletion to begin", nil
			}
			return "", nil
		}); err != nil {
			return "", err
		}
		answer.Release()
		return j.bothGone(ctx, o, id)
	}
}

// bothGone waits for the end of an object and says what is left in the backend.
func (j *job) bothGone(ctx context.Context, o client.Object, id string) (string, error) {
	if err := j.gone(ctx, o); err != nil {
		return "", err
	}
	if err := j.mustExist(ctx, id, false); err != nil {
		return "", err
	}
	return fmt.Sprintf("it was made, and it is gone: %s", short(id)), nil
}

// loseReply has the API server do the write that keeps an id, and loses the answer.
func (j *job) loseReply(make func(name string) client.Object) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		o := make("lost-reply")
		aim, err := j.aimAtID(ctx, proxy.DropReply, 1)
		if err != nil {
			return "", err
		}
		defer j.proxy.Aim(nil)
		if err := j.client.Create(ctx, o); err != nil {
			return "", err
		}
		id, err := aim.wait(ctx)
		if err != nil {
			return "", err
		}
		if err := j.ready(ctx, o); err != nil {
			return "", err
		}
		return j.served(ctx, o, id)
	}
}

// killThenDelete kills the sidecar when the driver has made a bucket and nobody has
// written its id down, deletes the claim, and starts the sidecar again.
func (j *job) killThenDelete(ctx context.Context) (string, error) {
	o := j.newClaim("killed-create")
	id, err := j.killBeforeWrite(ctx, o)
	if err != nil {
		return "", err
	}
	if err := j.client.Delete(ctx, o); err != nil {
		return "", err
	}
	if err := j.restart(ctx); err != nil {
		return "", err
	}
	return j.bothGone(ctx, o, id)
}

// killThenKeep does the same to an access that is wanted on.
func (j *job) killThenKeep(ctx context.Context) (string, error) {
	o := j.newAccess("killed-grant")
	id, err := j.killBeforeWrite(ctx, o)
	if err != nil {
		return "", err
	}
	if err := j.restart(ctx); err != nil {
		return "", err
	}
	if err := j.ready(ctx, o); err != nil {
		return "", err
	}
	return j.served(ctx, o, id)
}

// killBeforeWrite makes an object, lets no write of its id through, and kills the
// sidecar when it tries the first.
func (j *job) killBeforeWrite(ctx context.Context, o client.Object) (id string, err error) {
	const all = 1 << 30
	aim, err := j.aimAtID(ctx, proxy.DropRequest, all)
	if err != nil {
		return "", err
	}
	defer j.proxy.Aim(nil)
	if err := j.client.Create(ctx, o); err != nil {
		return "", err
	}
	if id, err = aim.wait(ctx); err != nil {
		return "", err
	}
	if err := j.stack.End(j.sidecar, j.sidecar.Kill); err != nil {
		return "", err
	}
	if err := j.mustExist(ctx, id, true); err != nil {
		return "", fmt.Errorf("the driver has done its work: %w", err)
	}
	intent := &custody.Intent{}
	if err := j.client.Get(ctx, client.ObjectKey{Name: id}, intent); err != nil {
		return "", err
	}
	if intent.Spec.ID != "" {
		return "", fmt.Errorf("the id %s was written down before the kill, so this shows nothing", intent.Spec.ID)
	}
	return id, nil
}

func (j *job) restart(ctx context.Context) (err error) {
	j.sidecar, err = j.stack.Start(ctx, j.command)
	return err
}

// served says what an object that is ready has, and fails if that isn't what was
// made first. Its account, if it is one, is used.
func (j *job) served(ctx context.Context, o client.Object, id string) (string, error) {
	switch o := o.(type) {
	case *cosi.BucketClaim:
		if o.Status.BoundBucketName != id {
			return "", fmt.Errorf("it was made as %s, and the claim is bound to %s", id, o.Status.BoundBucketName)
		}
	case *cosi.BucketAccess:
		if o.Status.AccountID != id {
			return "", fmt.Errorf("it was made as %s, and the access has %s", id, o.Status.AccountID)
		}
		secret := &core.Secret{}
		if err := j.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.Name}, secret); err != nil {
			return "", err
		}
		user, err := userOf(secret)
		if err != nil {
			return "", err
		}
		if err := use(ctx, cosi.AccessModeReadWrite, user); err != nil {
			return "", err
		}
		j.old = append(j.old, user)
	}
	return "ready, with the one that was made: " + short(id), nil
}

// aim is a fault that waits for its request.
type aim struct {
	once sync.Once
	met  chan string // gets the name of the Intent
}

// aimAtID has a fault befall the sidecar's next writes that keep an id, so many of
// them: updates of an Intent that doesn't exist yet.
func (j *job) aimAtID(ctx context.Context, fault proxy.Fault, times int) (*aim, error) {
	intents := &custody.IntentList{}
	if err := j.client.List(ctx, intents); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, i := range intents.Items {
		known[i.Name] = true
	}
	a := &aim{met: make(chan string, 1)}
	j.proxy.Aim(func(r proxy.Request) (proxy.Fault, bool) { // one at a time, says the proxy
		write := r.Verb == "update" || r.Verb == "patch"
		if r.Client != j.door.Name || !write || r.Resource != "intents" || known[r.Name] || times == 0 {
			return proxy.None, false
		}
		times--
		a.once.Do(func() { a.met <- r.Name })
		return fault, true
	})
	return a, nil
}

func (a *aim) wait(ctx context.Context) (name string, err error) {
	select {
	case name := <-a.met:
		return name, nil
	case <-time.After(patience):
		return "", errors.New("the sidecar wrote no id within " + patience.String())
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// mustExist fails if a bucket or an account is not in the backend as it should be.
func (j *job) mustExist(ctx context.Context, id string, want bool) error {
	items, err := j.inventory().Items(ctx)
	if err != nil {
		return err
	}
	there := false
	for _, item := range items {
		there = there || item.ID == id
	}
	switch {
	case there && !want:
		return fmt.Errorf("%s is still in the backend", id)
	case !there && want:
		return fmt.Errorf("%s is not in the backend", id)
	}
	return nil
}

// short is an id as a table has room for it.
func short(id string) string {
	if prefix, uid, ok := strings.Cut(id, "-"); ok && len(uid) > 8 {
		return prefix + "-" + uid[:8]
	}
	return id
}
