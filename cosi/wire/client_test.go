package wire_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/cosi/wire/recovery"
	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

func TestDialFindsWhatTheDriverIs(t *testing.T) {
	caps := &recovery.GetCapabilitiesResponse{
		Buckets:  &recovery.Capabilities{DeleteByName: true, FindByName: true, List: true, CreateRepeatSafe: true, OwnerMark: true},
		Accounts: &recovery.Capabilities{DeleteByName: true},
	}
	for _, tc := range []struct {
		name     string
		fake     *fake
		services []string
		want     wire.Info
	}{
		{"v1alpha2", v2("d"), []string{"v1alpha2"}, wire.Info{Name: "d", Dialect: wire.V1alpha2, Protocols: []wire.Protocol{wire.S3}}},
		{"v1alpha1", v1("d"), []string{"v1alpha1"}, wire.Info{Name: "d", Dialect: wire.V1alpha1}},
		{"both: the newer", v2("d").answer("v1alpha1.DriverGetInfo", &v1alpha1.DriverGetInfoResponse{Name: "d"}), []string{"v1alpha1", "v1alpha2"},
			wire.Info{Name: "d", Dialect: wire.V1alpha2, Protocols: []wire.Protocol{wire.S3}}},
		{"registered but unimplemented: the older", v1("d"), []string{"v1alpha1", "v1alpha2"}, wire.Info{Name: "d", Dialect: wire.V1alpha1}},
		{"v1alpha1 with Recovery", v1("d").answer("GetCapabilities", caps), []string{"v1alpha1", "recovery"}, wire.Info{Name: "d", Dialect: wire.V1alpha1, Recovery: wire.Recovery{
			Buckets:  wire.Capabilities{DeleteByName: true, FindByName: true, List: true, CreateRepeatSafe: true, OwnerMark: true},
			Accounts: wire.Capabilities{DeleteByName: true},
		}}},
		{"a protocol of the future is not silence", v2("d").answer("DriverGetInfo", &v1alpha2.DriverGetInfoResponse{Name: "d", SupportedProtocols: []*v1alpha2.ObjectProtocol{{Type: 9}}}),
			[]string{"v1alpha2"}, wire.Info{Name: "d", Dialect: wire.V1alpha2, Protocols: []wire.Protocol{"9"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket := socketPath(t)
			tc.fake.serve(t, socket, tc.services...)
			if diff := cmp.Diff(tc.want, dial(t, socket).Info()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDialTellsWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup func(t *testing.T, socket string)
		want  string
	}{
		{"no socket", func(*testing.T, string) {}, "no driver socket at"},
		{"no socket but a file", func(t *testing.T, socket string) {
			if err := os.WriteFile(socket, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		{"no COSI", func(t *testing.T, socket string) { (&fake{}).serve(t, socket) }, "no COSI driver"},
		{"no name", func(t *testing.T, socket string) { v2("").serve(t, socket, "v1alpha2") }, "fault of the driver"},
		{"long name", func(t *testing.T, socket string) { v2(strings.Repeat("d", 64)).serve(t, socket, "v1alpha2") }, "fault of the driver"},
		// A passing fault of an Identity must not be taken for an older dialect.
		{"v1alpha2 not well", func(t *testing.T, socket string) {
			v1("d").fail("DriverGetInfo", status.Error(codes.Internal, "starting")).serve(t, socket, "v1alpha1", "v1alpha2")
		}, "starting"},
		// Nor of the capabilities for a driver without them: a weaker way would be chosen.
		{"recovery not well", func(t *testing.T, socket string) {
			v1("d").fail("GetCapabilities", status.Error(codes.Internal, "starting")).serve(t, socket, "v1alpha1", "recovery")
		}, "starting"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket := socketPath(t)
			tc.setup(t, socket)
			_, err := wire.Dial(deadline(t), "unix://"+socket, wire.Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if !wire.NotSent(err) {
				t.Errorf("not marked as not sent: %v", err)
			}
		})
	}
}

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"unix:///a/b.sock":         "unix /a/b.sock",
		"unix:/a/b.sock":           "unix /a/b.sock",
		"unix:b.sock":              "unix b.sock",
		"tcp://127.0.0.1:80":       "tcp 127.0.0.1:80",
		"tcp://[::1]:80":           "tcp [::1]:80",
		"unix://a/b.sock":          "third slash",
		"unix:":                    "names no socket",
		"":                         "write it as",
		"/a/b.sock":                "write it as",
		"tcp://10.0.0.1:80":        "loopback",
		"tcp://:80":                "loopback",
		"tcp://127.0.0.1":          "missing port",
		"unix:///" + longPath(200): "at most 107",
	} {
		network, address, err := wire.ParseEndpoint(in)
		got := network + " " + address
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func longPath(n int) string { return strings.Repeat("x", n) }

// A driver replaced by another version of itself is asked again; the two-phase calls are tried again.
func TestReconnectAsksAgain(t *testing.T) {
	socket := socketPath(t)
	stop := v1("d").serve(t, socket, "v1alpha1")
	c := dial(t, socket)
	if _, err := c.GenerateBucketID(deadline(t), wire.BucketRequest{Name: "b"}); !errors.Is(err, wire.ErrNotOffered) {
		t.Fatalf("got %v", err)
	}
	stop()
	if _, err := c.CreateBucket(deadline(t), wire.BucketRequest{Name: "b"}); err == nil {
		t.Fatal("a call to a stopped driver succeeded")
	}
	next := v2("d").answer("DriverGenerateBucketId", &v1alpha2.DriverGenerateBucketIdResponse{BucketId: "id"})
	next.serve(t, socket, "v1alpha2")
	id := eventually(t, func() (string, error) { return c.GenerateBucketID(deadline(t), wire.BucketRequest{Name: "b"}) })
	if id != "id" || c.Info().Dialect != wire.V1alpha2 {
		t.Errorf("got id %q, info %+v", id, c.Info())
	}
}

// Another driver on the same socket must never get this one's calls.
func TestReconnectToAnotherDriverIsRefused(t *testing.T) {
	socket := socketPath(t)
	stop := v2("one").serve(t, socket, "v1alpha2")
	c := dial(t, socket)
	stop()
	other := v2("two").answer("DriverDeleteBucket", &v1alpha2.DriverDeleteBucketResponse{})
	other.serve(t, socket, "v1alpha2")
	var err error
	eventually(t, func() (struct{}, error) {
		err = c.DeleteBucket(deadline(t), wire.DeleteBucketRequest{ID: "b"})
		if wire.Code(err) == codes.Unavailable {
			return struct{}{}, err
		}
		return struct{}{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), `was "one" and now says it is "two"`) || !wire.NotSent(err) {
		t.Errorf("got %v", err)
	}
	if n := other.called("DriverDeleteBucket"); n != 0 {
		t.Errorf("the other driver got the delete")
	}
}

func eventually[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	ctx := deadline(t)
	for {
		got, err := f()
		if err == nil {
			return got
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestDeadlines(t *testing.T) {
	socket := socketPath(t)
	hang := func(ctx context.Context, _ any) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
	v2("d").on("DriverCreateBucket", hang).serve(t, socket, "v1alpha2")
	c, err := wire.Dial(deadline(t), "unix://"+socket, wire.Options{CallTimeout: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.CreateBucket(context.Background(), wire.BucketRequest{Name: "b"}) // no deadline of its own
	if wire.Code(err) != codes.DeadlineExceeded || wire.NotSent(err) {
		t.Errorf("got %v (not sent: %v)", err, wire.NotSent(err))
	}
	ctx, cancel := context.WithCancel(deadline(t))
	cancel()
	if _, err = c.CreateBucket(ctx, wire.BucketRequest{Name: "b"}); wire.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
}
