package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/provision"
)

// bucketKind serves Buckets. The name is that of the object: "bc-" and the UID of the claim, or what an admin chose.
type bucketKind struct{ *world }

func (bucketKind) intents() v1alpha1.Kind { return v1alpha1.KindBucket }
func (bucketKind) calls() wire.Kind       { return wire.KindBucket }

func (bucketKind) blank(key client.ObjectKey) client.Object {
	return &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
}

func (bucketKind) shown(o client.Object) (*bool, *cosi.TimestampedError) {
	b := o.(*cosi.Bucket)
	return b.Status.ReadyToUse, b.Status.Error
}

func (k bucketKind) find(ctx context.Context, r client.Reader, name provision.Name, _ *v1alpha1.Intent) (client.Object, error) {
	b := &cosi.Bucket{}
	switch err := r.Get(ctx, client.ObjectKey{Name: string(name)}, b); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Bucket %q: %w", name, err)
	case b.Spec.DriverName != k.driverName:
		return nil, nil
	}
	return b, nil
}

func (k bucketKind) view(ctx context.Context, o client.Object) (view, error) {
	b := o.(*cosi.Bucket)
	ref := b.Spec.BucketClaimRef
	v := view{
		goal:   provision.GoalWant,
		static: b.Spec.ExistingBucketID != "",
		given:  b.Spec.ExistingBucketID,
		shown:  b.Status.BucketID,
		proven: ref.UID != "" && b.Name == cosi.BucketNamePrefix+string(ref.UID),
		owner: v1alpha1.Owner{
			APIVersion: cosi.GroupVersion().String(), Kind: "Bucket", Name: b.Name, UID: b.UID,
		},
		inputs: v1alpha1.Inputs{Parameters: b.Spec.Parameters, Protocols: texts(b.Spec.Protocols)},
	}
	if !v.static {
		v.given = b.Status.BucketID
	}
	if b.DeletionTimestamp.IsZero() {
		return v, nil
	}
	// Deleting the claim drives everything: a Bucket that somebody deletes under a claim that stays, waits (KEP-1979).
	// The annotation that says so can be written by anybody; the claim can't lie.
	claim, err := k.claim(ctx, ref)
	switch {
	case err != nil:
		return v, err
	case claim != nil && claim.DeletionTimestamp.IsZero():
		v.note = note{v1alpha1.ReasonWaitsForClaim, fmt.Sprintf("this Bucket is deleted, but its BucketClaim %s/%s is not: it goes when the claim is deleted", ref.Namespace, ref.Name)}
	case b.Spec.DeletionPolicy == cosi.DeletionPolicyDelete:
		v.goal = provision.GoalDelete
	default:
		v.goal = provision.GoalKeep
	}
	return v, nil
}

// claim reads the claim of a reference from the API server; nil if it is gone, is another of the same name, or was never
// bound.
func (w *world) claim(ctx context.Context, ref cosi.BucketClaimReference) (*cosi.BucketClaim, error) {
	if ref.UID == "" {
		return nil, nil
	}
	claim := &cosi.BucketClaim{}
	switch err := w.direct.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read BucketClaim %s/%s: %w", ref.Namespace, ref.Name, err)
	case claim.UID != ref.UID:
		return nil, nil
	}
	return claim, nil
}

// admit refuses a Bucket that is neither bound to what exists nor named by its claim's UID: a driver that takes over a
// bucket of that name would hand it somebody else's data, to be deleted one day (rustfs operator#219). It also refuses
// a Bucket that a controller with an old view has made for a claim that is gone (the same race as
// external-provisioner#1469): nobody would ever delete it again.
func (k bucketKind) admit(ctx context.Context, o client.Object) (note, error) {
	b := o.(*cosi.Bucket)
	ref := b.Spec.BucketClaimRef
	if b.Status.BucketID != "" {
		return note{}, nil
	}
	if b.Spec.ExistingBucketID == "" && (ref.UID == "" || b.Name != cosi.BucketNamePrefix+string(ref.UID)) {
		return note{v1alpha1.ReasonUnproven, "a Bucket without existingBucketID is made by the controller, for a claim, and named by the claim's UID: nothing is provisioned under a name that others may have used; delete this Bucket and make a BucketClaim, or name the bucket that exists in existingBucketID"}, nil
	}
	if ref.UID == "" {
		return note{}, nil
	}
	claim, err := k.claim(ctx, ref)
	switch {
	case err != nil:
		return note{}, err
	case claim == nil:
		return note{v1alpha1.ReasonClaimGone, fmt.Sprintf("the BucketClaim %s/%s with the UID %s, for which this Bucket was made, does not exist: nothing is provisioned; delete this Bucket. If it was restored, and the bucket of its name is to stay, set its deletionPolicy to Retain first", ref.Namespace, ref.Name, ref.UID)}, nil
	case !claim.DeletionTimestamp.IsZero():
		return note{v1alpha1.ReasonClaimDeleting, fmt.Sprintf("the BucketClaim %s/%s is being deleted: nothing is provisioned for it any more", ref.Namespace, ref.Name)}, nil
	}
	return note{}, nil
}

// serve writes the Bucket's status, all of it in one request.
func (k bucketKind) serve(ctx context.Context, e *entry, r provision.Record) error {
	b := e.object.(*cosi.Bucket)
	if err := k.checkID(e, r.ID, b.Status.BucketID, "status.bucketID"); err != nil {
		return err
	}
	info := e.payload.info
	if e.payload.id != r.ID {
		info = nil
	}
	if info == nil && e.intent != nil {
		info = e.intent.Spec.Info
	}
	if info == nil {
		info = b.Status.BucketInfo // taken over: what the other orchestrator was told
	}
	protocols, err := k.protocols(e, b, r, info)
	if err != nil {
		return err
	}
	want := cosi.BucketStatus{ReadyToUse: new(bool), BucketID: r.ID, Protocols: protocols, BucketInfo: info}
	*want.ReadyToUse = true
	if n := e.view.note; !n.empty() {
		want.Error = k.timestamped(b.Status.Error, n)
	}
	if sameStatus(b.Status, want) {
		return nil
	}
	status := map[string]any{"readyToUse": true, "bucketID": r.ID, "protocols": protocols}
	if len(info) > 0 {
		replace(status, "bucketInfo", b.Status.BucketInfo, info)
	}
	if want.Error != nil || b.Status.Error != nil {
		status["error"] = want.Error
	}
	return k.patchStatus(ctx, e, status, k.blank(client.ObjectKeyFromObject(b)))
}

func sameStatus(a, b cosi.BucketStatus) bool {
	return a.ReadyToUse != nil && *a.ReadyToUse == *b.ReadyToUse && a.BucketID == b.BucketID &&
		slices.Equal(a.Protocols, b.Protocols) && maps.Equal(a.BucketInfo, b.BucketInfo) && sameError(a.Error, b.Error)
}

func sameError(a, b *cosi.TimestampedError) bool {
	return a.Reason() == b.Reason() && a.Text() == b.Text()
}

// replace sets a map in a merge patch so that keys that are gone go.
func replace(patch map[string]any, field string, old, new map[string]string) {
	m := map[string]any{}
	for key := range old {
		m[key] = nil
	}
	for key, value := range new {
		m[key] = value
	}
	patch[field] = m
}

// checkID tells whether an id can stand in a status that has another, or none.
func (w *world) checkID(e *entry, id, shown, field string) error {
	if err := cosi.CheckID(id); err != nil {
		return refuse(e, v1alpha1.ReasonIDRefused, "the driver %s answered the id %.200q, which %s can't hold: %v; it is kept in the Intent and deleted with this object; use a driver, or parameters, that give other ids", w.driverName, id, field, err)
	}
	if shown != "" && shown != id {
		return refuse(e, v1alpha1.ReasonIDFinal, "%s is %q, and can't be changed, but what was made for this object has the id %q: somebody else has written the status; delete this object and make it again", field, shown, id)
	}
	return nil
}

// protocols are those that the bucket speaks by what the driver answered. They must be those that were asked for.
func (k bucketKind) protocols(e *entry, b *cosi.Bucket, r provision.Record, info map[string]string) ([]cosi.ObjectProtocol, error) {
	spoken := spokenIn(info)
	if len(spoken) == 0 && (k.driver.Info().Dialect == wire.V1alpha1 || r.Origin != provision.OriginCreated) {
		// v1alpha1 may leave them out, and what was made elsewhere may not be asked for.
		spoken = slices.Clone(b.Status.Protocols)
		if len(spoken) == 0 {
			spoken = slices.Clone(b.Spec.Protocols)
		}
		if len(spoken) == 0 {
			for _, p := range k.driver.Info().Protocols {
				spoken = append(spoken, cosi.ObjectProtocol(p))
			}
		}
		if len(spoken) == 0 {
			spoken = []cosi.ObjectProtocol{cosi.ProtocolS3} // all that v1alpha1 drivers speak in practice
		}
	}
	if len(spoken) == 0 {
		err := refuse(e, v1alpha1.ReasonProtocolMissing, "the driver %s made the bucket %q but did not say by which protocol it is reached: a fault of the driver; the bucket is deleted with this object", k.driverName, r.ID)
		if e.payload.id != r.ID {
			return nil, provision.ErrLost // its answer was not kept: another may say more
		}
		return nil, err
	}
	for _, p := range b.Spec.Protocols {
		if !slices.Contains(spoken, p) {
			return nil, refuse(e, v1alpha1.ReasonProtocolMissing, "the driver %s made the bucket %q for %s, but %s was asked for too: use a driver or parameters for it; the bucket is deleted with this object", k.driverName, r.ID, spoken, p)
		}
	}
	slices.Sort(spoken)
	return spoken, nil
}

// patchStatus writes fields of a status and takes in the answer.
func (w *world) patchStatus(ctx context.Context, e *entry, status map[string]any, into client.Object) error {
	body := map[string]any{"status": status}
	if uid := e.object.GetUID(); uid != "" {
		body["metadata"] = map[string]any{"uid": uid} // another object of the same name is not meant
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := w.cached.Status().Patch(ctx, into, client.RawPatch(types.MergePatchType, patch)); err != nil {
		if apierrors.IsConflict(err) || otherUID(err) {
			return provision.ErrGone
		}
		return w.failed(e, "write the status", err)
	}
	e.object = into
	return nil
}

// otherUID tells whether a patch was refused because the object of that name is another one.
func otherUID(err error) bool {
	return apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) && strings.Contains(err.Error(), "metadata.uid")
}

func (bucketKind) beforeDelete(context.Context, *entry) error { return nil }

func (k bucketKind) generate(ctx context.Context, name string, in v1alpha1.Inputs) (string, error) {
	return k.driver.GenerateBucketID(ctx, k.bucketRequest(name, "", in))
}

func (k bucketKind) create(ctx context.Context, name, id string, in v1alpha1.Inputs) (payload, error) {
	b, err := k.driver.CreateBucket(ctx, k.bucketRequest(name, id, in))
	return payload{id: b.ID, info: bucketInfo(b.Info)}, err
}

func (bucketKind) bucketRequest(name, id string, in v1alpha1.Inputs) wire.BucketRequest {
	return wire.BucketRequest{Name: name, ID: id, Protocols: wireProtocols(in.Protocols), Parameters: in.Parameters}
}

func (k bucketKind) fetch(ctx context.Context, id string, in v1alpha1.Inputs) (payload, error) {
	b, err := k.driver.GetBucket(ctx, wire.GetBucketRequest{ID: id, Protocols: wireProtocols(in.Protocols), Parameters: in.Parameters})
	return payload{id: id, info: bucketInfo(b.Info)}, err
}

func (k bucketKind) remove(ctx context.Context, id string, in v1alpha1.Inputs) error {
	return k.driver.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: id, Parameters: in.Parameters})
}

func (bucketKind) ways(d wire.Info) provision.Ways {
	return provision.Ways{Fetch: d.Dialect != wire.V1alpha1}
}

func texts[T ~string](in []T) []string {
	var out []string
	for _, t := range in {
		out = append(out, string(t))
	}
	return out
}

func wireProtocols(in []string) []wire.Protocol {
	var out []wire.Protocol
	for _, p := range in {
		out = append(out, wire.Protocol(p))
	}
	return out
}
