package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of COSI.
const GroupName = "objectstorage.k8s.io"

// Version is the version of the group that this package defines.
const Version = "v1alpha2"

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// Kind returns the full name of a kind of this package, for events, owner
// references and unstructured objects.
func Kind(kind string) schema.GroupVersionKind { return GroupVersion().WithKind(kind) }

// Resource returns the full name of a resource of this package, for errors.
func Resource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: resource}
}

// AddToScheme makes all kinds of this package known to a scheme. It always
// returns nil; the error is there to fit runtime.SchemeBuilder.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&BucketClaim{}, &BucketClaimList{},
		&Bucket{}, &BucketList{},
		&BucketClass{}, &BucketClassList{},
		&BucketAccess{}, &BucketAccessList{},
		&BucketAccessClass{}, &BucketAccessClassList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
