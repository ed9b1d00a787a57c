// Package node is what the node half of a CSI driver needs to keep "never two", whatever the driver is: who this machine
// is, what it has staged, one operation for a volume at a time, requests of package exclusive run to an answer that CSI
// knows, and the clean-up at the node's start.
//
//	me, err := node.Identity{Node: name}.Who()
//	records, err := node.OpenRecords(dir)
//	unlock, err := locks.Take(id)                        // ABORTED if an operation is under way
//	err = records.Put(record)                            // before the map
//	trace, err := runner.Run(ctx, node.Work{Verb: exclusive.Stage, Volume: volume, Doors: doors, Format: true})
//	...
//	err = records.Drop(id)                               // after the unmap, and not before
//
// # What is durable before what
//
// A record is on disk before its volume is mapped, and stays until its unmap has succeeded: NodeUnstageVolume is given
// nothing but the id, no secrets and no parameters (ceph-csi keeps a stash file for the same reason). The record decides
// nothing about who owns a volume: that is the hold's, in the storage. If it is lost, what the kernel has still tells of
// most.
//
// # Answers
//
// A request that is refused is FAILED_PRECONDITION with the holder's node in the message; one that is not at its end
// yet is ABORTED, which a CO takes as "something may be there", and so calls NodeUnstageVolume if the workload goes away.
package node
