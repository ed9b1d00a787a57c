package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// DriverName is the name of the driver that does nothing.
const DriverName = "nothing.bench.custody.dev"

// controlSuffix is added to the driver's socket to make the one by which the
// bench asks for its counts and sets its delay.
const controlSuffix = ".control"

// nothing is a driver that answers at once, or after a delay, and keeps nothing
// but a count of the calls. It speaks v1alpha2 in one phase, without the Recovery
// service, as most drivers do.
type nothing struct {
	mu    sync.Mutex
	delay time.Duration
	calls map[string]int
}

// Driver serves the driver that does nothing on a unix socket ("unix:///path")
// until ctx ends.
func Driver(ctx context.Context, endpoint string) error {
	_, path, err := wire.ParseEndpoint(endpoint)
	if err != nil {
		return err
	}
	n := &nothing{calls: map[string]int{}}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	controls, err := listen.Listen(ctx, "unix", path+controlSuffix)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	if err := wire.Register(server, n, wire.Services{V1alpha2: true}); err != nil {
		return err
	}
	control := &http.Server{Handler: n.control(), ReadHeaderTimeout: time.Second}
	go func() {
		<-ctx.Done()
		server.Stop()
		control.Close()
	}()
	go func() { _ = control.Serve(controls) }() // ends with the driver
	return server.Serve(listener)
}

func (n *nothing) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		_ = json.NewEncoder(w).Encode(n.calls) // the bench sees what it didn't get
	})
	mux.HandleFunc("PUT /delay", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.URL.Query().Get("d"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.delay = d
	})
	return mux
}

// call counts a call and takes its time.
func (n *nothing) call(ctx context.Context, op string) error {
	n.mu.Lock()
	n.calls[op]++
	delay := n.delay
	n.mu.Unlock()
	if delay == 0 {
		return nil
	}
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (n *nothing) Info() wire.Info {
	return wire.Info{Name: DriverName, Protocols: []wire.Protocol{wire.S3}}
}

func bucket(id string) wire.Bucket {
	return wire.Bucket{ID: id, Info: wire.BucketInfo{S3: &wire.S3Bucket{
		BucketID: id, Endpoint: "http://127.0.0.1:1", Region: "us-east-1", AddressingStyle: wire.PathStyle}}}
}

func (n *nothing) GenerateBucketID(context.Context, wire.BucketRequest) (string, error) {
	return "", wire.ErrNotOffered
}

func (n *nothing) CreateBucket(ctx context.Context, r wire.BucketRequest) (wire.Bucket, error) {
	return bucket(r.Name), n.call(ctx, "create")
}

func (n *nothing) GetBucket(ctx context.Context, r wire.GetBucketRequest) (wire.Bucket, error) {
	return bucket(r.ID), n.call(ctx, "get")
}

func (n *nothing) DeleteBucket(ctx context.Context, _ wire.DeleteBucketRequest) error {
	return n.call(ctx, "delete")
}

func (n *nothing) GenerateAccountID(context.Context, wire.GrantRequest) (string, error) {
	return "", wire.ErrNotOffered
}

func (n *nothing) GrantAccess(context.Context, wire.GrantRequest) (wire.Grant, error) {
	return wire.Grant{}, status.Error(codes.Unimplemented, "the bench has no accounts")
}

func (n *nothing) RevokeAccess(context.Context, wire.RevokeRequest) error {
	return status.Error(codes.Unimplemented, "the bench has no accounts")
}

func (n *nothing) DeleteByName(context.Context, wire.Kind, wire.NameRequest) error {
	return wire.ErrNotOffered
}

func (n *nothing) FindByName(context.Context, wire.Kind, wire.NameRequest) ([]wire.Item, error) {
	return nil, wire.ErrNotOffered
}

func (n *nothing) List(context.Context, wire.Kind, wire.ListRequest) (wire.Page, error) {
	return wire.Page{}, wire.ErrNotOffered
}

// control is the bench's side of a driver's control socket.
type control struct{ http *http.Client }

func controlOf(endpoint string) control {
	path := strings.TrimPrefix(endpoint, "unix://") + controlSuffix
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return control{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

func (c control) do(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://driver"+path, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the driver answers %s to %s %s", resp.Status, method, path)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// calls are how many calls of each kind the driver has had.
func (c control) calls(ctx context.Context) (map[string]int, error) {
	calls := map[string]int{}
	return calls, c.do(ctx, http.MethodGet, "/calls", &calls)
}

// delay sets how long the driver takes over each call from now on.
func (c control) delay(ctx context.Context, d time.Duration) error {
	return c.do(ctx, http.MethodPut, "/delay?d="+d.String(), nil)
}
