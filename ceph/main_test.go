//go:build ceph

package ceph

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/cephtest"
)

var server cephtest.Cluster

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

var names atomic.Int64

// user makes an identity with these caps and gives the configuration for it.
func user(t *testing.T, caps map[string]string) Config {
	t.Helper()
	c := server.Get(t)
	name := fmt.Sprintf("user%d", names.Add(1))
	key, err := c.Auth(t.Context(), "client."+name, caps)
	if err != nil {
		t.Fatal(err)
	}
	return Config{ID: "test", Monitors: c.Monitors(), User: name, Key: Secret(key), Timeout: 10 * time.Second}
}

func open(t *testing.T, config Config) *Cluster {
	t.Helper()
	c, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// node is a cluster connection with just the rights of a node.
func node(t *testing.T) *Cluster {
	t.Helper()
	return open(t, user(t, Caps(Node, embedded.CephPool)))
}

// image makes an image as a single-node volume has it.
func image(t *testing.T, c *Cluster) Image {
	t.Helper()
	name := fmt.Sprintf("image%d", names.Add(1))
	_, err := inPool(t.Context(), c, "make an image", embedded.CephPool, "", func(io *rados.IOContext) (none, error) {
		options := rbd.NewRbdImageOptions()
		defer options.Destroy()
		if err := options.SetUint64(rbd.ImageOptionFeatures, rbd.FeatureLayering|rbd.FeatureExclusiveLock); err != nil {
			return none{}, err
		}
		return none{}, rbd.CreateImage(io, name, 64<<20, options)
	})
	if err != nil {
		t.Fatal(err)
	}
	i, err := c.Registry().Image(t.Context(), embedded.CephPool, "", name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// client is a client of the test's own, of which the test knows the instance.
func client(t *testing.T, c *Cluster) (*rados.Conn, string) {
	t.Helper()
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	r, instance, err := Dial(config, map[string]string{"rados_osd_op_timeout": "20"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Shutdown)
	return r, string(instance)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// within fails if f takes longer.
func within(t *testing.T, limit time.Duration, f func(context.Context) error) error {
	t.Helper()
	begin := time.Now()
	err := f(t.Context())
	if took := time.Since(begin); took > limit {
		t.Errorf("took %s, more than %s: %v", took, limit, err)
	}
	return err
}

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; wanted one with %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
