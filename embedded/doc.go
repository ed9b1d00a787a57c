// Package embedded runs real servers for tests, for "make up" and for
// measurements: a Kubernetes API (etcd and kube-apiserver), an S3 server
// (versitygw) and a Ceph cluster (monitor, OSD, gateway), all on loopback.
// Package embedded/toolbox builds the first two; Ceph is Debian's.
//
//	kube, err := embedded.StartKube(ctx, embedded.KubeOptions{})
//	if err != nil { ... }
//	defer kube.Stop()
//	client, err := kubernetes.NewForConfig(kube.Config())
//	limited, err := kube.Account(ctx, "custody-system", "sidecar")
//
// # Data
//
// With a Dir, data stay on disk, and a start with the same Dir finds everything
// as it was: objects, certificates, keys, ports, tokens. Without, they go to a
// temporary folder that Stop removes. A Dir is used by one start at a time; a
// lock says so, and the servers hold it too, so that it is free only when they
// are gone.
//
// Unless asked for (KubeOptions.Fsync), etcd doesn't flush to disk. The data
// survive any death of the processes, kill -9 included, but not one of the
// machine.
//
// # Processes
//
// Each server is a child process in a process group of its own: Ctrl-C in the
// terminal reaches the parent alone, which stops its children in order. On Linux
// the kernel kills the children when the parent dies, whatever the cause.
// [Process] is what they share; tests run Custody's own programs by it too.
//
// # Ceph
//
//	ceph, err := embedded.StartCeph(ctx, embedded.CephOptions{})
//	key, err := ceph.Auth(ctx, "client.node", map[string]string{"mon": "profile rbd", "osd": "profile rbd pool=rbd"})
//
// It is new at each start. Where it can't be had the error is [ErrNoCeph].
//
// # What is not there
//
// Only the API runs. Without kube-controller-manager no namespace is ever
// emptied, nothing is garbage-collected, no ServiceAccount named "default" is
// made, and the aggregated cluster roles admin, edit and view are empty; without
// scheduler and kubelet no Pod runs.
//
// etcd answers anyone on the machine's loopback, as it does under envtest: don't
// keep real secrets here.
package embedded
