package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
)

// Client is a Driver over gRPC. It reconnects by itself. At each new connection it asks the driver anew
// what it is, before any other call: the driver may have been upgraded, or another may have taken the
// socket. Close it when done.
type Client struct {
	conn              *grpc.ClientConn
	network, address  string
	endpoint          string
	timeout           time.Duration
	connections       atomic.Uint64 // how many were made so far: tells a new one from the one that was asked
	asking            chan struct{} // holds a token while somebody asks
	mu                sync.Mutex    // guards what follows
	answer            *answer
	answeredOn        uint64 // the connection that answer came from
	noGenerate        [KindAccount + 1]bool
	hasGenerate       bool
	getBucketIsSecond bool
}

var _ Driver = (*Client)(nil)

// answer is what a driver said of itself on one connection.
type answer struct {
	info    Info
	dialect dialect
}

// Dial connects to a driver and asks what it is, within ctx (or CallTimeout). It fails if the driver
// cannot be reached: the message says what to look at; call again later.
func Dial(ctx context.Context, endpoint string, opts Options) (*Client, error) {
	network, address, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	c := &Client{network: network, address: address, endpoint: endpoint, timeout: opts.CallTimeout, asking: make(chan struct{}, 1)}
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: opts.MaxReconnectDelay}
	c.conn, err = grpc.NewClient(target(network, address),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0), // an idle close would make us ask again for nothing
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: opts.CallTimeout}),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler()),
		grpc.WithStatsHandler(&connectionCount{&c.connections}),
	)
	if err != nil {
		return nil, fmt.Errorf("driver endpoint %q: %w", endpoint, err)
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	if _, err := c.ready(ctx); err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	return c, nil
}

func target(network, address string) string {
	if network == "unix" {
		return "unix:" + address
	}
	return "passthrough:///" + address
}

// Close ends the connection; calls in flight fail.
func (c *Client) Close() error { return c.conn.Close() }

// Info implements Driver.
func (c *Client) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answer.info
}

func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.timeout)
}

// ready answers what the driver at the other end of the present connection is, asking it if it was not
// asked on this connection yet. Its errors mean that the call it was for was not sent.
func (c *Client) ready(ctx context.Context) (*answer, error) {
	if a := c.known(); a != nil {
		return a, nil
	}
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, &notSentError{fmt.Errorf("driver at %s does not say who it is: %w", c.endpoint, ctx.Err())}
	}
	if a := c.known(); a != nil { // somebody else asked meanwhile
		return a, nil
	}
	a, err := c.ask(ctx)
	if err != nil {
		return nil, &notSentError{err}
	}
	return a, nil
}

func (c *Client) known() *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer != nil && c.answeredOn == c.connections.Load() && c.conn.GetState() == connectivity.Ready {
		return c.answer
	}
	return nil
}

// notSentError wraps an error that came before the call left this process.
type notSentError struct{ error }

func (e *notSentError) Unwrap() error { return e.error }

// NotSent tells that the call of this error never left this process, so the driver cannot have acted on
// it: the driver was not reached, or the request was refused here. False says nothing.
func NotSent(err error) bool {
	var e *notSentError
	return errors.As(err, &e)
}

// connectionCount counts connections as they begin.
type connectionCount struct{ n *atomic.Uint64 }

func (h *connectionCount) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		h.n.Add(1)
	}
}
func (*connectionCount) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}
func (*connectionCount) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (*connectionCount) HandleRPC(context.Context, stats.RPCStats)                       {}

// rpc is the type of a generated client's method.
type rpc[Req, Resp any] func(context.Context, Req, ...grpc.CallOption) (Resp, error)

// call makes one gRPC call and dresses its error.
func call[Req, Resp any](ctx context.Context, who caller, op, subject string, f rpc[Req, Resp], req Req) (Resp, error) {
	resp, err := f(ctx, req)
	if err != nil {
		return resp, &CallError{Op: op, Subject: subject, Driver: who.driver, Endpoint: who.endpoint, Err: err}
	}
	return resp, nil
}

// caller names the driver in errors.
type caller struct{ driver, endpoint string }

func unimplemented(err error) bool { return err != nil && Code(err) == codes.Unimplemented }
