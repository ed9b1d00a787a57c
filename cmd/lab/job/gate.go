package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// gate is a driver before a driver: it passes every call on, and holds back the
// answer of a create or a grant if it is asked to. The other's work is done then.
type gate struct {
	wire.Driver
	client *wire.Client
	server *grpc.Server

	mu   sync.Mutex
	held *held // nil: answers pass
}

// held is one answer that is held back.
type held struct {
	arrived chan string   // gets the name, once the driver has done its work
	let     chan struct{} // closed to let the answer pass
	once    sync.Once
}

// Release lets the answer pass. It may be called again.
func (h *held) Release() { h.once.Do(func() { close(h.let) }) }

// openGate serves on one unix socket what a driver serves on another.
func openGate(ctx context.Context, driver, endpoint string) (*gate, error) {
	client, err := wire.Dial(ctx, driver, wire.Options{})
	if err != nil {
		return nil, err
	}
	g := &gate{Driver: client, client: client, server: grpc.NewServer()}
	if err := wire.Register(g.server, g, wire.Services{V1alpha2: true, Recovery: true}); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	network, address, err := wire.ParseEndpoint(endpoint)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gate before the driver: %w", err), client.Close())
	}
	go func() { _ = g.server.Serve(l) }() // ends with Close
	return g, nil
}

// Close ends it.
func (g *gate) Close() error {
	g.server.Stop()
	return g.client.Close()
}

// Hold holds back the answer of the next create or grant.
func (g *gate) Hold() *held {
	h := &held{arrived: make(chan string, 1), let: make(chan struct{})}
	g.mu.Lock()
	g.held = h
	g.mu.Unlock()
	return h
}

// pass holds an answer back if that was asked for.
func (g *gate) pass(ctx context.Context, name string) error {
	g.mu.Lock()
	h := g.held
	g.held = nil
	g.mu.Unlock()
	if h == nil {
		return nil
	}
	h.arrived <- name
	select {
	case <-h.let:
		return nil
	case <-ctx.Done(): // whoever asked is gone
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (g *gate) CreateBucket(ctx context.Context, r wire.BucketRequest) (wire.Bucket, error) {
	b, err := g.Driver.CreateBucket(ctx, r)
	if gone := g.pass(ctx, r.Name); gone != nil {
		return wire.Bucket{}, gone
	}
	return b, err
}

func (g *gate) GrantAccess(ctx context.Context, r wire.GrantRequest) (wire.Grant, error) {
	grant, err := g.Driver.GrantAccess(ctx, r)
	if gone := g.pass(ctx, r.Name); gone != nil {
		return wire.Grant{}, gone
	}
	return grant, err
}

// wait returns when the driver has done its work for the call that is held.
func (h *held) wait(ctx context.Context) (name string, err error) {
	const patience = 30 * time.Second
	select {
	case name := <-h.arrived:
		return name, nil
	case <-time.After(patience):
		return "", status.Error(codes.DeadlineExceeded, "no create reached the driver within "+patience.String())
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
