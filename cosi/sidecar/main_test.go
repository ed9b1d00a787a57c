package sidecar_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	"github.com/custody-storage/custody/cosi/sidecar/rbac"
	"github.com/custody-storage/custody/embedded"
)

// One API server serves all tests of the package. Each test has a driver name and a namespace of its own.
var (
	admin   client.Client // may do everything
	account *rest.Config  // the sidecar's, with its role and nothing else
	kube    *embedded.Kube
)

const leases = "custody-system"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	// The tests wait most of the time: more of them than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if testing.Short() {
		return m.Run()
	}
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme, v1alpha1.AddToScheme, cosi.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if admin, err = client.New(kube.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, files := range []fs.FS{crds.Files(), cosicrds.Files()} {
		if err := install(ctx, files); err != nil {
			return err
		}
	}
	for _, list := range []client.ObjectList{&v1alpha1.IntentList{}, &cosi.BucketList{}, &cosi.BucketClaimList{}, &cosi.BucketAccessList{}} {
		if err := served(ctx, list); err != nil {
			return err
		}
	}
	if account, err = kube.Account(ctx, leases, "sidecar"); err != nil {
		return err
	}
	if err := install(ctx, rbac.Files()); err != nil {
		return err
	}
	return bind(ctx)
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
			if err := admin.Create(ctx, u); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("install %s: %w", name, err)
			}
		}
	}
	return nil
}

// served waits until a kind can be listed.
func served(ctx context.Context, list client.ObjectList) error {
	for {
		err := admin.List(ctx, list)
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

// bind gives the account its roles.
func bind(ctx context.Context) error {
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: leases, Name: "sidecar"}}
	const role = "custody-cosi-sidecar"
	return errors.Join(
		admin.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}),
		admin.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}}),
	)
}

func namespace(t *testing.T, name string) {
	t.Helper()
	if err := admin.Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}
