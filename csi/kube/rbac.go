package kube

//go:generate go run ../../hack/tool controller-gen rbac:roleName=custody-rbd paths=. output:rbac:dir=rbac

// What follows is read by controller-gen; the role that it makes is in package rbac. Nothing is watched, and no Secret is
// read.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
