package charts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/toolbox"
)

const (
	root      = ".." // the repository's
	namespace = "storage-custody"
	release   = "keep"
)

var (
	kube   *embedded.Kube
	admin  client.Client
	helm   string // the program that renders
	binary string // bin/custody
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build of a server takes most of it
	defer cancel()
	var err error
	if kube, err = embedded.StartKube(ctx, embedded.KubeOptions{}); err == nil {
		dir, failed := os.MkdirTemp("", "custody-chart-")
		if err = errors.Join(failed, prepare(ctx, dir)); err == nil {
			status = m.Run()
		}
		err = errors.Join(err, kube.Stop(), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func prepare(ctx context.Context, dir string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, cosi.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if admin, err = client.New(kube.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	box, err := toolbox.Open(os.Stderr)
	if err != nil {
		return err
	}
	if helm, err = box.Path(ctx, "charttemplate"); err != nil {
		return err
	}
	binary = filepath.Join(dir, "custody")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/custody")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build custody: %w\n%s", err, out)
	}
	// The strictest of Kubernetes' standards for Pods is in force where the chart goes.
	return admin.Create(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
}

// full are values that use all there is.
const full = `
image: {repository: registry.example/custody, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
imagePullSecrets: [{name: pull}]
priorityClassName: system-cluster-critical
controller:
  extraArgs: [--patience=1m]
  nodeSelector: {disk: ssd}
  tolerations: [{key: infra, operator: Exists}]
  podAnnotations: {team: storage}
  podLabels: {team: storage}
drivers:
  s3:
    replicas: 2
    s3: {endpoint: "http://s3.storage.svc:7070", adminEndpoint: "http://s3.storage.svc:7071", publicEndpoint: "https://s3.example.com",
      region: eu-1, owner: cluster-one, driverName: s3.example.com, keysSecret: s3-root, seed: true}
    sidecar:
      settle: 3m
      caConfigMap: {name: s3-ca}
      extraArgs: [--sweep-interval=5m]
    topologySpreadConstraints:
    - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}
  other:
    driverToken: true
    socketDir: /run/cosi
    container:
      image: registry.example/other-cosi:v1
      args: [--listen, "unix:///run/cosi/cosi.sock"]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: scratch, mountPath: /tmp}]
    volumes: [{name: scratch, emptyDir: {}}]
    sidecar:
      bucketIdTemplate: '{{.Parameters.region}}/{{.Name}}'
      accountIdTemplate: '{{.Name}}'
      repeatSafe: [bucket, access]
  vendor:
    deploy: false
    serviceAccount: {create: false, namespace: vendor-system, name: vendor-cosi}
  off:
    enabled: false
admission:
  extraAccounts: ["system:serviceaccount:backup:velero"]
`

const least = "image: {repository: registry.example/custody}\n"

// render is "helm template" with values.
func render(t *testing.T, values string, args ...string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--release", release, "--namespace", namespace, "--kube-version", "v1.37.2", "--values", file}, args...)
	cmd := exec.CommandContext(ctx, helm, append(args, "custody")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	return parse(t, &out), nil
}

func mustRender(t *testing.T, values string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render(t, values, args...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func parse(t *testing.T, r io.Reader) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		case len(u.Object) > 0:
			objects = append(objects, u)
		}
	}
}

func ofKind(objects []*unstructured.Unstructured, kind string) (found []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	return found
}

// install does what helm does: definitions are made if they are not there and left alone
// if they are; all else is brought to what it should be.
func install(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			if err := admin.Create(t.Context(), o.DeepCopy(), client.FieldValidation("Strict")); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			continue
		}
		// Server-side apply is strict: a field that the API does not know is an error.
		err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("helm"), client.ForceOwnership)
		if err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
