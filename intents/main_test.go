package intents_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/crds"
	"github.com/custody-storage/custody/api/v1alpha1"
	cosicrds "github.com/custody-storage/custody/cosi/api/crds"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller/admission"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/intents"
	"github.com/custody-storage/custody/intents/rbac"
)

// One API server, with the admission policy in force, serves all tests of the package.
var (
	kube    *embedded.Kube
	root    client.Client // may do everything
	scheme  = runtime.NewScheme()
	cluster string // UID of this cluster
)

const system = "custody-system"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build of a server takes most of it
	defer cancel()
	var err error
	if kube, err = embedded.StartKube(ctx, embedded.KubeOptions{}); err == nil {
		if err = prepare(ctx); err == nil {
			status = m.Run()
		}
		err = errors.Join(err, kube.Stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func prepare(ctx context.Context) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, cosi.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if root, err = client.New(kube.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := root.Create(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); err != nil {
		return err
	}
	for _, files := range []fs.FS{crds.Files(), cosicrds.Files(), rbac.Files(), admission.Files()} {
		if err := install(ctx, files); err != nil {
			return err
		}
	}
	for _, list := range []client.ObjectList{&v1alpha1.IntentList{}, &cosi.BucketList{}, &cosi.BucketAccessList{}} {
		if err := poll(ctx, func() error { return root.List(ctx, list) }); err != nil {
			return err
		}
	}
	ns := &core.Namespace{}
	if err := root.Get(ctx, client.ObjectKey{Name: "kube-system"}, ns); err != nil {
		return err
	}
	cluster = string(ns.UID)
	return nil
}

// install creates every object of every YAML file.
func install(ctx context.Context, files fs.FS) error {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(u); err != nil {
				break
			}
			if len(u.Object) == 0 {
				continue
			}
			if err := root.Create(ctx, u); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("install %s: %w", name, err)
			}
		}
	}
	return nil
}

// poll asks until there is no error, for at most half a minute.
func poll(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// as acts as an account that has one of the roles.
func as(t *testing.T, name string, role string) *rest.Config {
	t.Helper()
	config, err := kube.Account(t.Context(), system, name)
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: name}}}
	if err := root.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	// A role is in force a moment after it is bound.
	c := rawClient(t, config)
	if err := poll(t.Context(), func() error { return c.List(t.Context(), &v1alpha1.IntentList{}) }); err != nil {
		t.Fatal(err)
	}
	return config
}

func rawClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, config *rest.Config) *intents.Client {
	t.Helper()
	c, err := intents.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asEditor acts as an account that RBAC lets do all to Intents but the verb "resolve".
func asEditor(t *testing.T, name string) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion().Group}, Resources: []string{"intents", "intents/status"},
		Verbs: []string{"get", "list", "create", "update", "patch", "delete"}}}}
	if err := root.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	return as(t, name, name)
}
