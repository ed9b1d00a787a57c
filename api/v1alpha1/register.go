package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of what Custody adds to Kubernetes.
const GroupName = "custody.dev"

// Version is the version of the group that this package defines. It is not the
// format of an Intent: see FormatVersion.
const Version = "v1alpha1"

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// Resource returns the full name of a resource of this package, for errors.
func Resource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: resource}
}

// AddToScheme makes all kinds of this package known to a scheme. It always
// returns nil; the error is there to fit runtime.SchemeBuilder.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &Intent{}, &IntentList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
