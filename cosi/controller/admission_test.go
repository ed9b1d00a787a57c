package controller_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// TestAdmission tries, as an ordinary user who has every permission that RBAC can give, an
// admin of the break-glass group, and an account of Custody, what the policies forbid.
func TestAdmission(t *testing.T) {
	w := newWorld(t)
	tenant := w.as("tenant")
	custody, err := kube.Account(w.ctx, system, "custody-sidecar")
	if err != nil {
		t.Fatal(err)
	}
	w.mayAll(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "custody-sidecar"})
	clients := map[string]client.Client{"tenant": tenant, "admin": admin, "custody": w.client(custody)}

	claim := func(name string) *api.BucketClaim {
		return &api.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
			Spec: api.BucketClaimSpec{BucketClassName: w.name + "-none"}}
	}
	intent := func(name string) *v1alpha1.Intent {
		return &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: w.name + name}, Spec: v1alpha1.IntentSpec{
			FormatVersion: 1, ClusterUID: "this", Owner: v1alpha1.Owner{Kind: "Bucket"}, Kind: v1alpha1.KindBucket, Driver: driverManual,
			Name: w.name + name, Phase: v1alpha1.PhaseMaking, Origin: v1alpha1.OriginCreated}}
	}
	// existing makes an object as an admin for a case to work on.
	existing := func(o client.Object) client.Object {
		w.create(o)
		return o
	}
	patch := func(o client.Object, change func()) func(client.Client) error {
		before := o.DeepCopyObject().(client.Object)
		change()
		return func(c client.Client) error { return c.Patch(w.ctx, o, client.MergeFrom(before)) }
	}
	protected := func(name string) client.Object {
		c := claim(name)
		c.Finalizers = []string{v1alpha1.ProtectionFinalizer, "tenant.test/other"}
		return existing(c)
	}

	for name, c := range map[string]struct {
		tenantMay bool
		do        func(name string) func(client.Client) error
	}{
		"create an Intent": {do: func(n string) func(client.Client) error {
			return func(c client.Client) error { return c.Create(w.ctx, intent(n)) }
		}},
		"update an Intent": {do: func(n string) func(client.Client) error {
			i := existing(intent(n)).(*v1alpha1.Intent)
			return patch(i, func() { i.Spec.Phase = v1alpha1.PhaseDeleting })
		}},
		"write an Intent's status": {do: func(n string) func(client.Client) error {
			i := existing(intent(n)).(*v1alpha1.Intent)
			before := i.DeepCopy()
			i.Status.ObservedGeneration = 7
			return func(c client.Client) error { return c.Status().Patch(w.ctx, i, client.MergeFrom(before)) }
		}},
		"delete an Intent": {do: func(n string) func(client.Client) error {
			i := existing(intent(n))
			return func(c client.Client) error { return c.Delete(w.ctx, i) }
		}},
		"create with our finalizer": {do: func(n string) func(client.Client) error {
			o := claim(n)
			o.Finalizers = []string{v1alpha1.ProtectionFinalizer}
			return func(c client.Client) error { return c.Create(w.ctx, o) }
		}},
		"put our finalizer on": {do: func(n string) func(client.Client) error {
			o := existing(claim(n))
			return patch(o, func() { o.SetFinalizers([]string{v1alpha1.ProtectionFinalizer}) })
		}},
		"take our finalizer off": {do: func(n string) func(client.Client) error {
			o := protected(n)
			return patch(o, func() { o.SetFinalizers([]string{"tenant.test/other"}) })
		}},
		"take another finalizer off": {tenantMay: true, do: func(n string) func(client.Client) error {
			o := protected(n)
			return patch(o, func() { o.SetFinalizers([]string{v1alpha1.ProtectionFinalizer}) })
		}},
		"label what is protected": {tenantMay: true, do: func(n string) func(client.Client) error {
			o := protected(n)
			return patch(o, func() { o.SetLabels(map[string]string{"team": "blue"}) })
		}},
		"create a claim": {tenantMay: true, do: func(n string) func(client.Client) error {
			return func(c client.Client) error { return c.Create(w.ctx, claim(n)) }
		}},
		"delete a claim": {tenantMay: true, do: func(n string) func(client.Client) error {
			o := existing(claim(n))
			return func(c client.Client) error { return c.Delete(w.ctx, o) }
		}},
		"create with a hand-off annotation": {do: func(n string) func(client.Client) error {
			o := claim(n)
			o.Annotations = map[string]string{api.AnnotationHasBucketAccessReferences: ""}
			return func(c client.Client) error { return c.Create(w.ctx, o) }
		}},
		"forge the clean-up": {do: func(n string) func(client.Client) error {
			o := existing(w.access(n, "none"))
			return patch(o, func() { o.SetAnnotations(map[string]string{api.AnnotationSidecarCleanupFinished: ""}) })
		}},
		"forge the override": {do: func(n string) func(client.Client) error {
			o := existing(w.access(n, "none"))
			return patch(o, func() { o.SetAnnotations(map[string]string{api.AnnotationControllerManagementOverride: "x"}) })
		}},
		"forge the misspelt annotation of a Bucket": {do: func(n string) func(client.Client) error {
			o := existing(&api.Bucket{ObjectMeta: metav1.ObjectMeta{Name: w.name + n}, Spec: api.BucketSpec{
				DriverName: driverManual, DeletionPolicy: api.DeletionPolicyRetain,
				BucketClaimRef: api.BucketClaimReference{Namespace: w.name, Name: "none"}}})
			return patch(o, func() { o.SetAnnotations(map[string]string{api.AnnotationBucketClaimBeingDeletedMisspelt: ""}) })
		}},
		"annotate otherwise": {tenantMay: true, do: func(n string) func(client.Client) error {
			o := existing(w.access(n, "none"))
			return patch(o, func() { o.SetAnnotations(map[string]string{"team.test/owner": "blue"}) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for who, c2 := range clients {
				object := strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(name)) + "-" + who
				err := c.do(object)(c2)
				if who != "tenant" || c.tenantMay {
					if err != nil {
						t.Errorf("%s: must be let through: %v", who, err)
					}
					continue
				}
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
					t.Errorf("%s: must be refused by the policy, but the answer is: %v", who, err)
				}
			}
		})
	}

	// The way in for admins is the ConfigMap: who is added to it is let through.
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "custody-admission"}}
	if !w.get(config) {
		t.Fatal("there is no ConfigMap")
	}
	was := config.DeepCopy()
	defer w.change(config, "", func() { config.Data = was.Data })
	w.change(config, "", func() { config.Data["breakGlassGroups"] += "storage-admins\n" })
	storage := w.as("storage", "storage-admins")
	w.await("the added group is let through", func() bool {
		err := storage.Create(w.ctx, intent("-storage"))
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

// as is a client that acts as a user whom RBAC allows everything.
func (w *world) as(user string, groups ...string) client.Client {
	w.Helper()
	w.mayAll(rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
	config := kube.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return w.client(config)
}

func (w *world) mayAll(subject rbacv1.Subject) {
	w.Helper()
	w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + subject.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{subject}})
}

func (w *world) client(config *rest.Config) client.Client {
	w.Helper()
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	return c
}
