package sidecar

import (
	"context"
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

// accessKind serves BucketAccesses. The name is "ba-" and the UID of the object, so an object that is deleted and made
// again under the same name is another record.
type accessKind struct {
	*world
	entries *entries
	ca      string // PEM, "" for none
}

// ParameterCA is the parameter of a BucketAccessClass that holds the certificates which workloads need to trust the
// object store, in PEM. It goes before --ca-file.
const ParameterCA = "custody.dev/certificate-authority"

// roleOutput marks, among an Intent's Secrets, those that are written for workloads.
const roleOutput = "output"

func (accessKind) intents() v1alpha1.Kind { return v1alpha1.KindAccess }
func (accessKind) calls() wire.Kind       { return wire.KindAccount }

func (accessKind) blank(key client.ObjectKey) client.Object {
	return &cosi.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

func (accessKind) shown(o client.Object) (*bool, *cosi.TimestampedError) {
	a := o.(*cosi.BucketAccess)
	return a.Status.ReadyToUse, a.Status.Error
}

// accessUID is the UID that a name holds.
func accessUID(name provision.Name) types.UID {
	return types.UID(strings.TrimPrefix(string(name), cosi.AccountNamePrefix))
}

func (k accessKind) find(ctx context.Context, r client.Reader, name provision.Name, intent *v1alpha1.Intent) (client.Object, error) {
	uid := accessUID(name)
	key, ok := k.entries.placed(uid)
	if !ok && intent != nil {
		key, ok = client.ObjectKey{Namespace: intent.Spec.Owner.Namespace, Name: intent.Spec.Owner.Name}, true
	}
	if !ok || key.Name == "" {
		return nil, nil
	}
	a := &cosi.BucketAccess{}
	switch err := r.Get(ctx, key, a); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read BucketAccess %s: %w", key, err)
	case a.UID != uid:
		return nil, nil // deleted, and another made under its name
	case a.Status.DriverName != k.driverName && (a.Status.DriverName != "" || intent == nil):
		return nil, nil // another driver's, or not handed over
	}
	return a, nil
}

func (k accessKind) view(_ context.Context, o client.Object) (view, error) {
	a := o.(*cosi.BucketAccess)
	v := view{
		goal:   provision.GoalWant,
		given:  a.Status.AccountID,
		shown:  a.Status.AccountID,
		proven: true,
		owner: v1alpha1.Owner{
			APIVersion: cosi.GroupVersion().String(), Kind: "BucketAccess", Namespace: a.Namespace, Name: a.Name, UID: a.UID,
		},
		inputs: v1alpha1.Inputs{
			Parameters:         a.Status.Parameters,
			Protocol:           string(a.Spec.Protocol),
			AuthenticationType: string(a.Status.AuthenticationType),
			ServiceAccountName: a.Spec.ServiceAccountName,
		},
	}
	if !a.DeletionTimestamp.IsZero() {
		v.goal = provision.GoalDelete
	}
	for _, c := range a.Spec.BucketClaims {
		v.inputs.SecretRefs = append(v.inputs.SecretRefs, v1alpha1.SecretReference{Namespace: a.Namespace, Name: c.AccessSecretName, Role: roleOutput})
		if bucket := accessed(a, c); bucket != nil {
			v.inputs.Buckets = append(v.inputs.Buckets, v1alpha1.BucketInput{BucketID: bucket.BucketID, AccessMode: string(c.AccessMode)})
		}
	}
	return v, nil
}

// accessed is the Bucket behind a claim of an access, as the controller has handed it over.
func accessed(a *cosi.BucketAccess, c cosi.BucketClaimAccess) *cosi.AccessedBucket {
	for i := range a.Status.AccessedBuckets {
		if a.Status.AccessedBuckets[i].BucketClaimName == c.BucketClaimName {
			return &a.Status.AccessedBuckets[i]
		}
	}
	return nil
}

// admit compares what the access says of its Buckets with the Buckets and the claims. The status of an access may be
// writable for more people than we know of, and what it says would open any bucket of the driver.
func (k accessKind) admit(ctx context.Context, o client.Object) (note, error) {
	a := o.(*cosi.BucketAccess)
	if a.Status.DriverName != k.driverName {
		return note{v1alpha1.ReasonNotHandedOver, "status.driverName is not set: the controller has not prepared this access"}, nil
	}
	mismatch := func(format string, args ...any) note {
		return note{v1alpha1.ReasonBucketMismatch, fmt.Sprintf(format, args...) + "; access is not granted: delete this BucketAccess and make it again"}
	}
	for _, c := range a.Spec.BucketClaims {
		said := accessed(a, c)
		if said == nil {
			return mismatch("status.accessedBuckets has no bucket for the BucketClaim %q", c.BucketClaimName), nil
		}
		b := &cosi.Bucket{}
		if err := k.direct.Get(ctx, client.ObjectKey{Name: said.BucketName}, b); apierrors.IsNotFound(err) {
			return mismatch("status.accessedBuckets names the Bucket %q, which does not exist", said.BucketName), nil
		} else if err != nil {
			return note{}, fmt.Errorf("read Bucket %q: %w", said.BucketName, err)
		}
		ref := b.Spec.BucketClaimRef
		switch {
		case ref.Namespace != a.Namespace || ref.Name != c.BucketClaimName:
			return mismatch("status.accessedBuckets says that the BucketClaim %q has the Bucket %q, but that is of the BucketClaim %s/%s", c.BucketClaimName, b.Name, ref.Namespace, ref.Name), nil
		case b.Spec.DriverName != k.driverName:
			return mismatch("the Bucket %q is of the driver %s, not of %s", b.Name, b.Spec.DriverName, k.driverName), nil
		case b.Status.BucketID != said.BucketID:
			return mismatch("status.accessedBuckets says that the Bucket %q has the id %q, but it is %q", b.Name, said.BucketID, b.Status.BucketID), nil
		}
		claim, err := k.claim(ctx, ref)
		if err != nil {
			return note{}, err
		}
		if claim == nil {
			return mismatch("the Bucket %q is of an earlier BucketClaim of the name %q (UID %s)", b.Name, ref.Name, ref.UID), nil
		}
	}
	return note{}, nil
}

// serve writes the Secrets and then the status: who sees the access ready finds them.
func (k accessKind) serve(ctx context.Context, e *entry, r provision.Record) error {
	a := e.object.(*cosi.BucketAccess)
	if err := k.checkID(e, r.ID, a.Status.AccountID, "status.accountID"); err != nil {
		return err
	}
	if e.payload.id == r.ID && e.payload.grant != nil {
		if err := k.writeSecrets(ctx, e, a, r.ID); err != nil {
			return err
		}
		e.payload = payload{id: r.ID} // the credentials are where they belong
	} else if err := k.findSecrets(ctx, e, a, r); err != nil {
		return err
	}
	if ready := a.Status.ReadyToUse; ready != nil && *ready && a.Status.AccountID == r.ID && a.Status.Error == nil {
		return nil
	}
	status := map[string]any{"readyToUse": true, "accountID": r.ID}
	if a.Status.Error != nil {
		status["error"] = nil
	}
	return k.patchStatus(ctx, e, status, k.blank(client.ObjectKeyFromObject(a)))
}

// secrets gives what goes into each Secret of an access, by the Secret's name.
func (k accessKind) secrets(ctx context.Context, e *entry, a *cosi.BucketAccess) (map[string]map[string]string, error) {
	grant := e.payload.grant
	protocol := a.Spec.Protocol
	creds := credentials(protocol, grant.Credentials)
	if creds == nil && a.Status.AuthenticationType != cosi.AuthenticationTypeServiceAccount {
		return nil, refuse(e, v1alpha1.ReasonCredentialsMissing, "the driver %s granted the account %q but gave no %s credentials: a fault of the driver; the account is deleted with this object", k.driverName, e.payload.id, protocol)
	}
	ca := k.ca
	if own := a.Status.Parameters[ParameterCA]; own != "" {
		if err := checkCertificates(own); err != nil {
			return nil, refuse(e, v1alpha1.ReasonAPIRefused, "the class's parameter %s: %v; mend the class and make this access again", ParameterCA, err)
		}
		ca = own
	}
	all := map[string]map[string]string{}
	for _, c := range a.Spec.BucketClaims {
		bucket := accessed(a, c)
		if bucket == nil {
			return nil, refuse(e, v1alpha1.ReasonNotHandedOver, "status.accessedBuckets has no bucket for the BucketClaim %q", c.BucketClaimName)
		}
		info, err := k.infoOf(ctx, grant, bucket, protocol)
		if err != nil {
			return nil, err
		}
		fields := info
		maps.Copy(fields, creds)
		fields = cosi.AddClientKeys(fields)
		put(fields, cosi.KeyProtocol, string(protocol), cosi.KeyCertificateAuthority, ca)
		if _, twice := all[c.AccessSecretName]; twice {
			return nil, refuse(e, v1alpha1.ReasonSecretTaken, "the Secret %q is named for two BucketClaims of this access: each needs its own", c.AccessSecretName)
		}
		all[c.AccessSecretName] = fields
	}
	return all, nil
}

// infoOf is how a bucket is reached: what the Bucket's status says, and over it what the grant says.
func (k accessKind) infoOf(ctx context.Context, grant *wire.Grant, bucket *cosi.AccessedBucket, p cosi.ObjectProtocol) (map[string]string, error) {
	info := map[string]string{}
	b := &cosi.Bucket{}
	if err := k.cached.Get(ctx, client.ObjectKey{Name: bucket.BucketName}, b); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Bucket %q: %w", bucket.BucketName, err)
	}
	if b.Status.BucketID == bucket.BucketID {
		maps.Copy(info, only(b.Status.BucketInfo, p))
	}
	if i := slices.IndexFunc(grant.Buckets, func(g wire.Bucket) bool { return g.ID == bucket.BucketID }); i >= 0 {
		maps.Copy(info, only(bucketInfo(grant.Buckets[i].Info), p))
	}
	return info, nil
}

// beforeDelete removes the Secrets: whoever reads one must find credentials that work (KEP-1979: the Secret goes before
// the revoke). It is done here, right before the driver's call, and not when the deletion is written down: that stays one
// request, and a crash between the two repeats this. An access that is revoked only to be granted anew keeps them; they
// are overwritten.
func (k accessKind) beforeDelete(ctx context.Context, e *entry) error {
	if e.memo.Rec.Goal == provision.GoalWant || e.wiped {
		return nil
	}
	for _, ref := range e.inputs.SecretRefs {
		if ref.Role != roleOutput {
			continue
		}
		if err := k.deleteSecret(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, accessUID(e.name)); err != nil {
			return err
		}
	}
	e.wiped = true
	return nil
}

func (k accessKind) generate(ctx context.Context, name string, in v1alpha1.Inputs) (string, error) {
	return k.driver.GenerateAccountID(ctx, grantRequest(name, "", in))
}

func (k accessKind) create(ctx context.Context, name, id string, in v1alpha1.Inputs) (payload, error) {
	g, err := k.driver.GrantAccess(ctx, grantRequest(name, id, in))
	return payload{id: g.AccountID, grant: &g}, err
}

func (accessKind) fetch(context.Context, string, v1alpha1.Inputs) (payload, error) {
	return payload{}, wire.ErrNotOffered
}

func (k accessKind) remove(ctx context.Context, id string, in v1alpha1.Inputs) error {
	req := wire.RevokeRequest{
		AccountID: id, Protocol: wire.Protocol(in.Protocol), Authentication: wire.AuthenticationType(in.AuthenticationType),
		ServiceAccountName: in.ServiceAccountName, Parameters: in.Parameters,
	}
	for _, b := range in.Buckets {
		req.BucketIDs = append(req.BucketIDs, b.BucketID)
	}
	return k.driver.RevokeAccess(ctx, req)
}

func (accessKind) ways(wire.Info) provision.Ways { return provision.Ways{Remake: true} }

func grantRequest(name, id string, in v1alpha1.Inputs) wire.GrantRequest {
	req := wire.GrantRequest{
		Name: name, ID: id, Protocol: wire.Protocol(in.Protocol), Authentication: wire.AuthenticationType(in.AuthenticationType),
		ServiceAccountName: in.ServiceAccountName, Parameters: in.Parameters,
	}
	for _, b := range in.Buckets {
		req.Buckets = append(req.Buckets, wire.AccessedBucket{ID: b.BucketID, Mode: wire.AccessMode(b.AccessMode)})
	}
	return req
}
