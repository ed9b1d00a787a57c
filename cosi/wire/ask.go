package wire

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"google.golang.org/grpc/codes"
	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/custody-storage/custody/cosi/wire/recovery"
	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

// ask asks the driver what it is and keeps the answer. One caller at a time.
func (c *Client) ask(ctx context.Context) (*answer, error) {
	// A connection that breaks while we ask may be followed by one to another driver. Such answers are
	// mixed: ask again. A driver that breaks every connection ends the loop with the deadline.
	for {
		a, on, err := c.identify(ctx)
		if err != nil {
			return nil, err
		}
		if a.info.Recovery, err = c.capabilities(ctx, a.info.Name); err != nil {
			return nil, err
		}
		if on == c.connections.Load() {
			return a, c.keep(a, on)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("driver at %s breaks each connection: %w", c.endpoint, ctx.Err())
		}
	}
}

func (c *Client) keep(a *answer, on uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer != nil && c.answer.info.Name != a.info.Name {
		return fmt.Errorf("the driver at %s was %q and now says it is %q: two drivers share a socket path, or one was replaced; give each its own, then restart this process",
			c.endpoint, c.answer.info.Name, a.info.Name)
	}
	c.answer, c.answeredOn = a, on
	c.noGenerate, c.hasGenerate, c.getBucketIsSecond = [KindAccount + 1]bool{}, false, false
	return nil
}

// identify asks for the Identity of each dialect, newest first.
func (c *Client) identify(ctx context.Context) (a *answer, on uint64, err error) {
	who := caller{"(not asked yet)", c.endpoint}
	got2, err := call(ctx, who, "v1alpha2 Identity.DriverGetInfo", "", v1alpha2.NewIdentityClient(c.conn).DriverGetInfo, &v1alpha2.DriverGetInfoRequest{})
	on = c.connections.Load()
	if err == nil {
		info := Info{Name: got2.GetName(), Dialect: V1alpha2, Protocols: protocolsFrom2(got2.GetSupportedProtocols())}
		if err := c.checkName(info.Name); err != nil {
			return nil, 0, err
		}
		return &answer{info, &dialect2{c, caller{info.Name, c.endpoint}, v1alpha2.NewProvisionerClient(c.conn)}}, on, nil
	}
	if !unimplemented(err) {
		return nil, 0, c.explain(err)
	}
	got1, err := call(ctx, who, "v1alpha1 Identity.DriverGetInfo", "", v1alpha1.NewIdentityClient(c.conn).DriverGetInfo, &v1alpha1.DriverGetInfoRequest{})
	if err == nil {
		info := Info{Name: got1.GetName(), Dialect: V1alpha1}
		if err := c.checkName(info.Name); err != nil {
			return nil, 0, err
		}
		return &answer{info, &dialect1{caller{info.Name, c.endpoint}, v1alpha1.NewProvisionerClient(c.conn)}}, on, nil
	}
	if unimplemented(err) {
		return nil, 0, fmt.Errorf("what answers at %s is no COSI driver that this program knows: it has the Identity service of neither v1alpha2 nor v1alpha1: %w", c.endpoint, err)
	}
	return nil, 0, c.explain(err)
}

func (c *Client) checkName(name string) error {
	if name == "" || len(name) > 63 {
		return fmt.Errorf("the driver at %s says its name is %q: a driver's name has 1 to 63 characters; this is a fault of the driver", c.endpoint, name)
	}
	return nil
}

// capabilities asks for the Recovery service. A driver that has it but fails to answer is an error, not a
// driver without: the weaker ways must not be chosen for a passing fault.
func (c *Client) capabilities(ctx context.Context, name string) (Recovery, error) {
	got, err := call(ctx, caller{name, c.endpoint}, "Recovery.GetCapabilities", "", recovery.NewRecoveryClient(c.conn).GetCapabilities, &recovery.GetCapabilitiesRequest{})
	if unimplemented(err) {
		return Recovery{}, nil
	}
	if err != nil {
		return Recovery{}, err
	}
	return Recovery{Buckets: capabilitiesFrom(got.GetBuckets()), Accounts: capabilitiesFrom(got.GetAccounts())}, nil
}

// explain adds to "unavailable" what can be seen from here of the socket.
func (c *Client) explain(err error) error {
	if Code(err) != codes.Unavailable {
		return err
	}
	if c.network != "unix" {
		return fmt.Errorf("no driver answers at %s; see that it runs and listens there: %w", c.endpoint, err)
	}
	st, serr := os.Stat(c.address)
	switch {
	case os.IsNotExist(serr):
		return fmt.Errorf("no driver socket at %s; see that the driver runs, that it was told this path (COSI_ENDPOINT), and that both containers mount the folder: %w", c.address, err)
	case serr != nil:
		return fmt.Errorf("driver socket %s cannot be looked at (%w): %w", c.address, serr, err)
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket; see the endpoint that the driver and this program were told: %w", c.address, err)
	}
	return fmt.Errorf("nobody answers on the driver socket %s; the driver died or is starting: %w", c.address, err)
}
