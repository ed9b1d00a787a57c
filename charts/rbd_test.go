package charts_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/custody-storage/custody/ceph"
)

// rbdOnly are the values of a release with nothing but the RBD driver.
const rbdOnly = least + `
controller: {enabled: false}
admission: {enabled: false}
rbac: {intentsRoles: false}
rbd:
  enabled: true
  image: {tag: 0.1.0-ceph}
  nodeKeysSecret: node-keys
  controllerKeysSecret: controller-keys
  classSecrets: [tenant-a]
  clusters:
  - id: prod
    monitors: 10.0.0.1,10.0.0.2
    pools: [rbd, rbd/tenant-a]
    node: {user: custody-node, keyFile: /etc/custody/keys/prod-node}
    controller: {user: custody-controller, keyFile: /etc/custody/keys/prod-controller}
  node: {podAnnotations: {team: storage}}
`

func decoded[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	found := ofKind(objects, kind)
	if len(found) != 1 {
		t.Fatalf("%d of kind %s, want 1", len(found), kind)
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// TestRBD applies the RBD driver to a real API server.
func TestRBD(t *testing.T) {
	for _, o := range mustRender(t, full) {
		if strings.Contains(o.GetName(), "rbd") {
			t.Errorf("%s %s is there though the driver is off", o.GetKind(), o.GetName())
		}
	}
	objects := mustRender(t, rbdOnly)
	install(t, objects)
	d := decoded[storage.CSIDriver](t, objects, "CSIDriver")
	if d.Name != "rbd.custody.dev" || !*d.Spec.AttachRequired || *d.Spec.RequiresRepublish || *d.Spec.FSGroupPolicy != storage.ReadWriteOnceWithFSTypeFSGroupPolicy {
		t.Errorf("CSIDriver %+v", d.Spec)
	}
	// The clusters file is one that the programs read.
	file := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(file, []byte(decoded[core.ConfigMap](t, objects, "ConfigMap").Data["clusters.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	clusters, err := ceph.ReadClusters(file)
	if err != nil || len(clusters.Clusters) != 1 || !clusters.Clusters[0].Has("rbd", "tenant-a") {
		t.Errorf("%+v, %v", clusters, err)
	}
	t.Run("Pods have what they need and no more", func(t *testing.T) { rbdPods(t, objects) })
	t.Run("accounts may do what they need", func(t *testing.T) { rbdRights(t, objects) })
	t.Run("examples", rbdExamples)
	if _, err := render(t, least+"rbd: {enabled: true, nodeKeysSecret: a, controllerKeysSecret: b}\n"); err == nil || !strings.Contains(err.Error(), "rbd.clusters is empty") {
		t.Errorf("no clusters: %v", err)
	}
	for _, tc := range []struct{ name, old, now, says string }{
		{"no keys", "nodeKeysSecret: node-keys", "nodeKeysSecret: ''", "nodeKeysSecret"},
		{"a mapper that is none", "nodeKeysSecret: node-keys", "nodeKeysSecret: node-keys\n  mapper: magic", "mapper"},
		{"a key elsewhere", "/etc/custody/keys/prod-node", "/elsewhere/key", "keyFile"},
	} {
		if _, err := render(t, strings.Replace(rbdOnly, tc.old, tc.now, 1)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: want an error that says %q, have: %v", tc.name, tc.says, err)
		}
	}
}

// rbdPods has the API server judge the Pods: the controller's keep the strictest standard, the node's are let into a
// namespace that is open to them, and only there.
func rbdPods(t *testing.T, objects []*unstructured.Unstructured) {
	const open = "storage-open"
	if err := admin.Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: open, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}); err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: open, Name: "keep-custody-rbd-node"}}); err != nil {
		t.Fatal(err)
	}
	try := func(where, name string, template core.PodTemplateSpec) error {
		pod := &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Namespace, pod.Name = where, name
		return admin.Create(t.Context(), pod, client.DryRunAll)
	}
	controller, node := decoded[apps.Deployment](t, objects, "Deployment").Spec.Template, decoded[apps.DaemonSet](t, objects, "DaemonSet").Spec.Template
	if err := try(namespace, "rbd-controller", controller); err != nil {
		t.Errorf("the controller's Pod is refused: %v", err)
	}
	if err := try(open, "rbd-node", node); err != nil {
		t.Errorf("the node's Pod is refused: %v", err)
	}
	if err := try(namespace, "rbd-node", node); !apierrors.IsForbidden(err) {
		t.Errorf("the node's Pod in a restricted namespace: %v", err)
	}
	privileged, keys := []string{}, map[string]string{}
	for pod, template := range map[string]core.PodTemplateSpec{"controller": controller, "node": node} {
		for _, c := range template.Spec.Containers {
			if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s/%s: a root file system that is read-only, and resources, are wanted: %v %v", pod, c.Name, s, c.Resources)
			} else if s.Privileged != nil && *s.Privileged {
				privileged = append(privileged, pod+"/"+c.Name)
			}
			for _, m := range c.VolumeMounts {
				if m.Name == "keys" && c.Name != "driver" {
					t.Errorf("%s/%s has the keys", pod, c.Name)
				}
			}
		}
		for _, v := range template.Spec.Volumes {
			if v.Name == "keys" {
				keys[pod] = v.Secret.SecretName
			}
		}
	}
	if len(privileged) != 1 || privileged[0] != "node/driver" || keys["node"] != "node-keys" || keys["controller"] != "controller-keys" {
		t.Errorf("privileged: %v; keys: %v", privileged, keys)
	}
}

func rbdRights(t *testing.T, objects []*unstructured.Unstructured) {
	rights(t, objects)
	for name, never := range map[string][]authorization.ResourceAttributes{
		"keep-custody-rbd-node": {
			{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "tenant-a"}, {Verb: "patch", Resource: "nodes"}, {Verb: "watch", Resource: "persistentvolumes"},
			{Verb: "delete", Resource: "persistentvolumes"},
		},
		"keep-custody-rbd-controller": {
			{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "node-keys"}, {Verb: "list", Resource: "secrets"}, {Verb: "patch", Resource: "nodes"},
			{Verb: "delete", Resource: "pods"},
		},
	} {
		for _, a := range never {
			if err := may(t, rbacv1.Subject{Namespace: namespace, Name: name}, a, false); err != nil {
				t.Error(err)
			}
		}
	}
}

// rbdExamples has the API server judge what it knows of the examples; it has no definitions of snapshots.
func rbdExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples", "rbd", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range parse(t, bytes.NewReader(text)) {
			if o.GroupVersionKind().Group == "snapshot.storage.k8s.io" {
				continue
			}
			if err := admin.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				out, _ := yaml.Marshal(o.Object)
				t.Errorf("%s: %v\n%s", file, err, out)
			}
		}
	}
}
