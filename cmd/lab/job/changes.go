package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	custody "github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/cmd/lab/show"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// patience is how long one step may wait for something to come true.
const patience = 90 * time.Second

// watchAll has news arrive whenever an object changes that a step may wait for.
func (j *job) watchAll(ctx context.Context) error {
	for _, list := range []client.ObjectList{&cosi.BucketClaimList{}, &cosi.BucketList{}, &cosi.BucketAccessList{}, &custody.IntentList{}} {
		changes, err := j.client.Watch(ctx, list)
		if err != nil {
			return fmt.Errorf("watch %T: %w", list, err)
		}
		go func() {
			defer changes.Stop()
			for range changes.ResultChan() {
				select {
				case j.news <- struct{}{}:
				default:
				}
			}
		}()
	}
	return nil
}

// await asks at once and after each change, until nothing is waited for any more.
func (j *job) await(ctx context.Context, ask func(context.Context) (waiting string, err error)) error {
	enough := errors.New("that took longer than " + patience.String())
	ctx, cancel := context.WithTimeoutCause(ctx, patience, enough)
	defer cancel()
	var work *show.Work
	for {
		waiting, err := ask(ctx)
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), enough) {
			return context.Cause(ctx)
		}
		if err != nil || waiting == "" {
			return err
		}
		if work == nil {
			work = j.work
		}
		if work != nil {
			work.Note("waiting for %s", waiting)
		}
		select {
		case <-j.news:
		case <-time.After(time.Second): // what isn't watched, such as the backend
		case err := <-j.stack.Died():
			return err
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", waiting, context.Cause(ctx))
		}
	}
}

// ready waits until claims and accesses are ready.
func (j *job) ready(ctx context.Context, objects ...client.Object) error {
	return j.await(ctx, func(ctx context.Context) (string, error) {
		for _, o := range objects {
			if err := j.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return "", err
			}
			ready, why := readiness(o)
			if !ready {
				return fmt.Sprintf("%s %s%s", kindOf(o), o.GetName(), why), nil
			}
		}
		return "", nil
	})
}

// gone waits until objects are gone.
func (j *job) gone(ctx context.Context, objects ...client.Object) error {
	return j.await(ctx, func(ctx context.Context) (string, error) {
		for _, o := range objects {
			err := j.client.Get(ctx, client.ObjectKeyFromObject(o), o)
			if client.IgnoreNotFound(err) != nil {
				return "", err
			}
			if err == nil {
				_, why := readiness(o)
				return fmt.Sprintf("the end of %s %s%s", kindOf(o), o.GetName(), why), nil
			}
		}
		return "", nil
	})
}

// readiness tells whether an object is ready, and what it shows as being in the way.
func readiness(o client.Object) (ready bool, why string) {
	var r *bool
	var e *cosi.TimestampedError
	switch o := o.(type) {
	case *cosi.BucketClaim:
		r, e = o.Status.ReadyToUse, o.Status.Error
	case *cosi.Bucket:
		r, e = o.Status.ReadyToUse, o.Status.Error
	case *cosi.BucketAccess:
		r, e = o.Status.ReadyToUse, o.Status.Error
	}
	if e != nil && e.Message != nil {
		why = " (" + *e.Message + ")"
	}
	return r != nil && *r, why
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *cosi.BucketClaim:
		return "BucketClaim"
	case *cosi.Bucket:
		return "Bucket"
	case *cosi.BucketAccess:
		return "BucketAccess"
	}
	return fmt.Sprintf("%T", o)
}
