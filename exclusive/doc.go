// Package exclusive keeps the promise "never two": a volume for one node is written by one node, and the proof is in the
// storage cluster. A [Hold] beside the image says who may write; a [Fencer] makes the cluster refuse everybody else.
//
// # What the caller does
//
// For each request ([Stage], [Check], [Unstage], [Detach], [Sweep]) begin with a zero [Memo] and call [Manager.Run] (or
// [Manager.Step] in a loop) until it hands out something other than [Again]. On [Wait] either come back later with the
// same memo or answer ABORTED and begin anew when the CO calls again: everything that matters is in the registry. One
// volume has one request at a time in a process. Two processes on one node, an old plugin beside the new one, are safe. CreateVolume writes the first hold: Free, with Formatted false only for
// a new image without a source.
//
// # The order of duties, and the race that each closes
//
// Stage:
//
//  1. Swap the claim in, with a new epoch and no instance. Two stagers can't both pass: the swap compares the whole
//     hold. (Epochs alone would not do: an owner records its instance at the same epoch.)
//  2. Map, by a client of this volume's own, so that its fence hits nothing else.
//  3. Swap the instance in. A stager that slept through a take-over is turned away here and unmaps.
//  4. Reach the barrier with the new device's own client. The fencer's connection may be ahead of it.
//  5. Format, only if the hold is blank; swap Formatted in; then expose. A swap that fails unmaps. (Formatted before the
//     mkfs: a crash leaves a volume that can't be mounted. After exposing: a mkfs on data.) A mkfs without an answer may
//     go on: the node takes over from itself, as it does from a device that it finds under a blank hold.
//
// A device of before a claim is never used under it: it may be the one that was fenced.
//
// Take over, between the judgement and step 1:
//
//  1. List the recorded instance among the fences to be lifted one day. Before the swap: the new claim overwrites the
//     only other place where it is written.
//  2. Swap the state to Fencing; owner and instance stay those of the fenced owner, the fencer has a field of its own.
//     (A fencer that writes itself into the owner's place makes its own reboot look like proof to lift.)
//  3. Fence exactly that instance, for years; read it back; fence again, and keep that barrier for the claim. (If the first
//     was reported and not set, and another fencer's entry is what is read back, its barrier is too old.)
//
// A hold found in Fencing is carried on by whoever wants the volume, without new evidence; otherwise a fencer that died
// would leave a device that is dead and that nobody may take. A claim without instance was never exposed and needs no
// fence. Opaque may be exposed by an instance nobody knows, and is taken on proof of another boot only, or when the whole
// machine is fenced.
//
// Unstage: withdraw, unmap, then the hold, in this order; no secrets.
//
// Lift: only by the machine that was fenced, only when the hold, read after the list, does not name that instance, only on
// proof (a look finds no such device, or another boot id); then off the list; then lifted once more, for a fencer that
// slept may have fenced in between. Where that fencer dies before it can list, or the lifter before the second lift, the
// entry of a client that is long dead stays on the blocklist: it harms nobody.
//
// # Steps
//
// As in package provision: [Manager.Step] makes at most one call through one door and returns; nothing here has a
// goroutine, timer, lock, random, log, defer or clock of its own, and package explore/writers runs it through every
// interleaving.
//
// The public thread behind it is ceph-csi#578.
package exclusive
