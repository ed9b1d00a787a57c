// Package server serves one RBD image to this node's kernel, by a client of the cluster of its own: the process behind
// [mapper.Fuse] and [mapper.NBD]. It needs the build tag ceph.
//
// The program that ships calls [Serve] in a process of its own:
//
//	err := server.Serve(os.Stdin, os.Stdout)
//
// What is written has reached the cluster when the write is answered: nothing is cached here.
package server
