package embedded

import (
	"context"
	"fmt"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is long enough that no demo outlives it.
const tokenLife = 365 * 24 * time.Hour

// config reaches the API server as nobody yet. There is no limit on its side:
// the API server's priority and fairness does that job.
func (k *Kube) config(port int) *rest.Config {
	return &rest.Config{
		Host:            "https://" + address(port),
		TLSClientConfig: rest.TLSClientConfig{CAData: k.pki.caPEM},
		QPS:             -1,
	}
}

// Config returns a configuration for a client that may do everything, in the
// group system:masters.
func (k *Kube) Config() *rest.Config { return rest.CopyConfig(k.admin) }

// KubeconfigPath is the administrator's kubeconfig, in the data folder.
func (k *Kube) KubeconfigPath() string { return k.folder.in("admin.kubeconfig") }

// Dir is the data folder; it holds the servers' logs too.
func (k *Kube) Dir() string { return k.folder.path }

// Account returns a configuration for a client that acts as a ServiceAccount,
// with a token made by TokenRequest that is good for a year, also after a
// restart with the same Dir. Namespace and ServiceAccount are made if they aren't
// there. What the account may do is the caller's affair: it has no role yet.
func (k *Kube) Account(ctx context.Context, namespace, name string) (*rest.Config, error) {
	failed := func(err error) error { return fmt.Errorf("account %s/%s: %w", namespace, name, err) }
	client, err := kubernetes.NewForConfig(k.admin)
	if err != nil {
		return nil, failed(err)
	}
	ns := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, failed(err)
	}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, failed(err)
	}
	seconds := int64(tokenLife / time.Second)
	request, err := accounts.CreateToken(ctx, name,
		&authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}, meta.CreateOptions{})
	if err != nil {
		return nil, failed(fmt.Errorf("request a token: %w", err))
	}
	config := k.config(k.state.APIPort)
	config.BearerToken = request.Status.Token
	return config, nil
}

// WriteKubeconfig writes a kubeconfig file, readable by this user alone, with
// the server, the CA and the certificate or token of a configuration.
func WriteKubeconfig(path string, c *rest.Config) error {
	const name = "custody"
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	text, err := clientcmd.Write(config)
	if err == nil {
		err = writeFile(path, text)
	}
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
