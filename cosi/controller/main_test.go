package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/crds"
	"github.com/custody-storage/custody/api/v1alpha1"
	cosicrds "github.com/custody-storage/custody/cosi/api/crds"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller"
	"github.com/custody-storage/custody/cosi/controller/admission"
	"github.com/custody-storage/custody/cosi/controller/rbac"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/manager"
)

// One API server, one controller under its own account with its own role and the
// admission policy in force, and one fake sidecar serve all tests of the package. Each
// test has a namespace and class names of its own.
var (
	kube    *embedded.Kube
	admin   client.Client // may do everything; writes as field manager "custody"
	line    *gate         // between the controller and the API server
	metrics *prometheus.Registry
)

const (
	system      = "custody-system"
	accountName = "custody-controller"
	// patience is long enough that nothing on the fast path outlasts it.
	patience = 3 * time.Second
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build of a server takes most of it
	defer cancel()
	status = 1
	var err error
	if kube, err = embedded.StartKube(ctx, embedded.KubeOptions{}); err == nil {
		var stop func() error
		if stop, err = prepare(ctx); err == nil {
			status = m.Run()
			err = stop()
		}
		err = errors.Join(err, kube.Stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// prepare installs what an admin installs, and starts controller and fake sidecar.
func prepare(ctx context.Context) (stop func() error, err error) {
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	if admin, err = client.New(kube.Config(), client.Options{Scheme: scheme, FieldOwner: v1alpha1.FieldManager}); err != nil {
		return nil, err
	}
	account, err := kube.Account(ctx, system, accountName)
	if err != nil {
		return nil, err
	}
	for _, files := range []fs.FS{crds.Files(), cosicrds.Files(), rbac.Files(), admission.Files()} {
		if err := apply(ctx, files); err != nil {
			return nil, err
		}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: accountName}}
	for _, o := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: controller.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: controller.Name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: controller.Name, Namespace: system}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: controller.Name}},
	} {
		if err := admin.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	for _, kind := range []client.ObjectList{&api.BucketClaimList{}, &api.BucketList{}, &api.BucketClassList{},
		&api.BucketAccessList{}, &api.BucketAccessClassList{}, &v1alpha1.IntentList{}} {
		if err := poll(ctx, func() (bool, error) {
			err := admin.List(ctx, kind, client.Limit(1))
			if meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err) {
				return false, nil
			}
			return err == nil, client.IgnoreNotFound(err)
		}); err != nil {
			return nil, err
		}
	}
	line, metrics = newGate(), prometheus.NewRegistry()
	stopController, err := startController(account, line, metrics, true)
	if err != nil {
		return nil, err
	}
	stopSidecar, err := startSidecar()
	if err != nil {
		return nil, errors.Join(err, stopController())
	}
	return func() error { return errors.Join(stopSidecar(), stopController()) }, nil
}

// startController runs the controller as the shipped program does.
func startController(account *rest.Config, g *gate, registry prometheus.Registerer, elect bool) (stop func() error, err error) {
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(account)
	config.Wrap(g.wrap)
	options := manager.Defaults()
	options.MetricsAddress, options.HealthAddress = "0", "0"
	options.LeaderElect, options.LeaseNamespace = elect, system
	log := logr.Discard()
	if os.Getenv("CUSTODY_TEST_LOG") != "" {
		options.LogLevel = "debug"
		if log, err = options.Logger(os.Stderr); err != nil {
			return nil, err
		}
	}
	program := manager.Program{Lease: controller.Name, Scheme: scheme, Cache: controller.Cache(time.Now())}
	mgr, err := manager.New(config, options, program, log)
	if err != nil {
		return nil, err
	}
	o := controller.Defaults()
	o.Patience, o.Deadline, o.Metrics = patience, 10*time.Second, registry
	ctx, cancel := context.WithCancel(context.Background())
	if err := controller.New(ctx, mgr, o); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error { cancel(); return <-ended }, nil
}

// apply creates every object of some YAML files.
func apply(ctx context.Context, files fs.FS) error {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if len(o.Object) == 0 {
				continue
			}
			if err := admin.Create(ctx, o); err != nil {
				return fmt.Errorf("%s: %s %s: %w", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}

// poll asks until the answer is yes, an error comes, or 30 seconds are over.
func poll(ctx context.Context, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
