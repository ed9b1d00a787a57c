// Package rbd is a CSI driver for RBD images of which each has one writer: package exclusive decides who may write, and
// the proof is in the storage cluster.
//
//	Identity    identity.go     what the driver is and can do
//	Controller  controller*.go  images, snapshots, clones; whose a volume is; taking it away (build tag ceph)
//	Node        node*.go        devices and mounts on one node (build tag ceph)
//	Server      server.go       all three on a unix socket: deadlines, one operation a volume, logs without secrets
//
// # No second book
//
// There is no journal beside the images. All is derived from the request's name and from marks in the cluster:
//
//   - A volume's id is CLUSTER/POOL/NAMESPACE/IMAGE, and IMAGE follows from the request's name ([VolumeImage],
//     [SnapshotImage]). Who knows the name can delete.
//   - The image's metadata has a [Mark] that names the image itself. A clone inherits its parent's metadata, so a mark
//     with another image's name is no mark. An image without one is foreign: neither adopted nor deleted.
//   - RBD makes an image and its metadata in two steps. Before the first, an object custody.work.IMAGE notes which client
//     of the cluster is about to make the image. An image's id begins with the id of the client that has made it, so an
//     image without a mark is ours if it is in the notes, and only then. The object goes with the last step.
//   - The hold is written when the image is complete; then the mark says ready.
//
// # A crash at any step
//
// Create: note, image, mark (making), size, hold, mark (ready), note removed. Who finds an image in the making without a
// hold removes it and begins again: nobody could stage it. With a hold it is complete. An image that is ready and has no
// hold has lost it: it may have data, and nobody touches it but an explicit delete.
//
// Delete: hold free, mark (deleting), hold removed by compare-and-swap, own snapshots removed, id noted, to the trash,
// out of the trash, note removed. Once the hold is gone no node can stage the image. Create under the name of an image
// in state deleting finishes the delete first: no data of the old volume comes back.
//
// # Snapshots and clones
//
// A snapshot is an image of its own, a copy-on-write clone of its source, and a volume restored from it is a clone of
// that. Nothing is copied when they are made (to flatten takes as long as to copy the volume). Deletion works in any
// order: an image that still has children goes to RBD's trash, with its hold and its name gone, and is removed with the
// last child. Each delete looks through the trash for images of ours that have no children any more, so that a crash
// between child and parent leaves nothing to remember. A chain of clones that becomes too long for the kernel's client
// is cut by flattening the new image before it is used.
//
// # Fences of a deleted volume
//
// A fence that is not lifted outlives the volume, and its list custody.fences.ID stays too: the fenced client may still
// have writes in its queue, and they would leave objects of an image that is gone.
package rbd
