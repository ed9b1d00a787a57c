package rbd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/csi/node"
)

const (
	// DefaultCallTimeout ends a call, whatever it waits for. The CSI sidecars give up sooner, and call again.
	DefaultCallTimeout = 2 * time.Minute
	// DefaultStopTimeout is how long calls may finish when the server is told to stop.
	DefaultStopTimeout = 25 * time.Second
)

// Server serves the driver on a unix socket.
type Server struct {
	// Endpoint is unix:///PATH.
	Endpoint   string
	Identity   csi.IdentityServer
	Controller csi.ControllerServer // nil: not served
	Node       csi.NodeServer       // nil: not served
	// CallTimeout is the deadline of each call; 0 is DefaultCallTimeout.
	CallTimeout time.Duration
	// StopTimeout is how long calls may finish after the end of the context; 0 is DefaultStopTimeout.
	StopTimeout time.Duration
	// Log takes each call, with what the spec calls a secret cut out. nil is slog.Default.
	Log *slog.Logger
	// Ready, if set, is called once the socket takes connections.
	Ready func()
}

// Run serves until ctx ends, then lets running calls finish. It gives nil after an orderly end.
func (s *Server) Run(ctx context.Context) error {
	l, err := listen(ctx, s.Endpoint)
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler()),
		grpc.ChainUnaryInterceptor(s.logged, s.bounded, new(Locks).Intercept),
	)
	csi.RegisterIdentityServer(server, s.Identity)
	if s.Controller != nil {
		csi.RegisterControllerServer(server, s.Controller)
	}
	if s.Node != nil {
		csi.RegisterNodeServer(server, s.Node)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s.log().Info("the CSI driver serves", "endpoint", s.Endpoint)
	if s.Ready != nil {
		s.Ready()
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve CSI on %s: %w", s.Endpoint, err)
	case <-ctx.Done():
	}
	cut := time.AfterFunc(or(s.StopTimeout, DefaultStopTimeout), func() {
		s.log().Warn("calls did not finish in time and are cut")
		server.Stop()
	})
	defer cut.Stop()
	server.GracefulStop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve CSI on %s: %w", s.Endpoint, err)
	}
	return nil
}

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// logged writes each call down once, with its answer.
func (s *Server) logged(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	answer, err := handler(ctx, req)
	log := s.log().With("method", info.FullMethod, "request", protosanitizer.StripSecrets(req).String(), "took", time.Since(begin).Round(time.Millisecond))
	switch {
	case err != nil:
		log.Error("call failed", "code", status.Code(err).String(), "error", status.Convert(err).Message())
	case quiet[info.FullMethod]:
		log.Debug("call")
	default:
		log.Info("call", "answer", protosanitizer.StripSecrets(answer).String())
	}
	return answer, err
}

// quiet calls come every few seconds.
var quiet = map[string]bool{
	csi.Identity_Probe_FullMethodName:                       true,
	csi.Identity_GetPluginInfo_FullMethodName:               true,
	csi.Identity_GetPluginCapabilities_FullMethodName:       true,
	csi.Node_NodeGetVolumeStats_FullMethodName:              true,
	csi.Node_NodeGetCapabilities_FullMethodName:             true,
	csi.Controller_ControllerGetCapabilities_FullMethodName: true,
	csi.Controller_GetCapacity_FullMethodName:               true,
}

// bounded gives each call a deadline, and each error its code.
func (s *Server) bounded(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, or(s.CallTimeout, DefaultCallTimeout))
	defer cancel()
	answer, err := handler(ctx, req)
	if err != nil {
		return nil, coded(err)
	}
	return answer, nil
}

// listen opens the socket. One that a dead driver left is removed; one that a living one serves is an error.
func listen(ctx context.Context, endpoint string) (net.Listener, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "unix" || u.Host != "" || !filepath.IsAbs(u.Path) {
		return nil, fmt.Errorf("CSI endpoint %q: wanted is unix:///PATH", endpoint)
	}
	st, err := os.Lstat(u.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("CSI endpoint: %w", err)
	case st.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("CSI endpoint: %s is there and is not a socket; it is left alone, choose another endpoint", u.Path)
	default:
		if c, err := new(net.Dialer).DialContext(ctx, "unix", u.Path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("CSI endpoint: another program serves on %s; stop it, or choose another endpoint", u.Path)
		}
		if err := os.Remove(u.Path); err != nil {
			return nil, fmt.Errorf("CSI endpoint: remove the socket that a dead driver left: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", u.Path)
	if err != nil {
		return nil, fmt.Errorf("CSI endpoint: %w", err)
	}
	if err := os.Chmod(u.Path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("CSI endpoint: %w", err), l.Close())
	}
	return l, nil
}

// Locks lets one operation at a time work on a volume, a snapshot or a name that is being made into one; others get
// ABORTED (spec, Concurrency). It holds no memory of what is not locked.
type Locks struct{ volumes node.Locks }

// Intercept is a gRPC interceptor that holds the lock for as long as a call runs.
func (l *Locks) Intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	key := subject(req)
	if key == "" || info.FullMethod == csi.Node_NodeGetVolumeStats_FullMethodName {
		return handler(ctx, req)
	}
	unlock, err := l.volumes.Take(key, path.Base(info.FullMethod))
	if err != nil {
		return nil, err
	}
	defer unlock()
	return handler(ctx, req)
}

// subject is the image that a request is about. The pool of a create is of no matter: two of one name wait for each other.
func subject(req any) string {
	switch r := req.(type) {
	case *csi.CreateVolumeRequest:
		return VolumeImage(r.GetName())
	case *csi.CreateSnapshotRequest:
		return SnapshotImage(r.GetName())
	case *csi.ValidateVolumeCapabilitiesRequest, *csi.ListSnapshotsRequest:
		return ""
	case interface{ GetVolumeId() string }:
		return imageOf(r.GetVolumeId())
	case interface{ GetSnapshotId() string }:
		return imageOf(r.GetSnapshotId())
	}
	return ""
}

func imageOf(id string) string {
	v, err := ParseID(id)
	if err != nil {
		return id
	}
	return v.Image
}
