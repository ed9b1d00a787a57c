package sidecar

import (
	"context"
	"fmt"
	"maps"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/provision"
)

// annotationAccount on a Secret names the account whose credentials are in it.
const annotationAccount = "custody.dev/account-id"

// writeSecrets brings each Secret of an access up to the grant in hand.
func (k accessKind) writeSecrets(ctx context.Context, e *entry, a *cosi.BucketAccess, account string) error {
	all, err := k.secrets(ctx, e, a)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		want := &core.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace:   a.Namespace,
			Name:        name,
			Annotations: map[string]string{annotationAccount: account},
			// Besides saying whose it is, this has Kubernetes remove a Secret whose access was removed by force.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: cosi.GroupVersion().String(), Kind: "BucketAccess", Name: a.Name, UID: a.UID,
			}},
		}, Data: map[string][]byte{}}
		for key, value := range all[name] {
			want.Data[key] = []byte(value)
		}
		if err := k.writeSecret(ctx, e, want); err != nil {
			return err
		}
	}
	return nil
}

// writeSecret creates a Secret, or overwrites one that is this access's own. One of somebody else is never touched.
func (k accessKind) writeSecret(ctx context.Context, e *entry, want *core.Secret) error {
	key := client.ObjectKeyFromObject(want)
	err := k.direct.Create(ctx, want.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return k.failed(e, fmt.Sprintf("create the Secret %s", key), err)
	}
	have := &core.Secret{}
	if err := k.direct.Get(ctx, key, have); err != nil {
		return k.failed(e, fmt.Sprintf("read the Secret %s", key), err)
	}
	if !owned(have, accessUID(e.name)) {
		return taken(e, key)
	}
	if maps.EqualFunc(have.Data, want.Data, slices.Equal) && have.Annotations[annotationAccount] == want.Annotations[annotationAccount] {
		return nil
	}
	have.Data = want.Data
	metav1.SetMetaDataAnnotation(&have.ObjectMeta, annotationAccount, want.Annotations[annotationAccount])
	if err := k.direct.Update(ctx, have); err != nil {
		return k.failed(e, fmt.Sprintf("update the Secret %s", key), err)
	}
	return nil
}

func taken(e *entry, key client.ObjectKey) error {
	return refuse(e, v1alpha1.ReasonSecretTaken, "the Secret %s exists and is not this access's: it is left as it is; remove it, or make this access again with another accessSecretName", key)
}

// owned tells whether a Secret was made for the access with this UID.
func owned(s *core.Secret, access types.UID) bool {
	return slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == access && o.Kind == "BucketAccess" })
}

// findSecrets tells whether each Secret of an access is there, where its credentials are not in hand: ErrLost if one is
// not, or has those of another account.
func (k accessKind) findSecrets(ctx context.Context, e *entry, a *cosi.BucketAccess, r provision.Record) error {
	for _, c := range a.Spec.BucketClaims {
		key := client.ObjectKey{Namespace: a.Namespace, Name: c.AccessSecretName}
		have := &core.Secret{}
		switch err := k.direct.Get(ctx, key, have); {
		case apierrors.IsNotFound(err):
			return provision.ErrLost
		case err != nil:
			return k.failed(e, fmt.Sprintf("read the Secret %s", key), err)
		case r.Origin == provision.OriginAdopted && a.Status.ReadyToUse != nil && *a.Status.ReadyToUse:
			continue // written by the orchestrator that was here before
		case !owned(have, accessUID(e.name)):
			return taken(e, key)
		case have.Annotations[annotationAccount] != r.ID:
			return provision.ErrLost
		}
	}
	return nil
}

// deleteSecret deletes a Secret of an access. One of somebody else stays.
func (k accessKind) deleteSecret(ctx context.Context, key client.ObjectKey, access types.UID) error {
	have := &core.Secret{}
	err := k.direct.Get(ctx, key, have)
	if err == nil && owned(have, access) {
		// Upstream's sidecar puts its finalizer on Secrets, too. What was taken over has nobody else to take it off.
		if controllerutil.RemoveFinalizer(have, cosi.ProtectionFinalizer) {
			err = k.direct.Update(ctx, have)
		}
		if err == nil {
			err = k.direct.Delete(ctx, have, client.Preconditions{UID: &have.UID})
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Secret %s before its account: %w", key, err)
	}
	return nil
}
