package apitest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/custody-storage/custody/embedded"
)

// namespace is where namespaced objects are made. The API server makes it itself.
const namespace = "default"

// Server is an API server that knows the definitions under test.
type Server struct {
	kube    *embedded.Kube
	objects dynamic.Interface
	kinds   map[schema.GroupKind]served
	names   atomic.Int64
}

// served is how one kind is reached.
type served struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// Run is the body of a TestMain: it starts a server with the definitions in files,
// hands it over, runs the tests and stops it. It returns the exit status.
func Run(m *testing.M, hand func(*Server), files ...fs.FS) int {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build of a server takes most of it
	defer cancel()
	kube, err := embedded.StartKube(ctx, embedded.KubeOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := 1
	server, err := newServer(ctx, kube, files)
	if err == nil {
		hand(server)
		status = m.Run()
	}
	if err = errors.Join(err, kube.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func newServer(ctx context.Context, kube *embedded.Kube, files []fs.FS) (*Server, error) {
	config := rest.CopyConfig(kube.Config())
	config.WarningHandler = rest.NoWarnings{} // cases send unknown fields on purpose
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the API server: %w", err)
	}
	s := &Server{kube: kube, objects: objects, kinds: map[schema.GroupKind]served{}}
	for _, f := range files {
		names, err := fs.Glob(f, "*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(f, name)
			if err != nil {
				return nil, err
			}
			if err := s.Install(ctx, text); err != nil {
				return nil, fmt.Errorf("install %s: %w", path.Base(name), err)
			}
		}
	}
	return s, nil
}

// Install makes the API server serve one CustomResourceDefinition, given as YAML,
// and returns when it does.
func (s *Server) Install(ctx context.Context, definition []byte) error {
	crd, err := Parse(string(definition))
	if err != nil {
		return err
	}
	crds := s.objects.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(ctx, crd, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		return err
	}
	if err := eventually(ctx, "the definition is established", func() (bool, error) {
		live, err := crds.Get(ctx, crd.GetName(), metav1.GetOptions{})
		return err == nil && hasCondition(live, "Established"), err
	}); err != nil {
		return err
	}

	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version, _, _ := unstructured.NestedString(versions[0].(map[string]any), "name")
	k := served{resource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, namespaced: scope == "Namespaced"}
	s.kinds[schema.GroupKind{Group: group, Kind: kind}] = k

	// Established comes a moment before the first request is served.
	return eventually(ctx, "the kind is served", func() (bool, error) {
		_, err := s.objects.Resource(k.resource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func hasCondition(crd *unstructured.Unstructured, want string) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == want && c["status"] == "True" {
			return true
		}
	}
	return false
}

// eventually asks until the answer is yes, an error comes, or 30 seconds are over.
func eventually(ctx context.Context, what string, ask func() (bool, error)) error {
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
			return fmt.Errorf("waited 30 seconds until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// Parse reads one object from YAML.
func Parse(text string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		return nil, err
	}
	return u, nil
}

// Objects is the client for the objects of one kind.
func (s *Server) Objects(t testing.TB, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	k, ok := s.kinds[object.GroupVersionKind().GroupKind()]
	if !ok {
		t.Fatalf("no definition of %s was installed", object.GroupVersionKind())
	}
	if k.namespaced {
		return s.objects.Resource(k.resource).Namespace(namespace)
	}
	return s.objects.Resource(k.resource)
}

// Name makes an object name that this server has not seen.
func (s *Server) Name() string { return fmt.Sprintf("case-%d", s.names.Add(1)) }

// Table is what "kubectl get -o wide" prints of an object: the cells by column.
func (s *Server) Table(t testing.TB, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	k := s.kinds[object.GroupVersionKind().GroupKind()]
	scheme := runtime.NewScheme() // of what belongs to no group of its own, such as a Table
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(s.kube.Config())
	config.GroupVersion = &schema.GroupVersion{Group: k.resource.Group, Version: k.resource.Version}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := client.Get().SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		NamespaceIfScoped(object.GetNamespace(), k.namespaced).Resource(k.resource.Resource).Name(object.GetName()).
		Do(t.Context()).Into(&table); err != nil {
		t.Fatal(err)
	}
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	return cells
}
