// Package guest runs small Linux machines in QEMU, for what a test needs of another kernel: its own modules, a death or a
// pause of a whole node. It needs no root but to install QEMU, no KVM and no network of its own.
//
//	system, err := guest.Prepare(ctx, os.Stderr)
//	g, err := guest.Start(ctx, system, guest.Options{Name: "a", Init: agentBinary, Modules: []string{"rbd", "ext4"}})
//	defer g.Stop()
//	out, err := g.Run(ctx, time.Minute, "mkfs.ext4", "/dev/rbd0")
//	err = g.Call(ctx, "Node.Map", order, &mapping) // a net/rpc service that the agent binary adds
//
// # What runs in it
//
// Debian's kernel and modules, which [Prepare] fetches into the user's cache and doesn't install; busybox; the programs
// of this machine that Options.Files names, with the shared libraries they need; and as its first process a static Go
// program, which calls agent.Main. Everything is in memory: a guest has no disk.
//
// # What it reaches
//
// By QEMU's user network it reaches servers on this machine's loopback, at 127.0.0.1 as they are named here. The
// commands to its agent go another way, a serial line of their own, so that they work whatever a test does to the
// network.
//
// # How it ends
//
// A guest is a child process as package embedded has them: it dies with its parent. Its console is a file, and errors
// quote the end of it.
package guest
