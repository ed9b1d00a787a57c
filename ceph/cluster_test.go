//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/embedded"
)

func TestConnectErrorsAreClear(t *testing.T) {
	good, ctx := user(t, Caps(Node, embedded.CephPool)), t.Context()
	wrongKey := good
	wrongKey.Key = user(t, Caps(Node, embedded.CephPool)).Key
	_, err := open(t, wrongKey).Epoch(ctx)
	wantError(t, err, "client."+good.User, good.Monitors, "the key is not this user's")
	if strings.Contains(err.Error(), string(wrongKey.Key)) || strings.Contains(fmt.Sprintf("%+v %#v", wrongKey, wrongKey), string(wrongKey.Key)) {
		t.Error("the key is shown")
	}

	noSuchUser := good
	noSuchUser.User = "nobody"
	_, err = open(t, noSuchUser).Epoch(ctx)
	wantError(t, err, "client.nobody", "there is no such user")

	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	wrongMonitors := good
	wrongMonitors.Monitors, wrongMonitors.Timeout = fmt.Sprintf("127.0.0.1:%d", port), time.Second
	err = within(t, 10*time.Second, func(ctx context.Context) error {
		_, err := open(t, wrongMonitors).Epoch(ctx)
		return err
	})
	wantError(t, err, wrongMonitors.Monitors, "no monitor has answered")

	garbage := good
	garbage.Key = "no key at all"
	_, err = open(t, garbage).Epoch(ctx)
	wantError(t, err, "client."+good.User)
	if strings.Contains(err.Error(), "no key at all") {
		t.Error("the key is shown")
	}
}

// TestKeyRotation: a new key in the file serves without a restart, and until the cluster takes it the old connection
// does.
func TestKeyRotation(t *testing.T) {
	c, ctx := server.Get(t), t.Context()
	config := user(t, Caps(Node, embedded.CephPool))
	file := filepath.Join(t.TempDir(), "key")
	put := func(key Secret) {
		t.Helper()
		text := fmt.Sprintf("[client.%s]\n\tkey = %s\n", config.User, string(key))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(config.Key)
	config.KeyFile, config.Key = file, ""
	cluster := open(t, config)
	first, err := cluster.Instance(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next, err := c.Auth(ctx, "client.next", Caps(Node, embedded.CephPool))
	if err != nil {
		t.Fatal(err)
	}
	put(Secret(next)) // the cluster doesn't know it yet
	if i, err := cluster.Instance(ctx); err != nil || i != first {
		t.Errorf("while the cluster does not take the key: %s, %v; before %s", i, err, first)
	}
	if err := c.SetKey(ctx, "client."+config.User, next); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new client with the new key", func() bool {
		i, err := cluster.Instance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return i != first
	})
	if _, err := cluster.Epoch(ctx); err != nil {
		t.Error(err)
	}
}

// TestOwnFence: a standing connection that the cluster has shut out is replaced on the next call.
func TestOwnFence(t *testing.T) {
	c, ctx := node(t), t.Context()
	volume := image(t, c).String()
	first, err := c.Instance(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node(t).Fencer().Fence(ctx, first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fence to be noticed", func() bool {
		_, err := c.Registry().Load(ctx, volume)
		return err != nil
	})
	if _, err := c.Registry().Load(ctx, volume); err != nil {
		t.Errorf("the call after that: %v", err)
	}
	if i, err := c.Instance(ctx); err != nil || i == first {
		t.Errorf("still client %s, %v", i, err)
	}
}

// TestHungCluster: each call ends in time, whoever hangs, and all goes on when it wakes.
func TestHungCluster(t *testing.T) {
	s := server.Get(t)
	for name, p := range map[string]*embedded.Process{"OSD": s.OSDProcess(), "monitor": s.MonProcess()} {
		t.Run(name, func(t *testing.T) {
			config := user(t, Caps(Node, embedded.CephPool))
			config.Timeout = 2 * time.Second
			c := open(t, config)
			volume := image(t, c).String()
			if err := p.Pause(); err != nil {
				t.Fatal(err)
			}
			awake := false
			wake := func() {
				if !awake {
					awake = true
					if err := p.Resume(); err != nil {
						t.Error(err)
					}
				}
			}
			defer wake()
			err := within(t, 8*time.Second, func(ctx context.Context) error {
				_, load := c.Registry().Load(ctx, volume)
				if name == "OSD" {
					return load
				}
				_, err := c.Epoch(ctx)
				return err
			})
			wantError(t, err, "did not answer in time")
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err = within(t, time.Second, func(context.Context) error {
				_, err := c.Fencer().Blocklist(short)
				if name == "OSD" {
					_, err = c.Registry().Load(short, volume)
				}
				return err
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the caller's own deadline: %v", err)
			}
			wake()
			eventually(t, "calls to succeed again", func() bool {
				_, load := c.Registry().Load(t.Context(), volume)
				_, epoch := c.Epoch(t.Context())
				return load == nil && epoch == nil
			})
		})
	}
}

func TestClosed(t *testing.T) {
	c := node(t)
	if _, err := c.Epoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close()
	if _, err := c.Epoch(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestCheck: each right that lacks is named, with what would give it.
func TestCheck(t *testing.T) {
	ctx, pool := t.Context(), embedded.CephPool
	full := Caps(Node, pool)
	epoch := func() uint64 {
		t.Helper()
		n, err := node(t).Epoch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, c := range map[string]struct {
		role  Role
		caps  map[string]string
		lacks []string
	}{
		"a node":                    {Node, full, nil},
		"a controller":              {Controller, Caps(Controller, pool), nil},
		"a node in a namespace":     {Node, Caps(Node, pool+"/tenant"), []string{"read objects in rbd", "write objects in rbd", "break a lock on images in rbd"}},
		"as ceph-csi's node has it": {Node, Caps(Controller, pool), []string{"osd blocklist rm"}},
		"a reader":                  {Controller, map[string]string{"mon": "profile rbd", "osd": "profile rbd-read-only pool=" + pool}, []string{"write objects in rbd", "break a lock on images in rbd"}},
		"no fencing": {Node, map[string]string{"mon": "allow r", "osd": full["osd"]},
			[]string{"osd blocklist add", "osd blocklist rm"}},
		"another pool": {Node, Caps(Node, "elsewhere"), []string{"read objects in rbd", "write objects in rbd", "break a lock on images in rbd"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := open(t, user(t, c.caps))
			if _, err := cluster.Instance(ctx); err != nil {
				t.Fatal(err)
			}
			before := epoch()
			lacks, err := cluster.Check(ctx, c.role, pool)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, l := range lacks {
				got = append(got, l.Right)
				if l.Cap == "" || l.Err == nil {
					t.Errorf("%+v", l)
				}
			}
			all := strings.Join(got, "; ")
			for _, want := range c.lacks {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not among what lacks: %q", want, all)
				}
			}
			if len(c.lacks) != len(lacks) {
				t.Errorf("lacks: %q; wanted %q", all, c.lacks)
			}
			if after := epoch(); after != before {
				t.Errorf("the check has changed the osdmap: %d, %d", before, after)
			}
		})
	}
	_, err := node(t).Check(ctx, Node, "nowhere")
	wantError(t, err, "there is no pool", "nowhere")
}
