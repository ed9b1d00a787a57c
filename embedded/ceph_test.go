package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startCeph skips the test, with a line that says how to get Ceph, where it can't be had; not in CI.
func startCeph(t *testing.T, o CephOptions) *Ceph {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster")
	}
	began := time.Now()
	c, err := StartCeph(t.Context(), o)
	if errors.Is(err, ErrNoCeph) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Ceph ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestCephServes goes through what tests want of a cluster.
func TestCephServes(t *testing.T) {
	c, ctx := startCeph(t, CephOptions{RGW: true}), t.Context()
	must := func(out []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	must(c.Run(ctx, "rbd", "create", CephPool+"/one", "--size", "8M"))
	if list := must(c.Run(ctx, "rbd", "ls", CephPool)); list != "one\n" {
		t.Errorf("images: %q", list)
	}
	if err := httpReady(oneShot(), c.RGWEndpoint())(ctx); err != nil {
		t.Error(err)
	}

	// cephx is on: an identity does what its caps say and no more, and a wrong key does nothing.
	key, err := c.Auth(ctx, "client.reader", map[string]string{"mon": "profile rbd", "osd": "profile rbd-read-only pool=" + CephPool})
	if err != nil {
		t.Fatal(err)
	}
	keyring := filepath.Join(t.TempDir(), "keyring")
	as := func(key, program string, args ...string) error {
		if err := os.WriteFile(keyring, []byte("[client.reader]\nkey = "+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := c.Run(ctx, program, append(args, "--id", "reader", "--keyring", keyring)...)
		return err
	}
	if err := as(key, "rbd", "info", CephPool+"/one"); err != nil {
		t.Error(err)
	}
	if err := as(key, "rbd", "resize", CephPool+"/one", "--size", "16M"); err == nil {
		t.Error("a reader has resized an image")
	}
	if err := as(newCephKey(), "rbd", "info", CephPool+"/one"); err == nil {
		t.Error("a wrong key was let in")
	}

	if _, err := c.Mon(ctx, map[string]any{"prefix": "osd pool create", "pool": "x", "pg_num": "many"}); err == nil || !strings.Contains(err.Error(), "osd pool create") {
		t.Errorf("a command that is wrong: %v", err)
	}
	dir := c.Dir()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left behind (%v)", dir, err)
	}
}

// TestCephSurvives kills the daemons one after the other.
func TestCephSurvives(t *testing.T) {
	c, ctx := startCeph(t, CephOptions{Durable: true, Dir: t.TempDir()}), t.Context()
	if _, err := c.Run(ctx, "rbd", "create", CephPool+"/one", "--size", "8M"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return c.OSDProcess().Kill() },
		func() error { return c.RestartOSD(ctx) },
		func() error { return c.MonProcess().Kill() },
		func() error { return c.RestartMon(ctx) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Run(ctx, "rbd", "ls", CephPool)
	if err != nil || string(list) != "one\n" {
		t.Errorf("images after the kills: %q, %v", list, err)
	}
	if _, err := StartCeph(ctx, CephOptions{Dir: c.Dir()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second start in the same folder: %v", err)
	}
}
