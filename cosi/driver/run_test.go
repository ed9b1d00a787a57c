package driver_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/wire"
)

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "driver") // t.TempDir may be longer than a socket's path can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "cosi.sock")
}

// run serves d until the test ends or stop is called; stop answers what Run did.
func run(t *testing.T, d *driver.Driver, socket string, which wire.Services) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = driver.Run(ctx, d, driver.ServeOptions{Endpoint: "unix://" + socket, Services: which, Ready: func() { close(ready) }})
	}()
	stop = func() error { cancel(); <-done; return err }
	t.Cleanup(func() { _ = stop() })
	select {
	case <-ready:
	case <-done:
		t.Fatal(err)
	}
	return stop
}

func dial(t *testing.T, socket string) *wire.Client {
	t.Helper()
	c, err := wire.Dial(deadline(t), "unix://"+socket, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// One Backend is a driver in every dialect.
func TestServedInEveryDialect(t *testing.T) {
	for _, tc := range []struct {
		name    string
		which   wire.Services
		dialect wire.Dialect
	}{
		{"default", wire.Services{}, wire.V1alpha2},
		{"one phase", wire.Services{V1alpha2: true, Recovery: true}, wire.V1alpha2},
		{"two phases", wire.Services{V1alpha2: true, TwoPhase: true, Recovery: true}, wire.V1alpha2},
		{"v1alpha1", wire.Services{V1alpha1: true, Recovery: true}, wire.V1alpha1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMemory()
			socket := socketPath(t)
			stop := run(t, newDriver(t, m, driver.Options{}), socket, tc.which)
			c := dial(t, socket)
			ctx := deadline(t)
			if got := c.Info(); got.Dialect != tc.dialect || got.Name != m.Info().Name || got.Recovery != m.Info().Recovery {
				t.Errorf("info %+v", got)
			}
			req := wire.BucketRequest{Name: "bc-1", Protocols: []wire.Protocol{wire.S3}}
			id, err := c.GenerateBucketID(ctx, req)
			if tc.which.TwoPhase != (err == nil) || (err != nil && !errors.Is(err, wire.ErrNotOffered)) {
				t.Errorf("generate: %q, %v", id, err)
			}
			req.ID = id
			b, err := c.CreateBucket(ctx, req)
			if err != nil || b.ID != "bc-1" || b.Info.S3 == nil || !m.has(m.buckets, "bc-1") {
				t.Errorf("create: %+v, %v", b, err)
			}
			greq := wire.GrantRequest{Name: "ba-1", Protocol: wire.S3, Authentication: wire.Key, Buckets: []wire.AccessedBucket{{ID: "bc-1", Mode: wire.ReadWrite}}}
			if greq.ID, err = c.GenerateAccountID(ctx, greq); tc.which.TwoPhase != (err == nil) {
				t.Errorf("generate account: %v", err)
			}
			g, err := c.GrantAccess(ctx, greq)
			if err != nil || g.AccountID != "ba-1" || g.Credentials.S3 == nil || g.Credentials.S3.AccessSecretKey.Reveal() != "SK" || len(g.Buckets) != 1 || g.Buckets[0].Info.S3.Endpoint == "" {
				t.Errorf("grant: %+v, %v", g, err)
			}
			for _, kind := range []wire.Kind{wire.KindBucket, wire.KindAccount} {
				p, err := c.List(ctx, kind, wire.ListRequest{})
				if err != nil || len(p.Items) != 1 {
					t.Errorf("list: %+v, %v", p, err)
				}
				name := wire.NameRequest{Name: p.Items[0].Name}
				items, err := c.FindByName(ctx, kind, name)
				if err != nil || len(items) != 1 || !items[0].MadeFor(name.Name) {
					t.Errorf("find: %+v, %v", items, err)
				}
			}
			code(t, "revoke", c.RevokeAccess(ctx, wire.RevokeRequest{AccountID: "ba-1", Protocol: wire.S3, Authentication: wire.Key, BucketIDs: []string{"bc-1"}}), codes.OK)
			code(t, "delete", c.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-1"}), codes.OK)
			if len(m.buckets)+len(m.accounts) != 0 {
				t.Errorf("left: %v, %v", m.buckets, m.accounts)
			}
			if err := stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}

func TestTwoPhaseNeedsIDs(t *testing.T) {
	type noIDs struct {
		driver.Backend
		driver.Recoverer
	}
	m := newMemory()
	d := newDriver(t, noIDs{m, m}, driver.Options{})
	err := driver.Run(deadline(t), d, driver.ServeOptions{Endpoint: "unix://" + socketPath(t), Services: wire.Services{V1alpha2: true, TwoPhase: true}})
	if err == nil || !strings.Contains(err.Error(), "two-phase") {
		t.Errorf("got %v", err)
	}
}

func TestStopLetsCallsFinish(t *testing.T) {
	m := newMemory()
	h := hold(m)
	socket := socketPath(t)
	stop := run(t, newDriver(t, m, driver.Options{}), socket, wire.Services{})
	c := dial(t, socket)
	done := make(chan error, 1)
	go func() {
		_, err := c.CreateBucket(deadline(t), wire.BucketRequest{Name: "bc-1"})
		done <- err
	}()
	<-h.entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	waitFor(t, "the socket to close", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	select {
	case err := <-stopped:
		t.Fatalf("stopped before its call had ended: %v", err)
	default:
	}
	h.release <- nil
	code(t, "the running create", <-done, codes.OK)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestSocket(t *testing.T) {
	d := newDriver(t, newMemory(), driver.Options{})
	serve := func(socket string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return driver.Run(ctx, d, driver.ServeOptions{Endpoint: "unix://" + socket, Ready: cancel})
	}
	t.Run("left by a dead driver", func(t *testing.T) {
		socket := socketPath(t)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := serve(socket); err != nil {
			t.Error(err)
		}
		if err := serve(socket); err != nil {
			t.Errorf("second start: %v", err)
		}
	})
	for _, tc := range []struct {
		name  string
		setup func(t *testing.T, socket string)
		want  string
	}{
		{"of a living driver", func(t *testing.T, socket string) { run(t, d, socket, wire.Services{}) }, "another driver runs on it"},
		{"of another program", func(t *testing.T, socket string) {
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}, "another program serves"},
		{"a file", func(t *testing.T, socket string) {
			if err := os.WriteFile(socket, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a socket"},
		{"no folder", func(t *testing.T, socket string) {
			if err := os.Remove(filepath.Dir(socket)); err != nil {
				t.Fatal(err)
			}
		}, "is not there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket := socketPath(t)
			tc.setup(t, socket)
			if err := serve(socket); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
