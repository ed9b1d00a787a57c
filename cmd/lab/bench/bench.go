package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/cmd/lab/stack"
	"github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
)

// ClassName is the BucketClass of the claims.
const ClassName = "bench"

const (
	lightRate    = 5 // claims a second
	lightSeconds = 12
	slowDriver   = 50 * time.Millisecond
)

// Options says what to measure.
type Options struct {
	Claims int
	// Lab is the path of this program, which is run as the driver too.
	Lab string
	// Profiles is a folder for profiles of controller, sidecar and API server: CPU in
	// the first 10 seconds of the load at once, and memory at its end; "" takes none.
	Profiles string
	Progress *show.Progress
}

// Run measures, and returns the figures. It takes about a minute for 500 claims.
func Run(ctx context.Context, o Options) (_ Figures, err error) {
	s, err := stack.Open(ctx, stack.Options{Progress: o.Progress})
	if err != nil {
		return Figures{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b := &bench{Options: o, stack: s, names: map[int]string{os.Getpid(): "bench"}, figures: Figures{Claims: o.Claims, Bare: cpu{}}}
	if err := b.all(ctx); err != nil {
		return Figures{}, err
	}
	return b.figures, nil
}

type bench struct {
	Options
	stack               *stack.Stack
	driver              control
	controller, sidecar *embedded.Process
	names               map[int]string    // of processes
	profiles            map[string]string // URLs, by the program's name
	figures             Figures
}

func (b *bench) all(ctx context.Context) error {
	// Before and after, since the machine may not be the bench's alone.
	if err := b.ceiling(ctx, "bare-before", &b.figures.CeilingBefore); err != nil {
		return err
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{b.light, b.atOnce, b.slow, b.usage} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	for _, p := range []*embedded.Process{b.controller, b.sidecar} {
		if err := b.stack.End(p, p.Stop); err != nil {
			return err
		}
	}
	return b.ceiling(ctx, "bare-after", &b.figures.CeilingAfter)
}

func (b *bench) ceiling(ctx context.Context, namespace string, perSecond *float64) (err error) {
	work := b.Progress.Begin("the API server's ceiling: the bare writes of %d claims by %d clients", b.Claims, clients)
	defer func() { _ = work.End(err) }()
	before, err := cpuOfAll(b.names)
	if err != nil {
		return err
	}
	*perSecond, err = ceiling(ctx, b.stack.Client, namespace, b.Claims, func() error {
		after, err := cpuOfAll(b.names)
		for name, t := range after.since(before) {
			b.figures.Bare[name] += t / 2 // of two times
		}
		return err
	})
	return err
}

// start runs driver, controller and sidecar, and returns when a first claim has
// passed, so that all have their caches and leases.
func (b *bench) start(ctx context.Context) error {
	endpoint, err := b.stack.Socket("driver")
	if err != nil {
		return err
	}
	b.driver = controlOf(endpoint)
	driver, err := b.stack.Start(ctx, embedded.Command{
		Name: "driver that does nothing", Path: b.Lab, Args: []string{"null-driver", "--endpoint", endpoint}, Log: b.stack.In("driver.log"),
		Ready: func(ctx context.Context) error { _, err := b.driver.calls(ctx); return err },
	})
	if err != nil {
		return err
	}
	sidecar, err := b.stack.Sidecar(ctx, stack.SidecarOptions{Endpoint: endpoint})
	if err != nil {
		return err
	}
	if b.sidecar, err = b.stack.Start(ctx, sidecar.Command); err != nil {
		return err
	}
	controller, err := b.stack.Controller(ctx, stack.ControllerOptions{})
	if err != nil {
		return err
	}
	if b.controller, err = b.stack.Start(ctx, controller.Command); err != nil {
		return err
	}
	b.names[driver.Pid()], b.names[b.sidecar.Pid()], b.names[b.controller.Pid()] = "driver", "sidecar", "controller"
	b.profiles = map[string]string{"controller": controller.Profiles, "sidecar": sidecar.Profiles, "kube-apiserver": b.stack.Kube.Config().Host + "/debug/pprof"}
	class := &v1alpha2.BucketClass{
		ObjectMeta: meta.ObjectMeta{Name: ClassName},
		Spec:       v1alpha2.BucketClassSpec{DriverName: DriverName, DeletionPolicy: v1alpha2.DeletionPolicyDelete},
	}
	if err := b.stack.Client.Create(ctx, class); err != nil {
		return err
	}
	_, err = b.load(ctx, "a first claim", "first", 1, func(ctx context.Context, l *load, work *show.Work) error {
		if err := l.makeAll(ctx, b.stack.Died(), work); err != nil {
			return err
		}
		_, err := l.deleteAll(ctx, b.stack.Died(), work)
		return err
	})
	return err
}

// load plays one load in a namespace of its own.
func (b *bench) load(ctx context.Context, what, namespace string, count int, play func(context.Context, *load, *show.Work) error) (_ *load, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := newLoad(ctx, b.stack.Client, namespace, count)
	if err != nil {
		return nil, err
	}
	work := b.Progress.Begin("%s", what)
	return l, work.End(play(ctx, l, work))
}

// light measures how long a claim takes when there is nearly nothing to do.
func (b *bench) light(ctx context.Context) error {
	count := lightRate * lightSeconds
	what := fmt.Sprintf("%d claims, %d a second", count, lightRate)
	l, err := b.load(ctx, what, "light", count, func(ctx context.Context, l *load, work *show.Work) error {
		if err := l.trickle(ctx, lightRate, b.stack.Died(), work); err != nil {
			return err
		}
		_, err := l.deleteAll(ctx, b.stack.Died(), work)
		return err
	})
	if err != nil {
		return err
	}
	b.figures.LightP50 = percentile(l.latencies(), 50)
	return nil
}

// atOnce measures the load on a driver that answers at once.
func (b *bench) atOnce(ctx context.Context) error {
	f := &b.figures
	before, err := b.look(ctx)
	if err != nil {
		return err
	}
	var ready, gone snapshot
	l, err := b.load(ctx, fmt.Sprintf("%d claims, the driver answers at once", b.Claims), "at-once", b.Claims,
		func(ctx context.Context, l *load, work *show.Work) error {
			profile := b.profile(ctx, "at-once")
			if err := l.makeAll(ctx, b.stack.Died(), work); err != nil {
				return err
			}
			if err := profile(); err != nil {
				return err
			}
			if ready, err = b.look(ctx); err != nil {
				return err
			}
			if f.GonePerSecond, err = l.deleteAll(ctx, b.stack.Died(), work); err != nil {
				return err
			}
			gone, err = b.look(ctx)
			return err
		})
	if err != nil {
		return err
	}
	f.ReadyPerSecond = l.readyPerSecond()
	times := l.latencies()
	f.ReadyP50, f.ReadyP99 = percentile(times, 50), percentile(times, 99)
	f.ToReady = ready.since(before)
	f.ToReady.Requests.without("POST", "bucketclaims", b.Claims)
	f.ToGone = gone.since(ready)
	f.ToGone.Requests.without("DELETE", "bucketclaims", b.Claims)
	return nil
}

// slow measures the load on a driver that takes its time.
func (b *bench) slow(ctx context.Context) error {
	if err := b.driver.delay(ctx, slowDriver); err != nil {
		return err
	}
	l, err := b.load(ctx, fmt.Sprintf("%d claims, the driver takes %s", b.Claims, slowDriver), "slow", b.Claims,
		func(ctx context.Context, l *load, work *show.Work) error {
			if err := l.makeAll(ctx, b.stack.Died(), work); err != nil {
				return err
			}
			_, err := l.deleteAll(ctx, b.stack.Died(), work)
			return err
		})
	if err != nil {
		return err
	}
	b.figures.SlowReadyPerSecond = l.readyPerSecond()
	return b.driver.delay(ctx, 0)
}

// usage reads the peaks of memory, at the end of all loads.
func (b *bench) usage(context.Context) (err error) {
	if b.figures.ControllerPeakMB, err = peakMB(b.controller.Pid()); err != nil {
		return err
	}
	b.figures.SidecarPeakMB, err = peakMB(b.sidecar.Pid())
	return err
}

// snapshot is what has been used and asked so far.
type snapshot struct {
	Requests requests
	Calls    map[string]int
	CPU      cpu
}

func (b *bench) look(ctx context.Context) (s snapshot, err error) {
	if s.CPU, err = cpuOfAll(b.names); err != nil {
		return s, err
	}
	if s.Requests, err = countRequests(ctx, b.stack.Kube.Config()); err != nil {
		return s, err
	}
	if s.Calls, err = b.driver.calls(ctx); err != nil {
		return s, fmt.Errorf("ask the driver for its calls: %w", err)
	}
	return s, nil
}

func (s snapshot) since(before snapshot) snapshot {
	calls := map[string]int{}
	for op, n := range s.Calls {
		if n -= before.Calls[op]; n > 0 {
			calls[op] = n
		}
	}
	return snapshot{Requests: s.Requests.since(before.Requests), Calls: calls, CPU: s.CPU.since(before.CPU)}
}

func (s snapshot) calls() (n int) {
	for _, have := range s.Calls {
		n += have
	}
	return n
}
