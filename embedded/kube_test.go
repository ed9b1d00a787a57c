package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func startKube(t *testing.T, o KubeOptions) *Kube {
	t.Helper()
	began := time.Now()
	k, err := StartKube(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Kubernetes API ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func kubeClient(t *testing.T, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c = rest.CopyConfig(c)
	c.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}}
}

// TestKubeKeepsEverything goes through the life of one data folder.
func TestKubeKeepsEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers, which may have to be built")
	}
	ctx, dir := t.Context(), t.TempDir()
	k := startKube(t, KubeOptions{Dir: dir})
	admin := kubeClient(t, k.Config())
	if _, err := admin.CoreV1().ConfigMaps("default").Create(ctx, configMap("kept"), meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	system, err := admin.CoreV1().Namespaces().Get(ctx, "kube-system", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// An account may do what its role says, and nothing else.
	config, err := k.Account(ctx, "custody-system", "reader")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "reader.kubeconfig")
	if err := WriteKubeconfig(file, config); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v", info.Mode(), err)
	}
	if config, err = clientcmd.BuildConfigFromFlags("", file); err != nil {
		t.Fatal(err)
	}
	reader := kubeClient(t, config)
	if _, err := reader.CoreV1().ConfigMaps("default").Get(ctx, "kept", meta.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("read without a role: %v", err)
	}
	role := &rbac.ClusterRole{
		ObjectMeta: meta.ObjectMeta{Name: "reader"},
		Rules:      []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, role, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: meta.ObjectMeta{Name: "reader"},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects:   []rbac.Subject{{Kind: "ServiceAccount", Namespace: "custody-system", Name: "reader"}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reads := func() bool {
		_, err := reader.CoreV1().ConfigMaps("default").Get(ctx, "kept", meta.GetOptions{})
		return err == nil
	}
	eventually(t, "read with a role", reads)

	// kube-apiserver killed: no answer, not counted as unasked, all there again.
	if err := k.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if reads() {
		t.Error("a killed API server answers")
	}
	if err := k.RestartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if !reads() {
		t.Error("no read after the API server was killed and restarted")
	}
	select {
	case <-k.Done():
		t.Errorf("Done after KillAPIServer: %v", k.Err())
	default:
	}

	// Who else wants the folder or the ports is told so.
	_, err = StartKube(ctx, KubeOptions{Dir: dir})
	wantText(t, err, dir, "in use by process", fmt.Sprint(os.Getpid()))
	_, err = StartKube(ctx, KubeOptions{EtcdPort: k.state.EtcdPort})
	wantText(t, err, fmt.Sprint("port ", k.state.EtcdPort), "--etcd-port", "in use by process")
	var port *PortError
	if !errors.As(err, &port) || port.Port != k.state.EtcdPort {
		t.Errorf("no PortError: %v", err)
	}

	// A second start finds all as it was: ports, CA, tokens, data.
	host := k.Config().Host
	if err := errors.Join(k.Stop(), k.Stop()); err != nil {
		t.Fatal(err)
	}
	k = startKube(t, KubeOptions{Dir: dir})
	if k.Config().Host != host {
		t.Errorf("second start at %s, first at %s", k.Config().Host, host)
	}
	if !reads() {
		t.Error("the account of the first start can't read at the second")
	}
	again, err := admin.CoreV1().Namespaces().Get(ctx, "kube-system", meta.GetOptions{})
	if err != nil || again.UID != system.UID {
		t.Errorf("another cluster: kube-system %s, was %s; %v", again.UID, system.UID, err)
	}

	// A death that nobody asked for is told.
	if err := k.etcd.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-k.Done():
		wantText(t, k.Err(), "etcd died unasked", "killed")
	case <-time.After(5 * time.Second):
		t.Error("the death of etcd went unnoticed")
	}
}

// TestKubeForTests starts what most tests want: a temporary folder, free ports.
func TestKubeForTests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers, which may have to be built")
	}
	ctx := t.Context()
	k := startKube(t, KubeOptions{NoPriorityAndFairness: true, ExtraAPIArgs: []string{"--v=1"}})
	admin := kubeClient(t, k.Config())

	// Policies in CEL are there.
	deny := admission.Deny
	policy := &admission.ValidatingAdmissionPolicy{
		ObjectMeta: meta.ObjectMeta{Name: "no-evil"},
		Spec: admission.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
				Operations: []admission.OperationType{admission.Create},
				Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}}},
			Validations: []admission.Validation{{Expression: "!object.metadata.name.startsWith('evil')", Message: "no evil"}},
		},
	}
	if _, err := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admission.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta.ObjectMeta{Name: "no-evil"},
		Spec:       admission.ValidatingAdmissionPolicyBindingSpec{PolicyName: "no-evil", ValidationActions: []admission.ValidationAction{deny}},
	}
	if _, err := admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tries := 0
	eventually(t, "a policy that denies", func() bool {
		tries++
		_, err := admin.CoreV1().ConfigMaps("default").Create(ctx, configMap(fmt.Sprint("evil-", tries)), meta.CreateOptions{})
		return err != nil && strings.Contains(err.Error(), "no evil")
	})

	// Nobody is anybody without credentials.
	nobody := rest.CopyConfig(k.Config())
	nobody.CertData, nobody.KeyData = nil, nil
	_, err := kubeClient(t, nobody).CoreV1().ConfigMaps("default").List(ctx, meta.ListOptions{})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || (status.Status().Code != http.StatusForbidden && status.Status().Code != http.StatusUnauthorized) {
		t.Errorf("list as nobody: %v", err)
	}

	temp := k.Dir()
	pid := k.APIServer().Pid()
	if err := k.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(temp); !os.IsNotExist(err) {
		t.Errorf("temporary folder left behind: %v", err)
	}
	if alive(pid) {
		t.Error("kube-apiserver was left running")
	}
	if l, err := net.Listen("tcp", strings.TrimPrefix(k.Config().Host, "https://")); err != nil {
		t.Error(err)
	} else {
		l.Close()
	}
}

// A server that can't start says why, in its own words.
func TestKubeThatCannotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real servers, which may have to be built")
	}
	_, err := StartKube(t.Context(), KubeOptions{ExtraAPIArgs: []string{"--no-such-flag"}})
	wantText(t, err, "kube-apiserver ended before it was ready", "no-such-flag")
}
