//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/exclusive"
)

const (
	// grace is how much longer than Ceph's own time-outs the guard waits: Ceph should answer first, since only it frees
	// what the call holds.
	grace = 3 * time.Second
	// newKeyEvery is how often a new key is tried that the cluster does not take yet.
	newKeyEvery = 5 * time.Second
)

// ErrClosed says that the cluster was closed in this process.
var ErrClosed = errors.New("the connection was closed")

var errHangs = errors.New("it hangs beyond Ceph's own time-outs")

// Cluster is a standing connection to one cluster. Its methods may be called from any goroutine.
type Cluster struct {
	config     Config
	connecting chan struct{} // has room for the one goroutine that connects

	mu     sync.Mutex
	key    Secret // what SetKey has set
	conn   *conn
	refuse time.Time // before that no new key is tried
	closed bool
}

// conn is one client of the cluster. It is shut down when it is retired and nobody uses it any more.
type conn struct {
	rados    *rados.Conn
	key      Secret
	instance exclusive.Instance
	users    int
	retired  bool
}

// Open checks the configuration. It connects when it is first used.
func Open(config Config) (*Cluster, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Cluster{config: config, key: config.Key, connecting: make(chan struct{}, 1)}, nil
}

// ID is the cluster's name in the configuration.
func (c *Cluster) ID() string { return c.config.ID }

// SetKey replaces a key that was given in memory. Calls that come after it use it.
func (c *Cluster) SetKey(key Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key = key
}

// Close ends the connection once the calls under way are done. Later calls fail with [ErrClosed].
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.retire(c.conn)
	c.conn = nil
}

// Config gives the configuration with the key as it is now, for a client of its own such as a mapped image has.
func (c *Cluster) Config() (Config, error) {
	config := c.config
	key, err := c.wanted()
	config.Key, config.KeyFile = key, ""
	return config, err
}

// Instance is this connection's own client. Only an admin who fences the whole node has a use for it: it holds no image.
func (c *Cluster) Instance(ctx context.Context) (exclusive.Instance, error) {
	cn, err := c.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer c.release(cn, nil)
	return cn.instance, nil
}

// FSID is the cluster's own id.
func (c *Cluster) FSID(ctx context.Context) (string, error) {
	return call(ctx, c, "ask for the cluster's id", (*rados.Conn).GetFSID)
}

// call runs f with the connection, and gives up on it at the deadline. Then f may still be running: all that it hands
// out is its result.
func call[T any](ctx context.Context, c *Cluster, what string, f func(*rados.Conn) (T, error)) (T, error) {
	var none T
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.timeout()+grace, errHangs)
	defer cancel()
	cn, err := c.acquire(ctx)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f(cn.rados)
		c.release(cn, err)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return r.value, fmt.Errorf("%s: Ceph cluster %q, user %s: %w", what, c.config.ID, c.config.User, explain(r.err))
		}
		return r.value, nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errHangs) {
			c.mu.Lock()
			c.retire(cn) // it hangs: the next call gets a new one
			c.mu.Unlock()
		}
		return none, fmt.Errorf("%s: Ceph cluster %q has not answered; it may still be done: %w", what, c.config.ID, context.Cause(ctx))
	}
}

// wanted is the key as it is now.
func (c *Cluster) wanted() (Secret, error) {
	if c.config.KeyFile != "" {
		return c.config.key()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.key, nil
}

// acquire hands out the connection, and makes it or a new one if need be: the first time, after the cluster has shut it
// out, and for a new key. Until the cluster takes a new key the old connection serves.
func (c *Cluster) acquire(ctx context.Context) (*conn, error) {
	for {
		key, unread := c.wanted()
		c.mu.Lock()
		cn := c.conn
		if c.closed {
			c.mu.Unlock()
			return nil, ErrClosed
		}
		serves := cn != nil && (unread != nil || cn.key == key || time.Now().Before(c.refuse))
		if serves {
			cn.users++
		}
		c.mu.Unlock()
		if serves {
			return cn, nil
		}
		if unread != nil {
			return nil, unread
		}
		select {
		case c.connecting <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		done := make(chan error, 1)
		go func() {
			done <- c.connect(key)
			<-c.connecting
		}()
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to Ceph cluster %q: %w", c.config.ID, context.Cause(ctx))
		}
	}
}

// connect puts a new connection in the old one's place, unless somebody else just did.
func (c *Cluster) connect(key Secret) error {
	c.mu.Lock()
	served := c.conn != nil && c.conn.key == key
	c.mu.Unlock()
	if served {
		return nil
	}
	config := c.config
	config.Key, config.KeyFile = key, ""
	seconds := fmt.Sprint(int(config.timeout().Seconds()))
	r, instance, err := Dial(config, map[string]string{"rados_mon_op_timeout": seconds, "rados_osd_op_timeout": seconds})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.conn != nil {
			c.refuse = time.Now().Add(newKeyEvery)
			return nil
		}
		return err
	}
	fresh := &conn{rados: r, key: key, instance: instance}
	if c.closed {
		c.retire(fresh)
		return nil
	}
	c.retire(c.conn)
	c.conn, c.refuse = fresh, time.Time{}
	return nil
}

// release gives a connection back. One that the cluster has shut out stays shut out.
func (c *Cluster) release(cn *conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.users--
	if shutOut(err) || cn.retired {
		c.retire(cn)
	}
}

// retire takes a connection out of use. c.mu is held.
func (c *Cluster) retire(cn *conn) {
	if cn == nil {
		return
	}
	if c.conn == cn {
		c.conn = nil
	}
	if cn.retired = true; cn.users == 0 && cn.rados != nil {
		go cn.rados.Shutdown() // it waits for its threads
		cn.rados = nil
	}
}

// Dial makes a client of its own, with further settings, and gives the address by which the cluster knows it. It takes
// as long as config.Timeout at the most.
func Dial(config Config, settings map[string]string) (*rados.Conn, exclusive.Instance, error) {
	fail := func(err error) (*rados.Conn, exclusive.Instance, error) {
		return nil, "", fmt.Errorf("connect to Ceph cluster %q at %s as client.%s: %w", config.ID, config.Monitors, config.User, err)
	}
	key, err := config.key()
	if err != nil {
		return fail(err)
	}
	r, err := rados.NewConnWithUser(config.User)
	if err != nil {
		return fail(err)
	}
	all := map[string]string{
		"mon_host":             config.Monitors,
		"key":                  string(key),
		"client_mount_timeout": fmt.Sprint(int(config.timeout().Seconds())),
		// Nothing into files that nobody has asked for.
		"log_file": "", "admin_socket": "",
	}
	for _, more := range []map[string]string{settings, config.Settings} {
		for name, value := range more {
			all[name] = value
		}
	}
	for name, value := range all {
		if err := r.SetConfigOption(name, value); err != nil {
			return fail(fmt.Errorf("setting %s: %w", name, err))
		}
	}
	if err := r.Connect(); err != nil {
		return fail(explainConnect(err))
	}
	addresses, err := r.GetAddrs()
	if err != nil {
		r.Shutdown()
		return fail(fmt.Errorf("ask for its own address: %w", err))
	}
	instance, err := ParseInstance(addresses)
	if err != nil {
		r.Shutdown()
		return fail(fmt.Errorf("its own address: %w", err))
	}
	return r, instance, nil
}
