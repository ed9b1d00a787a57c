// Package ceph is the storage side of the promise "never two" for RBD images: holds, fences and heartbeats in a Ceph
// cluster, behind the doors of package exclusive.
//
//	cluster := ceph.Open(ceph.Config{ID: "prod", Monitors: "10.0.0.1,10.0.0.2", User: "custody-node", KeyFile: path})
//	defer cluster.Close()
//	image := ceph.Image{Pool: "rbd", Name: "csi-vol-1", ID: "1f5a2e"}
//	m := exclusive.Manager{Registry: cluster.Registry(), Fencer: cluster.Fencer(), Evidence: evidence, Device: device}
//
// # What is in the cluster
//
// Beside each image, in its pool and namespace, two objects that are named by the image's id, which no rename changes:
//
//   - custody.hold.ID holds the hold, as JSON. It is swapped whole: the write compares the object's version.
//   - custody.fences.ID lists the fences to be lifted one day, one omap key for each instance. It is an object of its
//     own since any write to an object, of a key too, gives it a new version and would fail a Swap.
//
// One object custody.nodes in a pool of the admin's choice has a key for each machine, with its boot and a counter that
// grows: the heartbeat.
//
// The image's own lock (rbd_lock) stays Ceph's.
//
// # A fence
//
// An entry on Ceph's blocklist for one address with its nonce, which is one client, for ten years.
//
// Of two entries for one client the first stands for its own time, and the second does nothing, with success answered
// (OSDMap::apply_incremental inserts, it does not replace). Whoever breaks a stale lock, as any opener of an image with
// a dead or hung owner does, puts an entry of one hour. Where it comes after ours it is harmless. Where it came before,
// a fence is not confirmed until that hour is over: to remove the entry and set another is two steps, and a fencer that
// sleeps between them would lift the fence of a later one. In a cluster whose mon_osd_blocklist_default_expire is years
// there is no such wait.
//
// # Calls
//
// Each call ends: Ceph's own time-outs are set on the connection, and a guard gives up on what outlives them. A call
// that has run into a time-out may still take effect later; the protocol takes that into account.
//
// A connection that the cluster has shut out is replaced by a new one on the next call. The key is read anew on each
// call, so that a rotated key needs no restart. Keys reach neither logs nor errors nor process arguments.
//
// # Building
//
// What needs librados and librbd has the build tag ceph; go-ceph also wants the name of the release, such as pacific.
// Without the tag the package has the forms of what is stored and the judgement of heartbeats.
package ceph
