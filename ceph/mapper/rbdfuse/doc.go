// Package rbdfuse serves one RBD image as the one file of a FUSE file system, by a client of its own: the process behind
// [mapper.Fuse]. It needs the build tag ceph.
//
// The program that ships calls [Serve] in a process of its own:
//
//	err := rbdfuse.Serve(os.Stdin, os.Stdout)
//
// What is written has reached the cluster when the write is answered: nothing is cached here.
package rbdfuse
