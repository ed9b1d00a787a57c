package manager

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options are the flags that all programs share.
type Options struct {
	Kubeconfig     string        // "" is $KUBECONFIG, then the Pod's account, then ~/.kube/config
	MetricsAddress string        // host:port; "0" serves none
	HealthAddress  string        // host:port; "0" serves none
	ProfileAddress string        // host:port of /debug/pprof; "0" serves none
	LeaderElect    bool          // without it two processes may act at once
	LeaseNamespace string        // "" is $POD_NAMESPACE, then the Pod's namespace
	LeaseDuration  time.Duration // how long a dead leader is waited for; whole seconds count
	Workers        int           // objects of one kind that are worked on at once
	QPS            float32       // requests a second to the API server; negative is no limit
	Burst          int           // requests that may exceed QPS for a moment
	StopTimeout    time.Duration // what is running when the program is told to stop gets this long
	LogLevel       string        // debug, info, warn or error
	LogFormat      string        // text or json
}

// Defaults are the options without flags.
func Defaults() Options {
	return Options{
		MetricsAddress: ":8080",
		HealthAddress:  ":8081",
		ProfileAddress: "0",
		LeaderElect:    true,
		LeaseDuration:  15 * time.Second,
		Workers:        32,
		QPS:            -1,
		StopTimeout:    20 * time.Second,
		LogLevel:       "info",
		LogFormat:      "text",
	}
}

// AddFlags adds a flag for each option, with its value at this moment as default.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "`file` that says where the API server is and who we are (default: $KUBECONFIG, then the Pod's own account)")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "`address` for Prometheus metrics, 0 for none")
	f.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "`address` for /healthz and /readyz, 0 for none")
	f.StringVar(&o.ProfileAddress, "pprof-bind-address", o.ProfileAddress, "`address` for Go profiles under /debug/pprof, 0 for none; give a loopback address, since profiles tell much")
	f.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "let one process at a time act; turn off only where there is never a second one")
	f.StringVar(&o.LeaseNamespace, "lease-namespace", o.LeaseNamespace, "`namespace` of the leader election lease (default: $POD_NAMESPACE, then the Pod's own)")
	f.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration, "how long a leader that died is waited for; it renews its lease within two thirds of this")
	f.IntVar(&o.Workers, "workers", o.Workers, "objects of one kind that are worked on at once")
	f.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests a second to the API server, -1 for no limit on this side")
	f.IntVar(&o.Burst, "kube-api-burst", o.Burst, "requests that may exceed --kube-api-qps for a moment (default: twice as many)")
	f.DurationVar(&o.StopTimeout, "stop-timeout", o.StopTimeout, "how long work that is running may go on after SIGTERM")
	f.StringVar(&o.LogLevel, "log-level", o.LogLevel, "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "text or json")
}

// Validate says what is wrong with the options, all of it at once.
func (o *Options) Validate() error {
	var errs []error
	if o.LeaderElect && o.LeaseDuration < time.Second {
		errs = append(errs, fmt.Errorf("--lease-duration is %v; a lease counts in seconds, so give at least 1s", o.LeaseDuration))
	}
	if o.Workers < 1 {
		errs = append(errs, fmt.Errorf("--workers is %d; give at least 1", o.Workers))
	}
	if o.QPS == 0 {
		errs = append(errs, errors.New("--kube-api-qps is 0, which would send nothing; give a rate, or -1 for no limit"))
	}
	if o.StopTimeout < 0 {
		errs = append(errs, fmt.Errorf("--stop-timeout is %v; give 0 or more", o.StopTimeout))
	}
	if _, err := o.handler(io.Discard); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Config reads who we are and where the API server is. The error names the flag.
func (o *Options) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (--kubeconfig, $KUBECONFIG or a Pod's account): %w", err)
	}
	return config, nil
}

// Logger makes the log that the options ask for.
func (o *Options) Logger(w io.Writer) (logr.Logger, error) {
	h, err := o.handler(w)
	if err != nil {
		return logr.Logger{}, err
	}
	return logr.FromSlogHandler(h), nil
}

func (o *Options) handler(w io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level is %q; it is one of debug, info, warn, error", o.LogLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.LogFormat {
	case "text":
		return slog.NewTextHandler(w, options), nil
	case "json":
		return slog.NewJSONHandler(w, options), nil
	}
	return nil, fmt.Errorf("--log-format is %q; it is text or json", o.LogFormat)
}

// SetLogger hands the log to the libraries that keep one for the whole process. Only
// a main function calls it.
func SetLogger(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}
