package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketClaim is a user's wish for a bucket: a new one of a BucketClass, or an
// existing one that an admin has set aside.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=bclaim,categories=cosi
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, compatible with upstream COSI v1alpha2"
// +kubebuilder:printcolumn:name="READY",type=boolean,JSONPath=`.status.readyToUse`
// +kubebuilder:printcolumn:name="BUCKET",type=string,JSONPath=`.status.boundBucketName`
// +kubebuilder:printcolumn:name="CLASS",type=string,JSONPath=`.spec.bucketClassName`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="PROTOCOLS",type=string,priority=1,JSONPath=`.status.protocols`
// +kubebuilder:printcolumn:name="ERROR",type=string,priority=1,JSONPath=`.status.error.message`
type BucketClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which bucket is wanted.
	// +required
	Spec BucketClaimSpec `json:"spec"`

	// status says which bucket it became. Written by controllers only.
	// +optional
	Status BucketClaimStatus `json:"status,omitzero"`
}

// BucketClaimSpec says which bucket is wanted. It never changes.
// +kubebuilder:validation:XValidation:rule="has(self.bucketClassName) != has(self.existingBucketName)",message="exactly one of bucketClassName and existingBucketName must be set"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.bucketClassName) == has(self.bucketClassName)",message="bucketClassName cannot be added or removed later"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.existingBucketName) == has(self.existingBucketName)",message="existingBucketName cannot be added or removed later"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.protocols) == has(self.protocols)",message="protocols cannot be added or removed later"
type BucketClaimSpec struct {
	// bucketClassName is the BucketClass of which a new bucket is wanted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bucketClassName is immutable"
	BucketClassName string `json:"bucketClassName,omitempty"`

	// existingBucketName is the Bucket, made by an admin, that is wanted. The
	// Bucket's bucketClaimRef must name this claim.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="existingBucketName is immutable"
	ExistingBucketName string `json:"existingBucketName,omitempty"`

	// protocols are the protocols that the bucket must speak.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="protocols is immutable"
	Protocols []ObjectProtocol `json:"protocols,omitempty"`
}

// BucketClaimStatus says which bucket the claim became.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.boundBucketName) || has(self.boundBucketName)",message="boundBucketName cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.protocols) || has(self.protocols)",message="protocols cannot be removed once set"
type BucketClaimStatus struct {
	// boundBucketName is the Bucket that serves the claim. Final once set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="boundBucketName is immutable once set"
	BoundBucketName string `json:"boundBucketName,omitempty"`

	// readyToUse says that BucketAccesses may be granted for the claim.
	// +required
	ReadyToUse *bool `json:"readyToUse,omitempty"`

	// protocols are the protocols that the bucket speaks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Protocols []ObjectProtocol `json:"protocols,omitempty"`

	// error is what stands in the way.
	// +optional
	Error *TimestampedError `json:"error,omitempty"`
}

// BucketClaimList is a list of BucketClaims.
// +kubebuilder:object:root=true
type BucketClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketClaim `json:"items"`
}
