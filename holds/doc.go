// Package holds is what people see of "never two", and what they decide: who holds which RBD volume, why it can't be
// taken, to fence its owner by hand, and to lift a fence by hand. It is behind custody holds, fence and unfence.
//
//	client, err := holds.Open("/etc/custody/clusters.yaml")
//	rows, err := client.List(ctx, holds.Filter{Node: "node-a"}) // what was read, and the error for what was not
//	e := rows[0].Explain(time.Now())
//
// All is read from the clusters as it is now: holds, lists of fences, heartbeats and the blocklist. "Since when" is when
// the hold's object was last written.
//
// A fence by hand goes through package exclusive, as one by a node does. A fence is lifted by hand only for what stands
// on a list of fences, only if the hold, read after the list, does not name that client, and only on proof: the machine
// shows another boot, and its heartbeat moves while it is listened to. (One look would not do: what stands there may be
// the last beat of a boot that is over.) Without proof it takes a written reason, which is kept in the cluster first.
//
// The proof that a device is unmapped is the machine's own to give. Its node plugin gives it, and lifts, by itself.
//
// What speaks with Ceph has the build tag ceph. Without it Open says how to get a program that has it.
package holds
