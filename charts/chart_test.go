package charts_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/charts"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

func TestCopiesAreNew(t *testing.T) {
	stale, err := charts.Stale(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stale {
		t.Errorf("%s: run go generate ./charts", s)
	}
}

// TestRules holds the rendered roles to the generated files.
func TestRules(t *testing.T) {
	objects := mustRender(t, full)
	for source, names := range map[string][]string{
		"cosi/controller/rbac/role.yaml": {"ClusterRole keep-custody-controller", "Role keep-custody-controller"},
		"cosi/sidecar/rbac/role.yaml":    {"ClusterRole keep-custody-sidecar", "Role keep-custody-sidecar"},
		"intents/rbac/role.yaml":         {"ClusterRole keep-custody-intents-view", "ClusterRole keep-custody-intents-admin"},
	} {
		text, err := os.ReadFile(filepath.Join(root, source))
		if err != nil {
			t.Fatal(err)
		}
		want := parse(t, bytes.NewReader(text))
		if len(want) != len(names) {
			t.Fatalf("%s has %d roles, the chart knows of %d", source, len(want), len(names))
		}
		for i, name := range names {
			at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind()+" "+o.GetName() == name })
			if at < 0 {
				t.Fatalf("%s is not in the chart", name)
			}
			if diff := cmp.Diff(want[i].Object["rules"], objects[at].Object["rules"]); diff != "" {
				t.Errorf("%s is not what %s has:\n%s", name, source, diff)
			}
			if ns := objects[at].GetNamespace(); objects[at].GetKind() == "Role" && ns != namespace {
				t.Errorf("%s is in %q", name, ns)
			}
		}
	}
}

// TestInstall applies all of the chart to a real API server, twice, beside a definition
// that upstream has installed before.
func TestInstall(t *testing.T) {
	objects := mustRender(t, full, "--include-crds")
	definitions := ofKind(objects, "CustomResourceDefinition")
	if len(definitions) != 6 {
		t.Fatalf("%d definitions are rendered, want 6", len(definitions))
	}
	upstream := definitions[slices.IndexFunc(definitions, func(o *unstructured.Unstructured) bool { return strings.HasPrefix(o.GetName(), "buckets.") })].DeepCopy()
	annotations := upstream.GetAnnotations()
	annotations["installed-by"] = "upstream"
	upstream.SetAnnotations(annotations)
	if err := admin.Create(t.Context(), upstream); err != nil {
		t.Fatal(err)
	}
	install(t, objects)
	for _, list := range []client.ObjectList{&v1alpha1.IntentList{}, &cosi.BucketList{}, &cosi.BucketClaimList{}, &cosi.BucketAccessList{}} {
		eventually(t, "the API serves the definitions", func() error { return admin.List(t.Context(), list) })
	}
	before := versions(t, objects)
	install(t, objects)
	if diff := cmp.Diff(before, versions(t, objects)); diff != "" {
		t.Errorf("a second installation changes something:\n%s", diff)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(upstream.GroupVersionKind())
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(upstream), now); err != nil {
		t.Fatal(err)
	}
	if now.GetUID() != upstream.GetUID() || now.GetAnnotations()["installed-by"] != "upstream" || now.GetGeneration() != upstream.GetGeneration() {
		t.Errorf("upstream's definition was touched: %v", now.Object["metadata"])
	}

	t.Run("Pods keep the restricted standard", func(t *testing.T) { pods(t, objects) })
	t.Run("accounts may do what they need", func(t *testing.T) { cosiRights(t, objects) })
	t.Run("accounts are let through by the policy", policy)
}

func versions(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			continue // its status moves on its own
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
			t.Fatal(err)
		}
		found[o.GetKind()+" "+o.GetName()] = fmt.Sprint(live.Object["spec"], live.Object["data"], live.Object["rules"], live.GetLabels(), live.GetGeneration())
	}
	return found
}

// pods has the API server judge a Pod of each Deployment's template.
func pods(t *testing.T, objects []*unstructured.Unstructured) {
	try := func(name string, template core.PodTemplateSpec) error {
		pod := &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Namespace, pod.Name = namespace, name
		return admin.Create(t.Context(), pod, client.DryRunAll)
	}
	deployments := ofKind(objects, "Deployment")
	if len(deployments) != 3 {
		t.Fatalf("%d Deployments, want 3: controller, s3, other", len(deployments))
	}
	for _, o := range deployments {
		d := &apps.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			t.Fatal(err)
		}
		if err := try(d.Name, d.Spec.Template); err != nil {
			t.Errorf("a Pod of %s is refused: %v", d.Name, err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(c.Image, "registry.example/custody") {
				continue
			}
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s/%s: a root file system that is read-only, and resources, are wanted: %v %v", d.Name, c.Name, s, c.Resources)
			}
			// The program knows every flag that it is given, and takes its value.
			out, err := exec.CommandContext(t.Context(), binary, append(slices.Clone(c.Args), "--help")...).CombinedOutput()
			if err != nil {
				t.Errorf("%s/%s: custody %v: %v\n%s", d.Name, c.Name, c.Args, err, out)
			}
		}
		// The control: the standard is in force.
		d.Spec.Template.Spec.SecurityContext = nil
		if err := try(d.Name, d.Spec.Template); !apierrors.IsForbidden(err) {
			t.Errorf("a Pod of %s without its security context is not refused: %v", d.Name, err)
		}
	}
}

// cosiRights are those of controller and sidecars, and what they must not do.
func cosiRights(t *testing.T, objects []*unstructured.Unstructured) {
	asked := rights(t, objects)
	if asked < 100 {
		t.Errorf("only %d rights were asked for", asked)
	}
	for _, name := range []string{"keep-custody-s3", "keep-custody-other", "keep-custody-controller"} {
		for _, a := range []authorization.ResourceAttributes{
			{Verb: "list", Resource: "secrets"}, {Verb: "watch", Resource: "secrets"}, {Verb: "get", Resource: "pods"},
			{Verb: "delete", Group: cosi.GroupVersion().Group, Resource: "bucketclaims"}, {Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
			{Verb: "resolve", Group: v1alpha1.GroupVersion().Group, Resource: "intents"},
		} {
			if err := may(t, rbacv1.Subject{Namespace: namespace, Name: name}, a, false); err != nil {
				t.Error(err)
			}
		}
	}
}

// rights asks the API server whether each account may do each thing that its role is for.
func rights(t *testing.T, objects []*unstructured.Unstructured) (asked int) {
	for _, o := range append(ofKind(objects, "ClusterRoleBinding"), ofKind(objects, "RoleBinding")...) {
		binding := &rbacv1.RoleBinding{} // of the same form
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		at := slices.IndexFunc(objects, func(r *unstructured.Unstructured) bool {
			return r.GetKind() == binding.RoleRef.Kind && r.GetName() == binding.RoleRef.Name
		})
		if at < 0 {
			t.Fatalf("%s binds %v, which is not there", o.GetName(), binding.RoleRef)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, role); err != nil {
			t.Fatal(err)
		}
		in := ""
		if binding.RoleRef.Kind == "Role" {
			in = namespace
		}
		for _, rule := range role.Rules {
			for _, a := range attributes(rule, in) {
				for _, who := range binding.Subjects {
					asked++
					eventually(t, fmt.Sprintf("%s/%s may %s %s", who.Namespace, who.Name, a.Verb, a.Resource), func() error {
						return may(t, who, a, true)
					})
				}
			}
		}
	}
	return asked
}

func attributes(rule rbacv1.PolicyRule, in string) (all []authorization.ResourceAttributes) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, sub, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, authorization.ResourceAttributes{Namespace: in, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name})
				}
			}
		}
	}
	return all
}

func may(t *testing.T, who rbacv1.Subject, a authorization.ResourceAttributes, want bool) error {
	t.Helper()
	review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + who.Namespace + ":" + who.Name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + who.Namespace, "system:authenticated"}, ResourceAttributes: &a}}
	if err := admin.Create(t.Context(), review); err != nil {
		return err
	}
	if review.Status.Allowed != want {
		return fmt.Errorf("%s/%s: %s %s %s is allowed: %v, want %v", who.Namespace, who.Name, a.Verb, a.Group, a.Resource, review.Status.Allowed, want)
	}
	return nil
}

// policy writes as the rendered accounts do, and as one that RBAC lets but the policy not.
func policy(t *testing.T) {
	as := func(name string) client.Client {
		config, err := kube.Account(t.Context(), namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	intent := func(name string) *v1alpha1.Intent {
		return &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.IntentSpec{
			FormatVersion: 1, ClusterUID: "c", Owner: v1alpha1.Owner{Kind: "Bucket"}, Kind: v1alpha1.KindBucket, Driver: "x.test", Name: name,
			Phase: v1alpha1.PhaseMaking, Origin: v1alpha1.OriginCreated}}
	}
	// It has the sidecar's rights and is not on the list.
	stranger := as("stranger")
	if err := admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "stranger"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "keep-custody-sidecar"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "stranger"}}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	eventually(t, "the policy is in force", func() error {
		n++
		err := stranger.Create(t.Context(), intent(fmt.Sprintf("by-stranger-%d", n)))
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custody intents") {
			return nil
		}
		if err == nil {
			return errors.New("a stranger makes an Intent")
		}
		return fmt.Errorf("a stranger's Intent: %w", err)
	})
	for _, name := range []string{"keep-custody-s3", "keep-custody-other"} {
		sidecar, i := as(name), intent("by-"+name)
		if err := sidecar.Create(t.Context(), i); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		i.Spec.Phase, i.Spec.ID = v1alpha1.PhaseLive, "b"
		if err := sidecar.Update(t.Context(), i); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":2}}`))
		if err := sidecar.Status().Patch(t.Context(), i, patch); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := sidecar.Delete(t.Context(), i); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	controller := as("keep-custody-controller")
	b := &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "by-controller", Finalizers: []string{v1alpha1.ProtectionFinalizer}},
		Spec: cosi.BucketSpec{DriverName: "x.test", DeletionPolicy: cosi.DeletionPolicyDelete, BucketClaimRef: cosi.BucketClaimReference{Namespace: "default", Name: "c"}}}
	if err := controller.Create(t.Context(), b); err != nil {
		t.Errorf("controller: %v", err)
	}
	off := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := stranger.Patch(t.Context(), b.DeepCopy(), off); !apierrors.IsForbidden(err) {
		t.Errorf("a stranger takes the finalizer off: %v", err)
	}
	if err := controller.Patch(t.Context(), b, off); err != nil {
		t.Errorf("controller: %v", err)
	}
	if !meta.IsNoMatchError(stranger.List(t.Context(), &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitorList"}})) {
		t.Error("this server has ServiceMonitors; then TestValues should apply them")
	}
}

// TestValues renders what few values change, and has wrong ones refused.
func TestValues(t *testing.T) {
	kinds := func(objects []*unstructured.Unstructured) map[string]int {
		n := map[string]int{}
		for _, o := range objects {
			n[o.GetKind()]++
		}
		return n
	}
	if n := kinds(mustRender(t, least, "--include-crds")); n["Deployment"] != 1 || n["CustomResourceDefinition"] != 6 || n["PodDisruptionBudget"] != 1 || n["ServiceMonitor"] != 0 {
		t.Errorf("with the least of values: %v", n)
	}
	if n := kinds(mustRender(t, least+"crds: {cosi: false}\n", "--include-crds")); n["CustomResourceDefinition"] != 1 {
		t.Errorf("without COSI's definitions: %v", n)
	}
	if n := kinds(mustRender(t, least+"crds: {cosi: false, custody: false}\n", "--include-crds")); n["CustomResourceDefinition"] != 0 {
		t.Errorf("without definitions: %v", n)
	}
	off := "controller: {enabled: false}\nadmission: {enabled: false}\nrbac: {create: false}\nmetrics: {service: false}\n"
	if n := kinds(mustRender(t, least+off)); len(n) != 0 {
		t.Errorf("with all switched off: %v", n)
	}
	monitors := ofKind(mustRender(t, full+"metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}}}\n"), "ServiceMonitor")
	if len(monitors) != 3 || monitors[0].GetLabels()["release"] != "prometheus" {
		t.Errorf("ServiceMonitors: %v", monitors)
	}
	for _, o := range mustRender(t, full) {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "custody-system") {
			t.Errorf("%s %s names the namespace custody-system; the release is in %s:\n%s", o.GetKind(), o.GetName(), namespace, text)
		}
	}
	for _, tc := range []struct{ name, values, says string }{
		{"no image", "", "image.repository"},
		{"a name that is none", least + "controler: {}\n", "controler"},
		{"a log level that is none", least + "log: {level: loud}\n", "log"},
		{"a time that is none", least + "drivers: {a: {deploy: false, serviceAccount: {create: false, name: theirs}, sidecar: {callTimeout: soon}}}\n", "callTimeout"},
		{"a driver without a driver", least + "drivers: {a: {}}\n", "neither s3 nor container"},
		{"two drivers in one", least + "drivers: {a: {s3: {endpoint: 'http://s'}, container: {image: i}}}\n", "both s3 and container"},
		{"no keys", least + "drivers: {a: {s3: {endpoint: 'http://s'}}}\n", "keysSecret"},
		{"nobody's account", least + "drivers: {a: {deploy: false, serviceAccount: {create: false}}}\n", "whose account"},
		{"another namespace's account", least + "drivers: {a: {serviceAccount: {create: false, name: theirs, namespace: other}, container: {image: i}}}\n", "set deploy to false"},
		{"a driver named controller", least + "drivers: {controller: {container: {image: i}}}\n", "controller"},
		{"repeat-safe nonsense", least + "drivers: {a: {container: {image: i}, sidecar: {repeatSafe: [all]}}}\n", "repeatSafe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := render(t, tc.values); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("want an error that says %q, have: %v", tc.says, err)
			}
		})
	}
}
