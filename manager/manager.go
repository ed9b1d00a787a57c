package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/custody-storage/custody/api/v1alpha1"
)

const (
	// cacheSyncTimeout is how long the first list of a kind may take.
	cacheSyncTimeout = 2 * time.Minute
	readyTimeout     = time.Second
)

// Program is what one program needs of a manager beyond the flags.
type Program struct {
	Lease    string          // name of the leader election lease, and our user agent
	Scheme   *runtime.Scheme // every kind that is read or written
	Cache    cache.Options   // what is kept in memory, and how much of it
	Uncached []client.Object // kinds whose reads always go to the API server, such as Secrets
}

// New makes a manager, with /healthz and /readyz. The given configuration is not
// changed.
func New(restConfig *rest.Config, o Options, p Program, log logr.Logger) (ctrl.Manager, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS, restConfig.Burst = o.QPS, cmp.Or(o.Burst, int(2*o.QPS))
	restConfig.UserAgent = p.Lease + " " + rest.DefaultKubernetesUserAgent()
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: p.Scheme,
		Logger: log,
		Cache:  p.Cache,
		Client: client.Options{
			FieldOwner: v1alpha1.FieldManager,
			Cache: &client.CacheOptions{
				DisableFor:                      p.Uncached,
				EnableReadYourWritesConsistency: ptr.To(true),
			},
		},
		Metrics:                 server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:  o.HealthAddress,
		PprofBindAddress:        o.ProfileAddress,
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        p.Lease,
		LeaderElectionNamespace: cmp.Or(o.LeaseNamespace, os.Getenv("POD_NAMESPACE")),
		// The program exits when Start returns, so nothing of it acts after the release.
		LeaderElectionReleaseOnCancel: true,
		// The proportions are those of Kubernetes' own components: 15, 10 and 2 seconds.
		LeaseDuration:           ptr.To(o.LeaseDuration),
		RenewDeadline:           ptr.To(o.LeaseDuration * 2 / 3),
		RetryPeriod:             ptr.To(o.LeaseDuration * 2 / 15),
		GracefulShutdownTimeout: ptr.To(o.StopTimeout),
		Controller: config.Controller{
			EnableWarmup:     ptr.To(true),
			CacheSyncTimeout: cacheSyncTimeout,
			// Names must be unique in a process for the sake of metrics only, and tests
			// run more than one manager.
			SkipNameValidation: ptr.To(true),
		},
	})
	if err != nil {
		if o.LeaderElect && o.LeaseNamespace == "" && os.Getenv("POD_NAMESPACE") == "" {
			err = fmt.Errorf("%w (outside a cluster, say with --lease-namespace where the lease is)", err)
		}
		return nil, fmt.Errorf("set up %s: %w", p.Lease, err)
	}
	err = errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", synced(mgr.GetCache())),
	)
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", p.Lease, err)
	}
	return mgr, nil
}

// synced is ready once the caches are filled, with or without the lead.
func synced(c cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
