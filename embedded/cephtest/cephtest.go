// Package cephtest gives the tests of one package one Ceph cluster, started by the first that needs it.
//
//	var cluster cephtest.Cluster
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }
//
//	func TestFence(t *testing.T) { c := cluster.Get(t); ... }
package cephtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/custody-storage/custody/embedded"
)

// Cluster is the cluster that the tests of a package share. Options may be set before the first Get.
type Cluster struct {
	Options embedded.CephOptions

	once sync.Once
	ceph *embedded.Ceph
	err  error
}

// Get gives the cluster. Where Ceph can't be had, the test is skipped with a line that says how to get it, and with
// CI=true it fails. With -short it is skipped.
func (c *Cluster) Get(t testing.TB) *embedded.Ceph {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster")
	}
	c.once.Do(func() { c.ceph, c.err = embedded.StartCeph(context.Background(), c.Options) })
	if errors.Is(c.err, embedded.ErrNoCeph) && os.Getenv("CI") != "true" {
		t.Skip(c.err)
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.ceph
}

// Run runs the package's tests, a *testing.M or what wraps one, stops the cluster and gives the exit code.
func (c *Cluster) Run(m interface{ Run() int }) int {
	code := m.Run()
	if c.ceph == nil {
		return code
	}
	if err := c.ceph.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
