// Package takeover plays machines that take a volume from each other on a real Ceph cluster, for the tests here and for
// the program in bench. It needs the build tag ceph, root, FUSE and network namespaces.
//
//	network, err := takeover.OpenNetwork()
//	cluster, err := embedded.StartCeph(ctx, embedded.CephOptions{IP: network.IP()})
//	fleet, err := takeover.NewFleet(ctx, cluster, network)
//	a, err := fleet.Machine(ctx, "a")
//	volume, err := fleet.Volume(ctx, takeover.Locked)
//	reply, err := a.Do(ctx, takeover.Task{Verb: exclusive.Stage, Volume: volume})
//
// A [Machine] is a process in a network namespace of its own, which does what a node plugin does: [exclusive.Manager]
// over the real registry, fencer and mapper. The image server behind each of its devices and the [Writer] on it are
// processes too, so that each can be killed, paused or cut off by itself. All of them are the test's or the bench's
// own binary: call [RunIfAsked] first in main or TestMain.
//
// # What is shown
//
// A writer writes [Blocks] blocks round and round, each filled with its name and a number that grows, without a cache
// in between, and tells of each write that was acknowledged. After a take-over the new owner reads all blocks before it
// writes: a number below the last that was acknowledged is a lost write. Then it writes each block over, the old owner
// wakes and tries, and all blocks are read again: the old writer's name in any is a write that the fence let through.
//
// Some volumes have Ceph's exclusive lock, as a volume for one node has by default, and some don't ([Bare]), so that it
// is the fence alone that holds. With the fence switched off ([Task].Unfenced) the old writer's blocks must show up,
// or the test would not see a fault.
package takeover
