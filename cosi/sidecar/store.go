package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/provision"
)

// store is the door to the API server. See provision.Store for what each method promises.
type store struct{ *adapter }

var _ provision.Store = store{}

func (w *world) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.options.RequestTimeout)
}

// Load implements provision.Store. The Intent is read before the object: an object that is newer than the record can only
// make the next write fail.
func (s store) Load(ctx context.Context, name provision.Name, live bool) (provision.Record, error) {
	ctx, cancel := s.request(ctx)
	defer cancel()
	e := s.entry(name)
	r, err := s.load(ctx, e, live)
	if err != nil {
		e.answer = err.Error()
	}
	return r, err
}

func (s store) load(ctx context.Context, e *entry, live bool) (provision.Record, error) {
	var reader client.Reader = s.cached
	if live {
		reader = s.direct
	}
	intent, err := s.readIntent(ctx, reader, e.name)
	if err != nil {
		return provision.Record{}, err
	}
	object, err := s.kind.find(ctx, reader, e.name, intent)
	if err != nil {
		return provision.Record{}, err
	}
	e.intent, e.object, e.view, e.hold = intent, object, view{}, note{}
	r := provision.Record{Name: e.name}
	if object != nil {
		if e.view, err = s.kind.view(ctx, object); err != nil {
			return r, err
		}
		if other := otherWriter(object, s.started); other != "" {
			e.other = other
		}
		ours, upstream := finalizers(object)
		r.Goal, r.Bound, r.Other = e.view.goal, ours || upstream, upstream
		r.Static, r.Shown = e.view.static, e.view.shown
		if intent == nil || r.Static {
			r.Given = e.view.given
		}
		e.owner, e.inputs = e.view.owner, e.view.inputs
	}
	if intent == nil {
		return r, s.fresh(ctx, e, &r)
	}
	e.inputs = intent.Spec.Inputs
	if object == nil {
		e.owner = intent.Spec.Owner
	}
	if e.hold = s.hold(&r, intent, e); r.Hold != provision.HoldNone {
		r.Rev = intent.ResourceVersion
		return r, nil
	}
	if at := intent.Spec.ReleasedAt; at != nil {
		r.Expired = time.Since(at.Time) > s.options.Tombstone
	}
	r.Shared, err = s.shared(ctx, intent, &r, live)
	return r, err
}

// fresh fills in what holds where there is no Intent.
func (s store) fresh(ctx context.Context, e *entry, r *provision.Record) error {
	if e.object == nil {
		return nil
	}
	// An id that somebody else put there is proved to be ours only by the name that it holds.
	r.Proven = e.view.proven && !r.Static && (r.Given == "" || holds(r.Given, string(e.name)))
	if r.Goal != provision.GoalWant || e.memo.Hand.Full {
		return nil // an id that is in hand is kept whatever else is wrong
	}
	var err error
	if e.hold, err = s.kind.admit(ctx, e.object); err == nil && !e.hold.empty() {
		r.Hold = provision.HoldOwner
	}
	return err
}

// readIntent reads the Intent of a name; nil if there is none.
func (s store) readIntent(ctx context.Context, reader client.Reader, name provision.Name) (*v1alpha1.Intent, error) {
	intent := &v1alpha1.Intent{}
	key := client.ObjectKey{Name: v1alpha1.IntentName(s.kind.intents(), s.driverName, string(name))}
	switch err := reader.Get(ctx, key, intent); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read intent %q: %w", key.Name, err)
	}
	return intent, nil
}

// indexIDs is the name of the index of Intents by what they hold; its keys are made by idKey.
const indexIDs = "ids"

func idKey(k v1alpha1.Kind, id string) string { return string(k) + " " + id }

func intentIDs(o client.Object) []string {
	intent, ok := o.(*v1alpha1.Intent)
	if !ok || intent.Spec.Phase == v1alpha1.PhaseRetained {
		return nil // kept by policy, deleted by nobody
	}
	var keys []string
	for _, id := range append([]string{intent.Spec.ID}, intent.Spec.StrayIDs...) {
		if id != "" {
			keys = append(keys, idKey(intent.Spec.Kind, id))
		}
	}
	return keys
}

// shared tells whether another Intent holds one of the record's ids: neither deletes it. The cache is enough for what
// was made here, since a driver answers a new id at each create; an id that came from elsewhere may stand in an Intent
// that was written a moment ago.
func (s store) shared(ctx context.Context, intent *v1alpha1.Intent, r *provision.Record, live bool) (bool, error) {
	var others v1alpha1.IntentList
	for _, id := range r.IDs() {
		if err := s.index.List(ctx, &others, client.MatchingFields{indexIDs: idKey(s.kind.intents(), id)}, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("look for other intents with the id %q: %w", id, err)
		}
		for i := range others.Items {
			if others.Items[i].UID != intent.UID {
				return true, nil
			}
		}
	}
	if !live || r.Origin == provision.OriginCreated || r.ID == "" || r.Phase == provision.PhaseRetained {
		return false, nil
	}
	page := client.ListOptions{Limit: 500, FieldSelector: fields.OneTermEqualSelector("spec.driver", s.driverName)}
	for {
		if err := s.direct.List(ctx, &others, &page); err != nil {
			return false, fmt.Errorf("look for other intents with the ids of %q: %w", intent.Name, err)
		}
		for i := range others.Items {
			other := &others.Items[i]
			if other.UID == intent.UID {
				continue
			}
			for _, key := range intentIDs(other) {
				for _, id := range r.IDs() {
					if key == idKey(s.kind.intents(), id) {
						return true, nil
					}
				}
			}
		}
		if page.Continue = others.Continue; page.Continue == "" {
			return false, nil
		}
	}
}

// Save implements provision.Store.
func (s store) Save(ctx context.Context, r provision.Record) (string, error) {
	ctx, cancel := s.request(ctx)
	defer cancel()
	e := s.entry(r.Name)
	rev, err := s.save(ctx, e, r)
	if err == nil {
		e.refusal = note{}
	}
	return rev, err
}

func (s store) save(ctx context.Context, e *entry, r provision.Record) (string, error) {
	if r.Rev == "" {
		// Before the first Intent, so that no object with one can vanish unseen. Objects that our controller makes have
		// it from birth.
		if err := s.protect(ctx, e); err != nil {
			return "", s.failed(e, "put the finalizer on the object", err)
		}
		intent := s.newIntent(e)
		toIntent(intent, r, e, time.Now())
		if err := s.cached.Create(ctx, intent); err != nil {
			return "", s.failed(e, "create the intent", err)
		}
		e.intent = intent
		return intent.ResourceVersion, nil
	}
	if e.intent == nil || e.intent.ResourceVersion != r.Rev {
		return "", provision.ErrStale
	}
	intent := e.intent.DeepCopy()
	toIntent(intent, r, e, time.Now())
	if err := s.cached.Update(ctx, intent); err != nil {
		return "", s.failed(e, "write the intent", err)
	}
	e.intent = intent
	return intent.ResourceVersion, nil
}

// Owner implements provision.Store.
func (s store) Owner(ctx context.Context, r provision.Record) (provision.Goal, error) {
	ctx, cancel := s.request(ctx)
	defer cancel()
	e := s.entry(r.Name)
	object, err := s.kind.find(ctx, s.direct, r.Name, e.intent)
	if err != nil || object == nil {
		return provision.GoalGone, err
	}
	v, err := s.kind.view(ctx, object)
	return v.goal, err
}

// Serve implements provision.Store.
func (s store) Serve(ctx context.Context, r provision.Record) error {
	e := s.entry(r.Name)
	if e.object == nil {
		return provision.ErrGone
	}
	if e.served == e.versions() && e.view.note.empty() {
		return nil // nothing has changed since
	}
	ctx, cancel := s.request(ctx)
	defer cancel()
	if err := s.protect(ctx, e); err != nil {
		return s.failed(e, "put the finalizer on the object", err)
	}
	if err := s.kind.serve(ctx, e, r); err != nil {
		e.served = versions{}
		return err
	}
	e.served, e.refusal = e.versions(), note{}
	return nil
}

// protect puts our finalizer on an object that is wanted and lacks it.
func (s store) protect(ctx context.Context, e *entry) error {
	if e.object == nil || !e.object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if ours, _ := finalizers(e.object); ours {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// A list is replaced as a whole: with the version that it was read at, or not at all.
		"resourceVersion": e.object.GetResourceVersion(),
		"finalizers":      append(append([]string{}, e.object.GetFinalizers()...), v1alpha1.ProtectionFinalizer),
	}})
	if err != nil {
		return err
	}
	o := s.kind.blank(client.ObjectKeyFromObject(e.object))
	if err := s.cached.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	e.object = o
	return nil
}

// Free implements provision.Store: both finalizers in one request, which passes only if they are where they were read
// and the object is the same.
func (s store) Free(ctx context.Context, r provision.Record) error {
	ctx, cancel := s.request(ctx)
	defer cancel()
	e := s.entry(r.Name)
	if e.object == nil {
		return nil
	}
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	ops := []op{{"test", "/metadata/uid", e.object.GetUID()}}
	all := e.object.GetFinalizers()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == v1alpha1.ProtectionFinalizer || all[i] == cosi.ProtectionFinalizer {
			path := "/metadata/finalizers/" + strconv.Itoa(i)
			ops = append(ops, op{"test", path, all[i]}, op{"remove", path, nil})
		}
	}
	if len(ops) == 1 {
		return nil
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	o := s.kind.blank(client.ObjectKeyFromObject(e.object))
	err = s.cached.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsInvalid(err):
		return provision.ErrStale // a test failed: the finalizers, or the object, are not those that were read
	}
	return s.failed(e, "take the finalizer off the object", err)
}

// Drop implements provision.Store.
func (s store) Drop(ctx context.Context, r provision.Record) error {
	ctx, cancel := s.request(ctx)
	defer cancel()
	e := s.entry(r.Name)
	if e.intent == nil || e.intent.ResourceVersion != r.Rev {
		return provision.ErrStale
	}
	uid, rev := e.intent.UID, r.Rev
	err := s.cached.Delete(ctx, e.intent, client.Preconditions{UID: &uid, ResourceVersion: &rev})
	if err != nil {
		return s.failed(e, "delete the intent", err)
	}
	e.intent = nil
	return nil
}

// failed makes what the API server answered into what the engine knows, and keeps the text.
func (w *world) failed(e *entry, what string, err error) error {
	e.answer = fmt.Sprintf("%s: %v", what, err)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return provision.ErrStale
	case apierrors.IsNotFound(err):
		return provision.ErrGone
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		e.refusal = note{v1alpha1.ReasonAPIRefused, e.answer}
		return errors.Join(provision.ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// refuse keeps why an object can't be served.
func refuse(e *entry, word, format string, args ...any) error {
	e.refusal = note{word, fmt.Sprintf(format, args...)}
	return provision.ErrRefused
}
