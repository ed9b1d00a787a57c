// Package krbd tests ceph/mapper with real kernels: nodes are QEMU guests, the cluster is real and runs on the host. In a
// guest runs the mapper alone (package node, served by the program agent). The protocol and the doors that need librados
// run in the test, so that a paused guest is a node that hangs as a whole, while its plugin's view of the cluster does
// not matter.
//
//	make test-krbd
package krbd
