//go:build ceph

package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
)

// Kinds of volumes.
const (
	// Locked has Ceph's exclusive lock, as volumes for one node have.
	Locked = rbd.FeatureLayering | rbd.FeatureExclusiveLock
	// Bare has not: the fence alone keeps the old owner out.
	Bare = rbd.FeatureLayering
)

const (
	imageSize   = Blocks*stride + 32<<20
	callTimeout = 20 * time.Second
	cleanWithin = 2 * time.Minute
)

// Fleet is a cluster with machines around it.
type Fleet struct {
	Ceph *embedded.Ceph

	network *Network
	cluster *ceph.Cluster
	self    string
	dir     string
	log     *os.File
	names   atomic.Int64

	mu       sync.Mutex
	machines []*Machine
}

// NewFleet makes the identity of the machines, with just the rights of a node. Close removes all that the fleet has
// made but for images.
func NewFleet(ctx context.Context, c *embedded.Ceph, n *Network) (_ *Fleet, err error) {
	f := &Fleet{Ceph: c, network: n}
	if f.self, err = os.Executable(); err != nil {
		return nil, err
	}
	key, err := c.Auth(ctx, "client.machine", ceph.Caps(ceph.Node, embedded.CephPool))
	if err != nil {
		return nil, err
	}
	if f.cluster, err = ceph.Open(ceph.Config{
		ID: "test", Monitors: c.Monitors(), User: "machine", Key: ceph.Secret(key), Timeout: callTimeout,
	}); err != nil {
		return nil, err
	}
	if f.dir, err = os.MkdirTemp("", "ct"); err != nil { // short: it holds sockets
		return nil, err
	}
	if f.log, err = os.Create(filepath.Join(f.dir, "log")); err != nil {
		return nil, err
	}
	return f, nil
}

// Cluster is a client of the fleet's own, to look with.
func (f *Fleet) Cluster() *ceph.Cluster { return f.cluster }

// orderConfig is how the processes of machines connect. It has a key.
func (f *Fleet) orderConfig() (mapper.OrderConfig, error) {
	c, err := f.cluster.Config()
	return mapper.OrderConfig{ID: c.ID, Monitors: c.Monitors, User: c.User, Key: string(c.Key), Timeout: c.Timeout, Settings: c.Settings}, err
}

// Log gives what machines and image servers have said.
func (f *Fleet) Log() string {
	text, err := os.ReadFile(f.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Machine makes a machine that is connected.
func (f *Fleet) Machine(ctx context.Context, name string) (*Machine, error) {
	id := fmt.Sprintf("%s%d", name, f.names.Add(1))
	f.mu.Lock()
	defer f.mu.Unlock()
	space, err := f.network.space()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(f.dir, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	m := &Machine{
		Who: exclusive.Who{Machine: "machine-" + id, Node: id, Boot: "boot-1"}, fleet: f, space: space, dir: dir,
		fuse: newFuse(dir, f.self, f.cluster.Config),
	}
	f.machines = append(f.machines, m)
	return m, m.Start(ctx)
}

// Volume makes an image with these features, and its blank hold.
func (f *Fleet) Volume(ctx context.Context, features uint64) (string, error) {
	name := fmt.Sprintf("image%d", f.names.Add(1))
	err := f.InPool(func(io *rados.IOContext) error {
		options := rbd.NewRbdImageOptions()
		defer options.Destroy()
		if err := options.SetUint64(rbd.ImageOptionFeatures, features); err != nil {
			return err
		}
		return rbd.CreateImage(io, name, imageSize, options)
	})
	if err != nil {
		return "", fmt.Errorf("make image %s: %w", name, err)
	}
	i, err := f.cluster.Registry().Image(ctx, embedded.CephPool, "", name)
	if err != nil {
		return "", err
	}
	_, err = f.cluster.Registry().Swap(ctx, exclusive.Hold{Volume: i.String(), State: exclusive.Free})
	return i.String(), err
}

// InPool runs f with a client of its own.
func (f *Fleet) InPool(do func(*rados.IOContext) error) error {
	config, err := f.cluster.Config()
	if err != nil {
		return err
	}
	r, _, err := ceph.Dial(config, nil)
	if err != nil {
		return err
	}
	defer r.Shutdown()
	io, err := r.OpenIOContext(embedded.CephPool)
	if err != nil {
		return err
	}
	defer io.Destroy()
	return do(io)
}

// Close ends all machines and what they have.
func (f *Fleet) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, m := range f.machines {
		errs = append(errs, m.clean(ctx))
	}
	f.cluster.Close()
	errs = append(errs, f.log.Close())
	if err := errors.Join(errs...); err != nil {
		return err // its folder stays: it may have mounts
	}
	return os.RemoveAll(f.dir)
}
