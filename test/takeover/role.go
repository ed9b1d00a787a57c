//go:build ceph

package takeover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/ceph/mapper/server"
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/failpoint"
)

const (
	envRole = "CUSTODY_TEST_TAKEOVER"

	roleServe = "serve"
	roleNode  = "node"
	roleWrite = "write"
	roleOpen  = "open"
)

// RunIfAsked runs the process that this one is to be, and exits; or returns, if it is the test or the bench.
func RunIfAsked() {
	role := os.Getenv(envRole)
	if role == "" {
		return
	}
	err := errors.New("no such role")
	switch role {
	case roleServe:
		err = server.Serve(os.Stdin, os.Stdout)
	case roleNode:
		err = runNode(os.Stdin, os.Stdout)
	case roleWrite:
		err = runWriter(os.Args[1:], os.Stdout)
	case roleOpen:
		err = runOpen(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// order is the first line that a machine's process reads. It has a key: through a pipe only.
type order struct {
	Config mapper.OrderConfig
	Who    exclusive.Who
	Dir    string
	Self   string // path of this program
}

func (o order) config() ceph.Config {
	c := o.Config
	return ceph.Config{ID: c.ID, Monitors: c.Monitors, User: c.User, Key: ceph.Secret(c.Key), Timeout: c.Timeout, Settings: c.Settings}
}

// Task is what a machine is asked to do.
type Task struct {
	// Verb as of the protocol; 0 for Bare.
	Verb   exclusive.Verb
	Volume string
	// Bare maps and exposes, or with Unmap takes it all away, without a hold: what is done today.
	Bare, Unmap bool
	// FSType is ext4 or xfs; "" exposes the device itself.
	FSType string
	// Verdict is what the evidence says of the owner.
	Verdict exclusive.Verdict
	// From is whom Detach is about.
	From string
	// Unfenced answers that the fence is set and sets none: the control.
	Unfenced bool
	// Failpoints kill the machine's process while it is at it.
	Failpoints *failpoint.Plan
	// Within is for all of it; 0 is a minute.
	Within time.Duration
}

const taskWithin = time.Minute

// Reply is what came of it.
type Reply struct {
	Kind  exclusive.Kind
	Why   string
	Hold  exclusive.Hold
	Map   exclusive.Mapping
	Took  time.Duration
	Error string
}

// node is a machine's process.
type node struct {
	order   order
	cluster *ceph.Cluster
	fuse    *mapper.Fuse
}

func runNode(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var n node
	if err := readLine(lines, &n.order); err != nil {
		return fmt.Errorf("read who this is: %w", err)
	}
	var err error
	if n.cluster, err = ceph.Open(n.order.config()); err != nil {
		return err
	}
	n.fuse = newFuse(n.order.Dir, n.order.Self, n.cluster.Config)
	if _, err := n.cluster.Epoch(context.Background()); err != nil { // connected, as a node plugin is that runs
		return err
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(Reply{}); err != nil {
		return err
	}
	for {
		var t Task
		err := readLine(lines, &t)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		begin := time.Now()
		reply, err := n.do(t)
		if err != nil {
			reply.Error = err.Error()
		}
		reply.Took = time.Since(begin)
		if err := answers.Encode(reply); err != nil {
			return err
		}
	}
}

// readLine reads one line of JSON. What can't be read is not quoted: it may hold a key.
func readLine(r *bufio.Reader, into any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	if json.Unmarshal(line, into) != nil {
		return errors.New("a line is not of the form that is wanted")
	}
	return nil
}

func newFuse(dir, self string, config func() (ceph.Config, error)) *mapper.Fuse {
	return &mapper.Fuse{Servers: mapper.Servers{
		Dir: dir + "/s", Command: []string{self}, Env: []string{envRole + "=" + roleServe}, Config: config,
	}}
}

// do does a task, through waits too, until its deadline.
func (n *node) do(t Task) (Reply, error) {
	within := t.Within
	if within == 0 {
		within = taskWithin
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	d := deviceIn(n.order.Dir, n.fuse, t.Volume, t.FSType)
	if t.Bare {
		return bare(ctx, d, t)
	}
	begin := time.Now()
	manager := exclusive.Manager{
		Registry: n.cluster.Registry(), Device: d, Fencer: n.cluster.Fencer(), Evidence: said(t.Verdict),
		Now: func() time.Duration { return time.Since(begin) }, First: 20 * time.Millisecond, Max: time.Second,
	}
	if t.Unfenced {
		manager.Fencer = idle{n.cluster}
	}
	if t.Failpoints != nil {
		points, err := failpoint.New(*t.Failpoints)
		if err != nil {
			return Reply{}, err
		}
		manager = points.Manager(manager)
	}
	request := exclusive.Request{
		Verb: t.Verb, Volume: t.Volume, Me: n.order.Who, From: t.From, Format: t.FSType != "",
	}
	memo, next := exclusive.Memo{}, exclusive.Next{}
	for {
		var err error
		memo, next, err = run(ctx, &manager, request, memo)
		reply := Reply{Kind: next.Kind, Why: next.Why.String(), Hold: memo.Hold, Map: memo.Map}
		if next.Kind != exclusive.Wait && next.Kind != exclusive.Again {
			return reply, nil
		}
		select {
		case <-ctx.Done():
			return reply, fmt.Errorf("verb %d on %s, %s: %w", t.Verb, t.Volume, reply.Why, errors.Join(context.Cause(ctx), err))
		case <-time.After(next.After):
		}
	}
}

// run runs the manager; the error says at which door it waits.
func run(ctx context.Context, m *exclusive.Manager, r exclusive.Request, memo exclusive.Memo) (exclusive.Memo, exclusive.Next, error) {
	memo, next := m.Run(ctx, r, memo)
	if next.Kind == exclusive.Wait {
		return memo, next, fmt.Errorf("hold %s of %s, device %q", memo.Hold.State, memo.Hold.Who.Node, memo.Map.Device)
	}
	return memo, next, nil
}

// bare does what a driver without holds does.
func bare(ctx context.Context, d *mapper.Device, t Task) (Reply, error) {
	if !t.Unmap {
		m, err := d.Map(ctx, t.Volume)
		if err == nil {
			err = d.Expose(ctx, m)
		}
		return Reply{Kind: exclusive.Done, Map: m}, err
	}
	if err := d.Withdraw(ctx, t.Volume); err != nil {
		return Reply{}, err
	}
	m, err := d.Other(ctx, t.Volume, "")
	if err == nil && m.Device != "" {
		err = d.Unmap(ctx, m)
	}
	return Reply{Kind: exclusive.Done}, err
}

// said is evidence as the task has it.
type said exclusive.Verdict

func (s said) Judge(context.Context, exclusive.Hold) (exclusive.Verdict, error) {
	return exclusive.Verdict(s), nil
}

// idle is a fencer that fences nobody and says that it does: the control.
type idle struct{ cluster *ceph.Cluster }

func (f idle) Fence(ctx context.Context, _ exclusive.Instance) (uint64, error) {
	return f.cluster.Epoch(ctx)
}
func (idle) Fenced(context.Context, exclusive.Instance) (bool, error)        { return true, nil }
func (idle) Lift(context.Context, exclusive.Instance, exclusive.Proof) error { return nil }
