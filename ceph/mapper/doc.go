// Package mapper makes devices of RBD images on this node, each by a client of the cluster of its own, whose address it
// gives exactly. That address is what a fence needs; nothing here derives it from watchers or from what else is mapped.
//
//	device := &mapper.Device{Mapper: krbd, Volume: image.String(), Target: mapper.Target{Path: staging, FSType: "ext4"}}
//	m := exclusive.Manager{Device: device, ...}
//
// There are three mappers, for what the kernel has:
//
//   - [Krbd]: the kernel's own client, through sysfs. The option noshare gives each map a client of its own; without it
//     all maps share one, and a fence for one image hits them all.
//   - [NBD]: the kernel's network block device, with a server process of ours for each image.
//   - [Fuse]: FUSE and a loop device, with the same server process, for kernels with neither.
//
// The server process, package server, has the image open by librbd. It outlives the process that started it, but not a
// container that both are in: there its devices end with the container, and fail whoever uses them.
//
// # What is found
//
// By what the kernel has: sysfs, mounts, loop devices. No file of this package decides what is mapped; those under the
// state folder are sockets, mount points and notes that may be lost.
//
// # Time
//
// Each call ends. What the kernel holds on to (an unmount that waits for a hung cluster) goes on after its deadline, and
// the error says so; the next try finds what has become of it. A device of a client that is fenced does not hang: its
// I/O fails at once.
package mapper
