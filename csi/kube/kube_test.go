package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/custody-storage/custody/csi/kube"
	"github.com/custody-storage/custody/csi/kube/rbac"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
)

const (
	namespace = "default"
	driver    = "rbd.custody.dev"
)

// root may do everything, api only what the role allows.
var (
	server    *embedded.Kube
	root, api kubernetes.Interface
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build of a server takes most of it
	defer cancel()
	var err error
	if server, err = embedded.StartKube(ctx, embedded.KubeOptions{}); err == nil {
		if err = prepare(ctx); err == nil {
			status = m.Run()
		}
		err = errors.Join(err, server.Stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func prepare(ctx context.Context) error {
	var err error
	if root, err = kubernetes.NewForConfig(server.Config()); err != nil {
		return err
	}
	config, err := server.Account(ctx, namespace, "rbd")
	if err != nil {
		return err
	}
	if api, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	all, err := fs.ReadFile(rbac.Files(), "role.yaml")
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(all, role); err != nil {
		return err
	}
	_, errRole := root.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	_, errBinding := root.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rbd"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "rbd"}}}, metav1.CreateOptions{})
	return errors.Join(errRole, errBinding)
}

// eventually waits for what the API server does in its own time, such as to learn of a role.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func TestWitness(t *testing.T) {
	w := &kube.Witness{API: api}
	who := exclusive.Who{Machine: "4c4c4544-0042", Node: "wit", Boot: "b"}
	judge := func(what string, want exclusive.Verdict) {
		t.Helper()
		eventually(t, what, func() error {
			got, err := w.Judge(t.Context(), who)
			if err == nil && got != want {
				err = fmt.Errorf("verdict %d, want %d", got, want)
			}
			return err
		})
	}
	judge("no such node", exclusive.Lost)
	nodes := root.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: who.Node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	judge("a node that no kubelet has filled in", exclusive.Alive)
	status := func(uuid, machineID string) {
		t.Helper()
		node.Status.NodeInfo.SystemUUID, node.Status.NodeInfo.MachineID = uuid, machineID
		if node, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	status("4C4C4544-0042", "mid")
	judge("the node itself, in capitals", exclusive.Alive)
	taint := func(keys ...string) {
		t.Helper()
		node.Spec.Taints = nil
		for _, key := range keys {
			node.Spec.Taints = append(node.Spec.Taints, core.Taint{Key: key, Effect: core.TaintEffectNoExecute})
		}
		if node, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	taint(core.TaintNodeUnreachable)
	judge("a node that is not reached", exclusive.Alive)
	taint(core.TaintNodeUnreachable, core.TaintNodeOutOfService)
	judge("out of service", exclusive.Lost)
	taint()
	status("other", "mid")
	judge("another machine of that name", exclusive.Lost)
	who.Machine = "machine-id-mid"
	judge("known by its machine id", exclusive.Alive)
	who.Machine = "machine-id-other"
	judge("another machine id", exclusive.Lost)

	config := server.Config()
	config.Host = "https://127.0.0.1:1"
	away, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (&kube.Witness{API: away}).Judge(t.Context(), who); err == nil || got != exclusive.Alive {
		t.Errorf("an API server that is away says %d, %v", got, err)
	}
}

func volume(t *testing.T, name, handle string, claim *core.ObjectReference) {
	t.Helper()
	_, err := root.CoreV1().PersistentVolumes().Create(t.Context(), &core.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: core.PersistentVolumeSpec{
			Capacity: core.ResourceList{core.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []core.PersistentVolumeAccessMode{core.ReadWriteOncePod},
			ClaimRef:               claim,
			PersistentVolumeSource: core.PersistentVolumeSource{CSI: &core.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReporter(t *testing.T) {
	volume(t, "pvc-1", "c/rbd//custody-vol-pvc-1", &core.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data"})
	volume(t, "static", "c/rbd//custody-vol-else", nil)
	volume(t, "pvc-2", "c/rbd//another", nil) // its name fits, its handle not
	r := &kube.Reporter{API: api, Driver: driver, Component: "custody-rbd-node", Node: "n1", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		PVName: func(handle string) string {
			return map[string]string{"c/rbd//custody-vol-pvc-1": "pvc-1", "c/rbd//custody-vol-pvc-2": "pvc-2"}[handle]
		}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	r.Report(kube.TakenOver("c/rbd//custody-vol-pvc-1", "n2", "n1"))
	r.Report(kube.TakenOver("c/rbd//custody-vol-pvc-1", "n2", "n1")) // said already
	r.Report(kube.Lost("c/rbd//custody-vol-pvc-2", "n2"))            // nobody's
	r.Report(kube.FencedDevice("c/rbd//custody-vol-else", "n1", "/dev/rbd0"))
	want := map[string]int{"VolumeTakenOver PersistentVolume pvc-1": 1, "VolumeTakenOver PersistentVolumeClaim data": 1, "FencedDeviceFound PersistentVolume static": 1}
	eventually(t, "events", func() error {
		list, err := root.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		got := map[string]int{}
		for _, e := range list.Items {
			if e.ReportingController == "custody-rbd-node" {
				got[e.Reason+" "+e.Regarding.Kind+" "+e.Regarding.Name]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("events %v, want %v", got, want)
		}
		return nil
	})
	cancel()
	<-ended

	// Nobody writes now: the queue takes what it can, and nobody waits.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 1000 {
			r.Report(kube.Lost(fmt.Sprint(n), "n1"))
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("Report waits")
	}
}
