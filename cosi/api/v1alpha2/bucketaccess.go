package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketAccess is a user's wish for an account in the backend that may use the
// buckets of one or more BucketClaims of the same namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=baccess,categories=cosi
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, compatible with upstream COSI v1alpha2"
// +kubebuilder:printcolumn:name="READY",type=boolean,JSONPath=`.status.readyToUse`
// +kubebuilder:printcolumn:name="PROTOCOL",type=string,JSONPath=`.spec.protocol`
// +kubebuilder:printcolumn:name="CLASS",type=string,JSONPath=`.spec.bucketAccessClassName`
// +kubebuilder:printcolumn:name="DRIVER",type=string,JSONPath=`.status.driverName`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ACCOUNT",type=string,priority=1,JSONPath=`.status.accountID`
// +kubebuilder:printcolumn:name="CLAIMS",type=string,priority=1,JSONPath=`.spec.bucketClaims[*].bucketClaimName`
// +kubebuilder:printcolumn:name="ERROR",type=string,priority=1,JSONPath=`.status.error.message`
type BucketAccess struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which access is wanted.
	// +required
	Spec BucketAccessSpec `json:"spec"`

	// status says which account it became. Written by controller and sidecar only.
	// +optional
	Status BucketAccessStatus `json:"status,omitzero"`
}

// BucketAccessSpec says which access is wanted. It never changes.
// +kubebuilder:validation:XValidation:rule="has(oldSelf.serviceAccountName) == has(self.serviceAccountName)",message="serviceAccountName cannot be added or removed later"
type BucketAccessSpec struct {
	// bucketClaims are the claims whose buckets the account may use.
	// +required
	// +listType=map
	// +listMapKey=bucketClaimName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bucketClaims is immutable"
	BucketClaims []BucketClaimAccess `json:"bucketClaims"`

	// bucketAccessClassName is the BucketAccessClass by which access is granted.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bucketAccessClassName is immutable"
	BucketAccessClassName string `json:"bucketAccessClassName"`

	// protocol is the protocol that the account uses.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="protocol is immutable"
	Protocol ObjectProtocol `json:"protocol"`

	// serviceAccountName is the ServiceAccount of the Pods that will use the
	// buckets. Needed where the class says ServiceAccount, else ignored.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serviceAccountName is immutable"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BucketClaimAccess is one claim of an access: what may be done with its bucket
// and where the result is put.
type BucketClaimAccess struct {
	// bucketClaimName is a claim in the namespace of the access.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	BucketClaimName string `json:"bucketClaimName"`

	// accessMode says what the account may do with the objects of the bucket.
	// +required
	AccessMode AccessMode `json:"accessMode"`

	// accessSecretName is the Secret, made in the namespace of the access, that
	// gets the bucket info and the credentials. It must not exist already.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	AccessSecretName string `json:"accessSecretName"`
}

// BucketAccessStatus says which account the access became. All but readyToUse and
// error is final once set.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.accountID) || has(self.accountID)",message="accountID cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.accessedBuckets) || has(self.accessedBuckets)",message="accessedBuckets cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.driverName) || has(self.driverName)",message="driverName cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.authenticationType) || has(self.authenticationType)",message="authenticationType cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.parameters) || has(self.parameters)",message="parameters cannot be removed once set"
type BucketAccessStatus struct {
	// readyToUse says that the Secrets are there and the credentials work.
	// +required
	ReadyToUse *bool `json:"readyToUse,omitempty"`

	// accountID is the driver's id of the account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="accountID is immutable once set"
	AccountID string `json:"accountID,omitempty"`

	// accessedBuckets are the buckets behind the claims of the spec. Set by the
	// controller when it hands the access over to the sidecar.
	// +optional
	// +listType=map
	// +listMapKey=bucketName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="accessedBuckets is immutable once set"
	AccessedBuckets []AccessedBucket `json:"accessedBuckets,omitempty"`

	// driverName is copied from the class. Once set, the sidecar manages the
	// access.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9\-\.]{0,61}[a-zA-Z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="driverName is immutable once set"
	DriverName string `json:"driverName,omitempty"`

	// authenticationType is copied from the class.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="authenticationType is immutable once set"
	AuthenticationType AuthenticationType `json:"authenticationType,omitempty"`

	// parameters are copied from the class.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="parameters is immutable once set"
	Parameters map[string]string `json:"parameters,omitempty"`

	// error is what stands in the way.
	// +optional
	Error *TimestampedError `json:"error,omitempty"`
}

// AccessedBucket is the Bucket behind one claim of an access.
type AccessedBucket struct {
	// bucketName is the Bucket object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	BucketName string `json:"bucketName"`

	// bucketID is the driver's id of the bucket.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	BucketID string `json:"bucketID"`

	// bucketClaimName is the claim of the spec that led here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a DNS subdomain: lower-case letters, digits, - and ."
	BucketClaimName string `json:"bucketClaimName"`
}

// BucketAccessList is a list of BucketAccesses.
// +kubebuilder:object:root=true
type BucketAccessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketAccess `json:"items"`
}
