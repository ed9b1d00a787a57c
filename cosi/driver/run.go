package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"

	"github.com/custody-storage/custody/cosi/wire"
)

// DefaultStopTimeout is how long Run lets calls finish when it is told to stop.
const DefaultStopTimeout = 25 * time.Second

// ServeOptions of Run. The zero value serves one phase of v1alpha2, v1alpha1 and Recovery on COSI's
// default socket.
type ServeOptions struct {
	// Endpoint is where to listen, "unix:///path". Empty: the environment's COSI_ENDPOINT, else
	// wire.DefaultEndpoint.
	Endpoint string
	// SocketMode is the file mode of the socket. 0: 0660. Whoever may write to it may ask for credentials.
	SocketMode os.FileMode
	// Services are the dialects to serve. Zero: V1alpha1, V1alpha2 and Recovery. TwoPhase needs a Backend
	// with IDs.
	Services wire.Services
	// StopTimeout is how long calls may finish after the end of the context; then they are cut. 0:
	// DefaultStopTimeout.
	StopTimeout time.Duration
	// Ready, if set, is called once the socket takes connections.
	Ready func()
	// Log takes the start and the end. The zero Logger logs nothing.
	Log logr.Logger
}

func (o ServeOptions) withDefaults() ServeOptions {
	if o.Endpoint == "" {
		o.Endpoint = os.Getenv("COSI_ENDPOINT")
	}
	if o.Endpoint == "" {
		o.Endpoint = wire.DefaultEndpoint
	}
	if o.SocketMode == 0 {
		o.SocketMode = 0o660
	}
	if (o.Services == wire.Services{}) {
		o.Services = wire.Services{V1alpha1: true, V1alpha2: true, Recovery: true}
	}
	if o.StopTimeout <= 0 {
		o.StopTimeout = DefaultStopTimeout
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return o
}

// Run serves the driver until ctx ends, then lets running calls finish. It answers nil after an orderly
// end.
func Run(ctx context.Context, d *Driver, o ServeOptions) error {
	o = o.withDefaults()
	if o.Services.TwoPhase && d.ids == nil {
		return fmt.Errorf("driver %s cannot serve the two-phase dialect: its ids do not follow from names (its Backend has not the methods of IDs)", d.info.Name)
	}
	server := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler()))
	if err := wire.Register(server, d, o.Services); err != nil {
		return err
	}
	l, err := listen(ctx, o.Endpoint, o.SocketMode)
	if err != nil {
		return err
	}
	defer l.release()
	o.Log.Info("driver serves", "driver", d.info.Name, "endpoint", o.Endpoint, "services", o.Services)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if o.Ready != nil {
		o.Ready()
	}
	select {
	case err := <-served:
		return fmt.Errorf("driver %s: serving on %s: %w", d.info.Name, o.Endpoint, err)
	case <-ctx.Done():
	}
	stop(server, o)
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it had begun
		return fmt.Errorf("driver %s: serving on %s: %w", d.info.Name, o.Endpoint, err)
	}
	o.Log.Info("driver stopped", "driver", d.info.Name)
	return nil
}

func stop(server *grpc.Server, o ServeOptions) {
	cut := time.AfterFunc(o.StopTimeout, func() {
		o.Log.Info("calls did not finish in time and are cut", "timeout", o.StopTimeout)
		server.Stop()
	})
	defer cut.Stop()
	server.GracefulStop()
}
