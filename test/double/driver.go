package double

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// Driver is the driver process: what it knows is lost when it dies.
type Driver struct {
	storage Storage
	config  Config
	server  *grpc.Server

	mu      sync.Mutex
	running map[string]int       // creates, by kind and name
	landing map[string]time.Time // the end of late creates
}

// NewDriver makes a driver of what the storage says it is.
func NewDriver(s Storage) (*Driver, error) {
	c, err := s.Setup()
	if err != nil {
		return nil, err
	}
	d := &Driver{storage: s, config: c, server: grpc.NewServer(), running: map[string]int{}, landing: map[string]time.Time{}}
	services := wire.Services{
		V1alpha1: c.Dialect == V1alpha1, V1alpha2: c.Dialect != V1alpha1, TwoPhase: c.Dialect == TwoPhase,
		Recovery: c.Buckets.Offers != wire.Capabilities{} || c.Accounts.Offers != wire.Capabilities{},
	}
	if err := wire.Register(d.server, d, services); err != nil {
		return nil, err
	}
	return d, nil
}

// Serve answers calls on a unix socket until ctx ends.
func (d *Driver) Serve(ctx context.Context, socket string) error {
	l, err := listen(ctx, socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, d.server.Stop)
	defer stop()
	if err := d.server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve driver double on %s: %w", socket, err)
	}
	return nil
}

// act does one call about one thing.
func (d *Driver) act(r Request) (Thing, error) {
	things, err := d.all(r)
	if len(things) == 0 {
		return Thing{}, err
	}
	return things[0], err
}

// all does one call, faults and all. It goes on when the caller has hung up, as
// the work of a real backend does.
func (d *Driver) all(r Request) ([]Thing, error) {
	subject := fmt.Sprintf("%s of %s %q", r.Op, r.Kind, cmp.Or(r.ID, r.Name))
	plan, err := d.storage.Plan(r.Op)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if plan.Die == BeforeWork {
		die()
	}
	time.Sleep(plan.Before)
	if plan.Work == Never {
		return nil, status.Errorf(plan.Code, "%s: refused", subject)
	}
	if plan.Work == Late {
		r.LateBy = max(plan.LateBy, time.Millisecond)
		d.land(r)
	}
	result, err := d.storage.Do(r)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if plan.Die == AfterWork {
		die()
	}
	time.Sleep(plan.After)
	if plan.Code == codes.OK {
		return result.Things, result.error(subject, r.Op)
	}
	fail := status.Errorf(plan.Code, "%s: something went wrong", subject)
	if plan.Detail && len(result.Things) > 0 {
		fail = wire.WithMadeID(fail, result.Things[0].ID)
	}
	return nil, fail
}

// create is act for what makes things. It keeps count for the Recovery service,
// which must not say that nothing is there while a create may still land. A create
// under a generated id has no name: the id holds it.
func (d *Driver) create(r Request) (Thing, error) {
	if r.ID != "" {
		r.Name = nameInID(r.ID)
	}
	k := key(r.Kind, r.Name)
	d.mu.Lock()
	d.running[k]++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.running[k]--
	}()
	return d.act(r)
}

// land remembers a create that this process has sent and that is not done yet.
func (d *Driver) land(r Request) {
	if r.Op != Create {
		return
	}
	const slack = 100 * time.Millisecond // the backend's clock starts later than ours
	d.mu.Lock()
	defer d.mu.Unlock()
	d.landing[key(r.Kind, r.Name)] = time.Now().Add(r.LateBy + slack)
}

// busy refuses a look while a create of the name may still land.
func (d *Driver) busy(kind Kind, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := key(kind, name); d.running[k] > 0 || time.Now().Before(d.landing[k]) {
		return status.Errorf(codes.Aborted, "a create of %s %q is running", kind, name)
	}
	return nil
}

func (r Result) error(subject string, op Op) error {
	switch {
	case r.Status == Exists:
		return status.Errorf(codes.AlreadyExists, "%s: it exists", subject)
	case r.Status == Full:
		return status.Errorf(codes.FailedPrecondition, "%s: it is not empty", subject)
	case r.Status == Absent && op == Get:
		return status.Errorf(codes.NotFound, "%s: there is none", subject)
	}
	return nil // to delete what is absent is no error
}

func region(parameters map[string]string) string {
	if r := parameters["region"]; r != "" {
		return r
	}
	return DefaultRegion
}

// die kills the process, as kill -9 does.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
