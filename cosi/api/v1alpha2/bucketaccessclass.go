package v1alpha2

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BucketAccessClass says how access is granted: by which driver, with which kind
// of credentials, within which bounds. It never changes; to change a class, delete
// it and make it again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=baclass,categories=cosi
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, compatible with upstream COSI v1alpha2"
// +kubebuilder:printcolumn:name="DRIVER",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="AUTHENTICATION",type=string,JSONPath=`.spec.authenticationType`
// +kubebuilder:printcolumn:name="BUCKETS",type=string,JSONPath=`.spec.multiBucketAccess`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="DISALLOWED",type=string,priority=1,JSONPath=`.spec.disallowedBucketAccessModes`
type BucketAccessClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is copied into each BucketAccess of the class.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a BucketAccessClass is immutable"
	Spec BucketAccessClassSpec `json:"spec"`
}

// BucketAccessClassSpec says how access is granted.
type BucketAccessClassSpec struct {
	// driverName is the driver that grants access.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9\-\.]{0,61}[a-zA-Z0-9])?$`
	DriverName string `json:"driverName"`

	// authenticationType says how clients prove who they are.
	// +required
	AuthenticationType AuthenticationType `json:"authenticationType"`

	// parameters are handed to the driver as they are.
	// +optional
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`

	// disallowedBucketAccessModes are refused to every access of the class.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	DisallowedBucketAccessModes []AccessMode `json:"disallowedBucketAccessModes,omitempty"`

	// multiBucketAccess says whether one access may name several claims. Absent
	// means SingleBucket.
	// +optional
	MultiBucketAccess MultiBucketAccess `json:"multiBucketAccess,omitempty"`
}

// Allows tells whether the class lets an access have this mode.
func (s *BucketAccessClassSpec) Allows(mode AccessMode) bool {
	return !slices.Contains(s.DisallowedBucketAccessModes, mode)
}

// AllowsSeveralBuckets tells whether one access of the class may name more than
// one claim. A class that says nothing does not: the KEP's default is SingleBucket.
func (s *BucketAccessClassSpec) AllowsSeveralBuckets() bool {
	return s.MultiBucketAccess == MultiBucketAccessMultiple
}

// BucketAccessClassList is a list of BucketAccessClasses.
// +kubebuilder:object:root=true
type BucketAccessClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketAccessClass `json:"items"`
}
