package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketClass is a kind of bucket that users may claim. It never changes; to
// change a class, delete it and make it again. Buckets keep what they copied.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=bclass,categories=cosi
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, compatible with upstream COSI v1alpha2"
// +kubebuilder:printcolumn:name="DRIVER",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="POLICY",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is copied into each Bucket of the class.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a BucketClass is immutable"
	Spec BucketClassSpec `json:"spec"`
}

// BucketClassSpec is copied into each Bucket of the class.
type BucketClassSpec struct {
	// driverName is the driver that serves buckets of this class.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9\-\.]{0,61}[a-zA-Z0-9])?$`
	DriverName string `json:"driverName"`

	// deletionPolicy says what becomes of a Bucket and of its backend bucket when
	// the claim is deleted.
	// +required
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// parameters are handed to the driver as they are.
	// +optional
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`
}

// BucketClassList is a list of BucketClasses.
// +kubebuilder:object:root=true
type BucketClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketClass `json:"items"`
}
