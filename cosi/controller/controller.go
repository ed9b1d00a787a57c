package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

//go:generate go run ../../hack/tool controller-gen rbac:roleName=custody-cosi-controller,fileName=role.yaml paths=. output:rbac:dir=rbac

//+kubebuilder:rbac:groups=objectstorage.k8s.io,resources=bucketclasses;bucketaccessclasses,verbs=get;list;watch
//+kubebuilder:rbac:groups=objectstorage.k8s.io,resources=bucketclaims;bucketaccesses,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=objectstorage.k8s.io,resources=bucketclaims/status;bucketaccesses/status,verbs=patch
//+kubebuilder:rbac:groups=objectstorage.k8s.io,resources=buckets,verbs=get;list;watch;create;patch;delete
//+kubebuilder:rbac:groups=custody.dev,resources=intents,verbs=get
//+kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
//+kubebuilder:rbac:groups=coordination.k8s.io,namespace=custody-system,resources=leases,verbs=create
//+kubebuilder:rbac:groups=coordination.k8s.io,namespace=custody-system,resources=leases,resourceNames=custody-cosi-controller,verbs=get;update

// Name is the name of the program: its lease, its user agent, the reporter of its
// events.
const Name = "custody-cosi-controller"

const (
	// retries of what failed begin after minBackoff and never come rarer than maxBackoff,
	// so that nothing has to be restarted to be looked at again.
	minBackoff = 20 * time.Millisecond
	maxBackoff = 30 * time.Second
	// conflictDelay is what a write that lost to another one waits before it is worked out
	// anew. The other write's event mostly comes first.
	conflictDelay = 100 * time.Millisecond
	// intentPoll is how often an Intent is looked at that stands in the way. Intents are
	// not watched here: that would hold them all in memory for a case that is rare.
	intentPoll = 10 * time.Second
)

// Options are what New takes beyond the manager.
type Options struct {
	// Workers is how many objects of a kind are worked on at once.
	Workers int
	// Patience is how long a wait that passes by itself is not spoken of.
	Patience time.Duration
	// Deadline ends one reconciliation and every request in it.
	Deadline time.Duration
	// Metrics is where the metrics are registered.
	Metrics prometheus.Registerer
}

// Defaults are the options of the shipped program, but for Metrics.
func Defaults() Options {
	return Options{Workers: 32, Patience: 30 * time.Second, Deadline: 30 * time.Second}
}

func (o Options) validate() error {
	var errs []error
	if o.Patience < 0 {
		errs = append(errs, fmt.Errorf("--patience is %v; give 0 or more", o.Patience))
	}
	if o.Deadline < time.Second {
		errs = append(errs, fmt.Errorf("--reconcile-timeout is %v; give at least 1s", o.Deadline))
	}
	return errors.Join(errs...)
}

// Scheme knows every kind that the controller touches.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Cache says what a manager for this package keeps of the objects it watches.
// started is when the program started: what another controller wrote before is history.
func Cache(started time.Time) cache.Options {
	return cache.Options{DefaultTransform: keepOthers(started)}
}

// New adds both controllers to a manager that was made with Scheme and Cache.
// The context is for the setting up only.
func New(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	b := base{
		client:   mgr.GetClient(),
		cache:    mgr.GetCache(),
		live:     mgr.GetAPIReader(),
		events:   mgr.GetEventRecorder(Name),
		patience: o.Patience,
		said:     newOnce(),
		metrics:  newMetrics(),
	}
	if err := b.metrics.register(o.Metrics); err != nil {
		return fmt.Errorf("set up %s: register metrics: %w", Name, err)
	}
	for _, add := range []func(ctrl.Manager, controller.Options) error{(&claims{b}).add, (&accesses{b}).add} {
		if err := add(mgr, controller.Options{
			MaxConcurrentReconciles: cmp.Or(o.Workers, 1),
			ReconciliationTimeout:   o.Deadline,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}); err != nil {
			return fmt.Errorf("set up %s: %w", Name, err)
		}
	}
	return nil
}

// base is what both reconcilers have.
type base struct {
	client   client.Client        // reads from the cache, after this process's own writes
	cache    client.Reader        // reads from the cache as it is: hints and wake-ups only
	live     client.Reader        // reads from the API server
	events   events.EventRecorder //
	patience time.Duration
	said     *once
	metrics  *metrics
}
