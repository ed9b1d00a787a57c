package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/manager"
)

const (
	// dialTimeout and dialPause pace the wait for a driver that is not there yet.
	dialTimeout = 5 * time.Second
	dialPause   = time.Second
)

// world is what both adapters share.
type world struct {
	cached client.Client // reads from memory, never older than what this process has written
	index  client.Reader // the same memory, without that wait
	direct client.Client // reads from the API server

	driver     wire.Driver
	driverName string
	clusterUID string
	options    *Options
	events     events.EventRecorder
	metrics    *metrics
	log        logr.Logger

	started time.Time
	now     func() time.Duration // since started
	lead    func() time.Duration // when the lead was won, on that clock
	hard    context.Context      // ends when the time to stop in is over
}

// Lease is the name of the lease of a driver's sidecars.
func Lease(driver string) string { return "custody-cosi-" + strings.ToLower(driver) }

// Run is the sidecar of one driver, until ctx ends or the lead is lost; then the process must end.
func Run(ctx context.Context, o Options, log logr.Logger) error {
	if err := o.Validate(); err != nil {
		return err
	}
	config := o.RESTConfig
	if config == nil {
		var err error
		if config, err = o.Config(); err != nil {
			return err
		}
	}
	driver := o.Driver
	if driver == nil {
		client, err := dial(ctx, o, log)
		if err != nil {
			return err
		}
		defer client.Close()
		driver = client
	}
	name := driver.Info().Name
	log = log.WithValues("driver", name)
	log.Info("driver found", "dialect", driver.Info().Dialect, "endpoint", o.Endpoint)

	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	w := &world{driver: driver, driverName: name, options: &o, metrics: newMetrics(), log: log, started: time.Now(), hard: hard}
	w.now = since(w.started)
	// Reconciling begins when the lead is won.
	w.lead = sync.OnceValue(w.now)

	scheme := newScheme()
	mgr, err := manager.New(config, o.Options, manager.Program{
		Lease:  Lease(name),
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: slim,
			ByObject: map[client.Object]cache.ByObject{
				// By field, not by label: what spec says can't be edited away.
				&v1alpha1.Intent{}: {Field: fields.OneTermEqualSelector("spec.driver", name)},
			},
			ReaderFailOnMissingInformer: true, // nothing else is ever kept in memory
		},
		Uncached: []client.Object{&core.Secret{}, &core.Namespace{}, &cosi.BucketClaim{}},
	}, log)
	if err != nil {
		return err
	}
	w.cached, w.index, w.events = mgr.GetClient(), mgr.GetCache(), mgr.GetEventRecorder("custody-cosi-sidecar")
	w.direct, err = client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper(), FieldOwner: v1alpha1.FieldManager,
	})
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	if w.clusterUID, err = clusterUID(ctx, w); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Intent{}, indexIDs, intentIDs); err != nil {
		return fmt.Errorf("index intents by id: %w", err)
	}

	ca, err := o.certificates()
	if err != nil {
		return err
	}
	accesses := newEntries()
	var adapters []*adapter
	for _, k := range []struct {
		kind    kind
		entries *entries
	}{{bucketKind{w}, newEntries()}, {accessKind{w, accesses, ca}, accesses}} {
		a, err := newAdapter(ctx, w, k.kind, k.entries)
		if err != nil {
			return err
		}
		if err := a.watch(mgr); err != nil {
			return fmt.Errorf("watch %s objects: %w", k.kind.intents(), err)
		}
		adapters = append(adapters, a)
	}
	if err := w.metrics.register(ctrlmetrics.Registry, name, adapters...); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("sidecar of %s: %w", name, err)
	}
	return nil
}

// dial waits for the driver: containers of a Pod start in any order.
func dial(ctx context.Context, o Options, log logr.Logger) (*wire.Client, error) {
	said := ""
	for {
		attempt, cancel := context.WithTimeout(ctx, dialTimeout)
		c, err := wire.Dial(attempt, o.Endpoint, wire.Options{CallTimeout: o.CallTimeout})
		cancel()
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("stopped while waiting for the driver: %w", errors.Join(ctx.Err(), err))
		}
		if err.Error() != said {
			said = err.Error()
			log.Info("waiting for the driver", "endpoint", o.Endpoint, "error", said)
		}
		select {
		case <-ctx.Done():
		case <-time.After(dialPause):
		}
	}
}

// clusterUID tells this cluster from others: the UID of the namespace kube-system.
func clusterUID(ctx context.Context, w *world) (string, error) {
	ctx, cancel := w.request(ctx)
	defer cancel()
	ns := &core.Namespace{}
	if err := w.direct.Get(ctx, client.ObjectKey{Name: "kube-system"}, ns); err != nil {
		return "", fmt.Errorf("read the namespace kube-system, whose UID tells this cluster from others (is the role of cosi/sidecar/rbac bound to this account?): %w", err)
	}
	return string(ns.UID), nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(cosi.AddToScheme(scheme))
	return scheme
}
