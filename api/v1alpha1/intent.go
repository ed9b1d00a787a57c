package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Intent says that something was asked of a driver, or is about to be, and all
// that is needed to find it again and delete it. It is written by Custody only and
// is not deleted with the object that it serves.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=custody
// +kubebuilder:selectablefield:JSONPath=`.spec.driver`
// +kubebuilder:selectablefield:JSONPath=`.spec.phase`
// +kubebuilder:printcolumn:name="DRIVER",type=string,JSONPath=`.spec.driver`
// +kubebuilder:printcolumn:name="KIND",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.spec.phase`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.spec.id`
// +kubebuilder:printcolumn:name="DOUBT",type=boolean,JSONPath=`.spec.doubt`
// +kubebuilder:printcolumn:name="OWNER",type=string,JSONPath=`.spec.owner.name`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="NAMESPACE",type=string,priority=1,JSONPath=`.spec.owner.namespace`
// +kubebuilder:printcolumn:name="STRAYS",type=string,priority=1,JSONPath=`.spec.strayIDs`
// +kubebuilder:printcolumn:name="STUCK",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Stuck")].reason`
type Intent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the record. It is written in one request, so that it is never half
	// old and half new.
	// +required
	Spec IntentSpec `json:"spec"`

	// status is for people. Nothing is decided from it.
	// +optional
	Status IntentStatus `json:"status,omitzero"`
}

// IntentSpec is the record of one thing in a backend.
//
// The rules that name a format hold for that format only: what a newer program has
// written must stay storable when the definition is an older one. For the same
// reason unknown fields are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || (has(self.phase) && self.phase in ['Making', 'Live', 'Deleting', 'Released', 'Sweeping', 'Retained'])",message="phase must be one of Making, Live, Deleting, Released, Sweeping, Retained"
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || (has(self.origin) && self.origin in ['Created', 'Static', 'Adopted'])",message="origin must be one of Created, Static, Adopted"
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || self.kind in ['Bucket', 'Access', 'Volume', 'Snapshot']",message="kind must be one of Bucket, Access, Volume, Snapshot"
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || !has(self.word) || self.word in ['Delete', 'Release', 'Retry']",message="word must be one of Delete, Release, Retry"
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || !has(self.phase) || !(self.phase in ['Released', 'Sweeping']) || has(self.releasedAt)",message="releasedAt must be set in the phases Released and Sweeping"
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || !has(self.phase) || self.phase != 'Live' || has(self.id)",message="id must be set in the phase Live"
// +kubebuilder:validation:XValidation:rule="self.formatVersion > 1 || !has(oldSelf.doubt) || !oldSelf.doubt || (has(self.doubt) && self.doubt)",message="doubt cannot be cleared"
// +kubebuilder:validation:XValidation:rule="self.formatVersion >= oldSelf.formatVersion",message="formatVersion cannot go back"
type IntentSpec struct {
	// formatVersion is the format of this record. See ReadFormat.
	// +required
	// +kubebuilder:validation:Minimum=1
	FormatVersion int32 `json:"formatVersion"`

	// clusterUID is the UID of the namespace kube-system of the cluster whose
	// record this is. A record that was restored into another cluster is left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterUID is immutable"
	ClusterUID string `json:"clusterUID"`

	// owner is the API object that is served.
	// +required
	Owner Owner `json:"owner"`

	// kind is what was asked for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="kind is immutable"
	Kind Kind `json:"kind"`

	// driver is the driver that was asked.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9\-\.]{0,61}[a-zA-Z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="driver is immutable"
	Driver string `json:"driver"`

	// name is the idempotency key by which the driver was asked.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name is immutable"
	Name string `json:"name"`

	// phase is how far the record has come.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Phase Phase `json:"phase,omitempty"`

	// origin says who made the thing.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Origin Origin `json:"origin,omitempty"`

	// id is the driver's id of the thing that serves. Any text that a driver
	// answers fits, one that the driver's own API refuses too: it is needed to
	// delete the thing.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	ID string `json:"id,omitempty"`

	// strayIDs are further ids that were answered under this name. Each is to be
	// deleted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=65536
	StrayIDs []string `json:"strayIDs,omitempty"`

	// attempt is the nonce of the create call that is open, if any.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Attempt string `json:"attempt,omitempty"`

	// doubt says that some create call was never heard of: it may still land. It
	// is never cleared.
	// +optional
	Doubt bool `json:"doubt,omitempty"`

	// missed says that a create call was answered, but not with success: something
	// may have been made, so a look comes before release.
	// +optional
	Missed bool `json:"missed,omitempty"`

	// linger says that a delete call of another process may still be under way, so
	// that release leaves a tombstone.
	// +optional
	Linger bool `json:"linger,omitempty"`

	// proven says that the name holds the owner's UID and that nothing else may
	// create it, so that what has this name is ours.
	// +optional
	Proven bool `json:"proven,omitempty"`

	// word is what an admin has decided about a record that has stopped.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Word Word `json:"word,omitempty"`

	// releasedAt is when the record became a tombstone.
	// +optional
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`

	// inputs are what the driver was given besides the name, so that a call can be
	// made again when the API object is gone.
	// +optional
	Inputs Inputs `json:"inputs,omitzero"`

	// info is what the driver answered besides the id. Never a credential.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	Info map[string]string `json:"info,omitempty"`
}

// Kind is what was asked of a driver.
type Kind string

// The kinds of format 1.
const (
	KindBucket   Kind = "Bucket"
	KindAccess   Kind = "Access"
	KindVolume   Kind = "Volume"
	KindSnapshot Kind = "Snapshot"
)

// Phase is how far a record has come. Package provision says what each means and
// what follows it.
type Phase string

// The phases of format 1.
const (
	PhaseMaking   Phase = "Making"
	PhaseLive     Phase = "Live"
	PhaseDeleting Phase = "Deleting"
	PhaseReleased Phase = "Released"
	PhaseSweeping Phase = "Sweeping"
	PhaseRetained Phase = "Retained"
)

// Origin says who made the thing.
type Origin string

// The origins of format 1.
const (
	OriginCreated Origin = "Created"
	OriginStatic  Origin = "Static"
	OriginAdopted Origin = "Adopted"
)

// Word is what an admin has decided about a record that has stopped.
type Word string

// The words of format 1.
const (
	WordDelete  Word = "Delete"
	WordRelease Word = "Release"
	WordRetry   Word = "Retry"
)

// Owner names the API object that an Intent serves. It is not an owner reference:
// an Intent outlives its owner.
// +kubebuilder:pruning:PreserveUnknownFields
type Owner struct {
	// apiVersion of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="owner.kind is immutable"
	Kind string `json:"kind"`

	// namespace of the object; empty for a cluster-scoped one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid of the object. An object of the same name and another uid is another one.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`
}

// Inputs are what a driver was given besides the name. Which fields are in use
// follows from the kind.
// +kubebuilder:pruning:PreserveUnknownFields
type Inputs struct {
	// parameters as they are in the class at the time.
	// +optional
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`

	// protocols that a bucket must speak.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Protocols []string `json:"protocols,omitempty"`

	// protocol that an account uses.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Protocol string `json:"protocol,omitempty"`

	// authenticationType of an account.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	AuthenticationType string `json:"authenticationType,omitempty"`

	// serviceAccountName of an account.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// buckets that an account may use.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Buckets []BucketInput `json:"buckets,omitempty"`

	// secretRefs name the Secrets that a call needs, such as the credentials of
	// the backend. The values are read anew for each call, so an admin may mend
	// them; they are never stored here.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	SecretRefs []SecretReference `json:"secretRefs,omitempty"`
}

// BucketInput is one bucket that an account may use.
// +kubebuilder:pruning:PreserveUnknownFields
type BucketInput struct {
	// bucketID is the driver's id of the bucket.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	BucketID string `json:"bucketID"`

	// accessMode says what the account may do with the bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	AccessMode string `json:"accessMode,omitempty"`
}

// SecretReference names a Secret and says what for.
// +kubebuilder:pruning:PreserveUnknownFields
type SecretReference struct {
	// namespace of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// role says which call it is for.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role,omitempty"`
}

// IntentStatus is for people.
type IntentStatus struct {
	// observedGeneration is the generation of the record that the conditions
	// speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say where the record stands, and why.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IntentList is a list of Intents.
// +kubebuilder:object:root=true
type IntentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Intent `json:"items"`
}
