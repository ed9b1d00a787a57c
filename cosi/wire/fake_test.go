package wire_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/cosi/wire/recovery"
	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

// fake is a driver that answers by hooks; a call without a hook is UNIMPLEMENTED, as from a driver that
// lacks it. It notes the calls it got.
type fake struct {
	mu    sync.Mutex
	calls []string
	// One hook per method, by name. It answers the response and the error.
	hooks map[string]func(ctx context.Context, req any) (any, error)
}

func (f *fake) on(method string, hook func(ctx context.Context, req any) (any, error)) *fake {
	if f.hooks == nil {
		f.hooks = map[string]func(context.Context, any) (any, error){}
	}
	f.hooks[method] = hook
	return f
}

func (f *fake) answer(method string, resp any) *fake {
	return f.on(method, func(context.Context, any) (any, error) { return resp, nil })
}

func (f *fake) fail(method string, err error) *fake {
	return f.on(method, func(context.Context, any) (any, error) { return nil, err })
}

func (f *fake) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	method := filepath.Base(info.FullMethod)
	if filepath.Dir(info.FullMethod) == "/cosi.v1alpha1.Identity" {
		method = "v1alpha1." + method
	}
	f.mu.Lock()
	f.calls = append(f.calls, method)
	hook := f.hooks[method]
	f.mu.Unlock()
	if hook == nil {
		return nil, status.Error(codes.Unimplemented, "no "+method+" here")
	}
	return hook(ctx, req)
}

func (f *fake) called(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == method {
			n++
		}
	}
	return n
}

// serve starts the fake on a socket with the services named; stop ends it and removes the socket.
func (f *fake) serve(t *testing.T, socket string, services ...string) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(f.intercept))
	for _, name := range services {
		switch name {
		case "v1alpha1":
			v1alpha1.RegisterIdentityServer(s, v1alpha1.UnimplementedIdentityServer{})
			v1alpha1.RegisterProvisionerServer(s, v1alpha1.UnimplementedProvisionerServer{})
		case "v1alpha2":
			v1alpha2.RegisterIdentityServer(s, v1alpha2.UnimplementedIdentityServer{})
			v1alpha2.RegisterProvisionerServer(s, v1alpha2.UnimplementedProvisionerServer{})
		case "recovery":
			recovery.RegisterRecoveryServer(s, recovery.UnimplementedRecoveryServer{})
		default:
			t.Fatalf("no service %q", name)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	stop = sync.OnceFunc(func() { s.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire") // t.TempDir may be longer than a socket's path can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "cosi.sock")
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, socket string) *wire.Client {
	t.Helper()
	c, err := wire.Dial(deadline(t), "unix://"+socket, wire.Options{MaxReconnectDelay: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func v2(name string) *fake {
	return (&fake{}).answer("DriverGetInfo", &v1alpha2.DriverGetInfoResponse{
		Name:               name,
		SupportedProtocols: []*v1alpha2.ObjectProtocol{{Type: v1alpha2.ObjectProtocol_S3}},
	})
}

func v1(name string) *fake {
	return (&fake{}).answer("v1alpha1.DriverGetInfo", &v1alpha1.DriverGetInfoResponse{Name: name})
}
