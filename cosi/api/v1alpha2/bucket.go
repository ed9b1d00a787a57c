package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bucket is one bucket of a backend. The controller makes it for a BucketClaim; an
// admin makes it by hand to set aside a bucket that exists already.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bkt,categories=cosi
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, compatible with upstream COSI v1alpha2"
// +kubebuilder:printcolumn:name="READY",type=boolean,JSONPath=`.status.readyToUse`
// +kubebuilder:printcolumn:name="DRIVER",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="POLICY",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="NAMESPACE",type=string,JSONPath=`.spec.bucketClaimRef.namespace`
// +kubebuilder:printcolumn:name="CLAIM",type=string,JSONPath=`.spec.bucketClaimRef.name`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ID",type=string,priority=1,JSONPath=`.status.bucketID`
// +kubebuilder:printcolumn:name="PROTOCOLS",type=string,priority=1,JSONPath=`.status.protocols`
// +kubebuilder:printcolumn:name="ERROR",type=string,priority=1,JSONPath=`.status.error.message`
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the bucket is to be.
	// +required
	Spec BucketSpec `json:"spec"`

	// status says what it is in the backend. Written by the sidecar only.
	// +optional
	Status BucketStatus `json:"status,omitzero"`
}

// BucketSpec says what the bucket is to be. Only deletionPolicy changes later, and
// the claim's UID, which may be set once.
// +kubebuilder:validation:XValidation:rule="has(oldSelf.parameters) == has(self.parameters)",message="parameters cannot be added or removed later"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.protocols) == has(self.protocols)",message="protocols cannot be added or removed later"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.existingBucketID) == has(self.existingBucketID)",message="existingBucketID cannot be added or removed later"
type BucketSpec struct {
	// driverName is the driver that serves the bucket.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9\-\.]{0,61}[a-zA-Z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="driverName is immutable"
	DriverName string `json:"driverName"`

	// deletionPolicy says what becomes of this object and of the backend bucket
	// when the claim is deleted. An admin may change it at any time.
	// +required
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// parameters are handed to the driver as they are.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="parameters is immutable"
	Parameters map[string]string `json:"parameters,omitempty"`

	// protocols are the protocols that the bucket must speak.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="protocols is immutable"
	Protocols []ObjectProtocol `json:"protocols,omitempty"`

	// bucketClaimRef is the one claim that may bind to this bucket.
	// +required
	BucketClaimRef BucketClaimReference `json:"bucketClaimRef"`

	// existingBucketID is the driver's id of a bucket that exists already. Set for
	// static provisioning only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="existingBucketID is immutable"
	ExistingBucketID string `json:"existingBucketID,omitempty"`
}

// BucketClaimReference names a BucketClaim.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.uid) || has(self.uid)",message="uid cannot be removed once set"
type BucketClaimReference struct {
	// name of the claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name is immutable"
	Name string `json:"name"`

	// namespace of the claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be a DNS label: lower-case letters, digits and -"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="namespace is immutable"
	Namespace string `json:"namespace"`

	// uid of the claim. An admin leaves it out; it is set when the claim binds.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="uid is immutable once set"
	UID types.UID `json:"uid,omitempty"`
}

// BucketStatus says what the bucket is in the backend.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.bucketID) || has(self.bucketID)",message="bucketID cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.protocols) || has(self.protocols)",message="protocols cannot be removed once set"
type BucketStatus struct {
	// readyToUse says that the bucket exists and may be bound.
	// +required
	ReadyToUse *bool `json:"readyToUse,omitempty"`

	// bucketID is the driver's id of the bucket. Final once set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bucketID is immutable once set"
	BucketID string `json:"bucketID,omitempty"`

	// protocols are the protocols that the bucket speaks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Protocols []ObjectProtocol `json:"protocols,omitempty"`

	// bucketInfo is what a client needs to find the bucket, by the keys that are
	// also used in Secrets. It never holds credentials.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=128
	BucketInfo map[string]string `json:"bucketInfo,omitempty"`

	// error is what stands in the way.
	// +optional
	Error *TimestampedError `json:"error,omitempty"`
}

// BucketList is a list of Buckets.
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bucket `json:"items"`
}
