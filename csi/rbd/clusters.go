//go:build ceph

package rbd

import (
	"context"
	"sync"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// Images is what the controller asks of one cluster; [ceph.Volumes] and [ceph.Registry] have it. Tests decorate it.
type Images interface {
	Image(ctx context.Context, pool, namespace, name string) (ceph.Image, error)
	Images(ctx context.Context, pool, namespace string) ([]ceph.Image, error)
	exclusive.Registry
	Remove(ctx context.Context, h exclusive.Hold) error
	Facts(ctx context.Context, i ceph.Image) (ceph.Facts, error)
	Create(ctx context.Context, n ceph.New) error
	Clone(ctx context.Context, parent ceph.Image, snapshot string, n ceph.New) error
	Label(ctx context.Context, i ceph.Image, key, value string) error
	Resize(ctx context.Context, i ceph.Image, size uint64) error
	Snapshot(ctx context.Context, i ceph.Image, name string) error
	RemoveSnapshot(ctx context.Context, i ceph.Image, name string) error
	RemoveTrashed(ctx context.Context, i ceph.Image, id uint64) error
	Flatten(ctx context.Context, i ceph.Image) error
	Trash(ctx context.Context, i ceph.Image) error
	Trashed(ctx context.Context, pool, namespace string) ([]ceph.Image, error)
	Purge(ctx context.Context, i ceph.Image) error
	RemoveCarcass(ctx context.Context, i ceph.Image) error
	Maker(ctx context.Context) (ceph.Maker, error)
	Begun(ctx context.Context, pool, namespace, name string) (id string, err error)
	Notes(ctx context.Context, pool, namespace, name string) ([]string, error)
	Note(ctx context.Context, pool, namespace, name, note string) error
	Forget(ctx context.Context, pool, namespace, name string) error
}

type images struct {
	*ceph.Registry
	*ceph.Volumes
}

// Clusters are the connections of one process, made when they are first asked for and kept.
type Clusters struct {
	// File is the configuration.
	File ceph.Clusters
	// Role says which standing identity is ours.
	Role ceph.Role

	mu   sync.Mutex
	open map[[2]string]*connection
}

type connection struct {
	*ceph.Cluster
	images images
}

// Get gives the connection of the standing identity, or of the user that a call's secrets name by userID and userKey.
func (c *Clusters) Get(id string, secrets map[string]string) (*ceph.Cluster, error) {
	conn, err := c.get(id, secrets)
	if err != nil {
		return nil, err
	}
	return conn.Cluster, nil
}

func (c *Clusters) get(id string, secrets map[string]string) (*connection, error) {
	entry, err := c.File.Entry(id)
	if err != nil {
		return nil, err
	}
	user, key := secrets["userID"], ceph.Secret(secrets["userKey"])
	if (user == "") != (key == "") {
		return nil, invalid("secrets: userID and userKey belong together")
	}
	config, err := entry.Config(c.Role)
	if user != "" {
		timeout := config.Timeout
		config, err = ceph.Config{ID: entry.ID, Monitors: entry.Monitors, User: user, Key: key, Timeout: timeout, Settings: entry.Settings}, nil
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := [2]string{entry.ID, user}
	if conn := c.open[at]; conn != nil {
		if user != "" {
			conn.SetKey(key)
		}
		return conn, nil
	}
	cluster, err := ceph.Open(config)
	if err != nil {
		return nil, err
	}
	if c.open == nil {
		c.open = map[[2]string]*connection{}
	}
	conn := &connection{cluster, images{cluster.Registry(), cluster.Volumes()}}
	c.open[at] = conn
	return conn, nil
}

// Close closes all.
func (c *Clusters) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
	c.open = nil
}
