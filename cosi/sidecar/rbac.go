package sidecar

//go:generate go run ../../hack/tool controller-gen rbac:roleName=custody-cosi-sidecar paths=. output:rbac:dir=rbac

// What follows is read by controller-gen; the roles it makes are in package rbac. Objects are patched for finalizers only; status is a right of its own.
// +kubebuilder:rbac:groups=objectstorage.k8s.io,resources=buckets;bucketaccesses,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=objectstorage.k8s.io,resources=buckets/status;bucketaccesses/status,verbs=patch
// +kubebuilder:rbac:groups=objectstorage.k8s.io,resources=bucketclaims,verbs=get
// +kubebuilder:rbac:groups=custody.dev,resources=intents,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=custody.dev,resources=intents/status,verbs=patch
// Never list or watch: no token of ours shall read Secrets wholesale.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=custody-system
// The lead is told in an event too.
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=custody-system
