package intents

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
)

// Owner is the API object that an Intent serves, as it is now.
type Owner struct {
	// State is what there is of it.
	State OwnerState `json:"state"`
	// Text names it for a person.
	Text string `json:"text"`
	// Claim is namespace and name of the BucketClaim of a Bucket, if it has one.
	Claim string `json:"claim,omitempty"`
	// Policy is the deletionPolicy of a Bucket.
	Policy string `json:"deletionPolicy,omitempty"`
	// Error is what its status says is in the way.
	Error string `json:"error,omitempty"`
}

// OwnerState is what there is of an owner.
type OwnerState string

// The states of an owner.
const (
	OwnerWants    OwnerState = "Wants"    // it exists and is not being deleted
	OwnerDeleting OwnerState = "Deleting" // it exists and is being deleted
	OwnerGone     OwnerState = "Gone"     // it does not exist
	OwnerReplaced OwnerState = "Replaced" // another one of that name does, which is not it
	OwnerUnknown  OwnerState = "Unknown"  // it could not be read
)

// owner reads the owner of an Intent. That it can't be read is a state, not an error:
// who may read Intents need not be allowed to read all that they serve.
func (c *Client) owner(ctx context.Context, intent *v1alpha1.Intent) Owner {
	ref := intent.Spec.Owner
	o := Owner{State: OwnerUnknown, Text: ownerText(ref)}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || ref.APIVersion == "" || ref.Name == "" {
		return o
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gv.WithKind(ref.Kind))
	err = c.api.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
	switch {
	case apierrors.IsNotFound(err):
		o.State = OwnerGone
		return o
	case meta.IsNoMatchError(err):
		o.Error = "the API does not serve " + ref.APIVersion + " " + ref.Kind
		return o
	case err != nil:
		o.Error = err.Error()
		return o
	}
	// A Bucket that its claim has made again has another UID and the same name, which
	// holds the claim's UID: it is the same one to the sidecar. See provision.HoldOwner.
	again := intent.Spec.Kind == v1alpha1.KindBucket && intent.Spec.Proven
	if u.GetUID() != ref.UID && !again {
		o.State = OwnerReplaced
		if intent.Spec.Kind != v1alpha1.KindBucket {
			o.State = OwnerGone // only a Bucket has a record by its name
		}
		return o
	}
	o.State = OwnerWants
	if u.GetDeletionTimestamp() != nil {
		o.State = OwnerDeleting
	}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, path...)
		return s
	}
	if name := text("spec", "bucketClaimRef", "name"); name != "" {
		o.Claim = text("spec", "bucketClaimRef", "namespace") + "/" + name
	}
	o.Policy, o.Error = text("spec", "deletionPolicy"), text("status", "error", "message")
	return o
}

func ownerText(ref v1alpha1.Owner) string {
	if ref.Namespace != "" {
		return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
	}
	return fmt.Sprintf("%s %s", ref.Kind, ref.Name)
}
