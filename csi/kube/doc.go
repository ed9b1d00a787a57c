// Package kube is the Kubernetes side of the CSI drivers: what Kubernetes knows of a node that holds a volume, and events
// that tell people what became of theirs. Neither decides about safety.
//
//	w := &kube.Witness{API: clientset}
//	evidence.Witnesses = append(evidence.Witnesses, w.Judge)
//
//	r := &kube.Reporter{API: clientset, Driver: "rbd.custody.dev", Component: "custody-rbd-node", Node: node, PVName: name}
//	go r.Run(ctx)
//	r.Report(kube.TakenOver(handle, from, to))
//
// Nothing here watches or caches objects: a plugin on each of a thousand nodes would hold each volume of the cluster. A
// PersistentVolume is found by its name where that follows from the volume, which is one request; only a volume with
// another name is sought in all, page by page.
//
// The rights that both need are in package rbac.
package kube
