package job

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/wire"
)

// counter is a driver that makes buckets and counts them.
type counter struct {
	wire.Driver
	made chan string
}

func (counter) Info() wire.Info { return wire.Info{Name: "counter"} }

func (c counter) CreateBucket(_ context.Context, r wire.BucketRequest) (wire.Bucket, error) {
	c.made <- r.Name
	return wire.Bucket{ID: r.Name}, nil
}

// gated is a client of a gate before a counter.
func gated(t *testing.T) (*wire.Client, *gate, counter) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gate") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := counter{made: make(chan string, 4)}
	l, err := net.Listen("unix", filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	if err := wire.Register(server, c, wire.Services{V1alpha2: true, Recovery: true}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	endpoint := "unix://" + filepath.Join(dir, "g")
	g, err := openGate(t.Context(), "unix://"+filepath.Join(dir, "d"), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	client, err := wire.Dial(t.Context(), endpoint, wire.Options{CallTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, g, c
}

func TestGateHoldsOneAnswer(t *testing.T) {
	client, g, driver := gated(t)
	h := g.Hold()
	answered := make(chan error, 1)
	go func() {
		_, err := client.CreateBucket(t.Context(), wire.BucketRequest{Name: "bc-1"})
		answered <- err
	}()
	name, err := h.wait(t.Context())
	if err != nil || name != "bc-1" {
		t.Fatalf("held %q, %v", name, err)
	}
	if made := <-driver.made; made != "bc-1" {
		t.Errorf("the driver made %s", made)
	}
	select {
	case err := <-answered:
		t.Fatalf("the answer passed: %v", err)
	default:
	}
	if _, err := client.CreateBucket(t.Context(), wire.BucketRequest{Name: "bc-2"}); err != nil {
		t.Errorf("the next one is held too: %v", err)
	}
	h.Release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestGateLetsGoOfACallerThatIsGone(t *testing.T) {
	client, g, _ := gated(t)
	h := g.Hold()
	ctx, hangUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := client.CreateBucket(ctx, wire.BucketRequest{Name: "bc-1"})
		answered <- err
	}()
	if _, err := h.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	hangUp()
	if err := <-answered; wire.Code(err) != codes.Canceled && !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that hung up hears %v", err)
	}
}
