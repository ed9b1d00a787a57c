package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/custody-storage/custody/embedded/toolbox"
)

const (
	serviceRange  = "10.0.0.0/24"
	tokenIssuer   = "https://kubernetes.default.svc"
	portAttempts  = 3
	readyDeadline = 5 * time.Second // of one question to a server
	addressInUse  = "address already in use"
)

// KubeOptions says what Kubernetes API to run. The zero value is one for a test.
type KubeOptions struct {
	// Dir holds data, keys, certificates and logs; "" is a temporary folder.
	Dir string
	// APIPort and EtcdPort on loopback; 0 is the port of the last start with this
	// Dir, or else a free one.
	APIPort, EtcdPort int
	// Fsync has etcd flush each write to disk, as a real one does.
	Fsync bool
	// NoPriorityAndFairness switches API priority and fairness off, for tests that
	// are to be limited by nothing but the machine.
	NoPriorityAndFairness bool
	// ExtraAPIArgs are added to the arguments of kube-apiserver; of flags given
	// twice the last counts.
	ExtraAPIArgs []string
	// Progress is where the building of the servers is shown; nil is standard error.
	Progress io.Writer
}

// Kube is a running Kubernetes API: etcd and kube-apiserver, with RBAC.
type Kube struct {
	options KubeOptions
	folder  *folder
	pki     *pki
	state   kubeState
	admin   *rest.Config

	mu        sync.Mutex
	etcd, api *Process
	killed    *Process // by KillAPIServer
	stopped   bool
	err       error
	done      chan struct{} // closed by whoever sets stopped or err first
}

// kubeState is what a later start with the same folder must find again, beside
// the data and the keys.
type kubeState struct {
	APIPort  int `json:"apiPort"`
	EtcdPort int `json:"etcdPort"`
}

const kubeStateFile = "ports.json"

// StartKube runs etcd and kube-apiserver and returns when the API answers and has
// its first namespaces. It builds the servers if need be, which takes minutes the
// first time. ctx is for the start only: the servers run until Stop.
//
// A port in use is a [*PortError]. A folder in use is an error that names the
// process which uses it.
func StartKube(ctx context.Context, o KubeOptions) (*Kube, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	box, err := toolbox.Open(o.Progress)
	if err != nil {
		return nil, fmt.Errorf("start Kubernetes API: %w", err)
	}
	programs, err := box.Kube(ctx)
	if err != nil {
		return nil, fmt.Errorf("start Kubernetes API: %w", err)
	}
	f, err := openFolder(ctx, o.Dir, "kube")
	if err != nil {
		return nil, err
	}
	k := &Kube{options: o, folder: f, done: make(chan struct{})}
	if err := k.start(ctx, programs); err != nil {
		return nil, errors.Join(fmt.Errorf("start Kubernetes API: %w", err), k.Stop())
	}
	return k, nil
}

func (k *Kube) start(ctx context.Context, programs toolbox.Kube) (err error) {
	if k.pki, err = openPKI(k.folder.in("pki")); err != nil {
		return err
	}
	if _, err := k.folder.load(kubeStateFile, &k.state); err != nil {
		return err
	}
	k.etcd, err = startOnPort(ctx, PortError{Server: "etcd", Port: k.options.EtcdPort, Option: "KubeOptions.EtcdPort", Flag: "etcd-port"},
		&k.state.EtcdPort, func() (*Process, error) { return StartProcess(ctx, k.etcdCommand(programs.Etcd)) })
	if err != nil {
		return err
	}
	k.api, err = startOnPort(ctx, PortError{Server: "kube-apiserver", Port: k.options.APIPort, Option: "KubeOptions.APIPort", Flag: "api-port"},
		&k.state.APIPort, func() (*Process, error) {
			k.admin = k.config(k.state.APIPort)
			k.admin.CertData, k.admin.KeyData = k.pki.adminCert, k.pki.adminKey
			ready, err := k.apiReady()
			if err != nil {
				return nil, err
			}
			return StartProcess(ctx, k.apiCommand(programs.APIServer, ready))
		})
	if err != nil {
		return err
	}
	if err := k.folder.save(kubeStateFile, k.state); err != nil {
		return err
	}
	if err := WriteKubeconfig(k.KubeconfigPath(), k.admin); err != nil {
		return err
	}
	go k.watch(k.etcd)
	go k.watch(k.api)
	return nil
}

// startOnPort settles *port and starts a server that listens on it. A port that
// nobody asked for and that was lost to somebody between the look and the
// server's start is chosen anew.
func startOnPort(ctx context.Context, e PortError, port *int, start func() (*Process, error)) (*Process, error) {
	if e.Port == 0 {
		e.Port = *port // of the last start
	}
	chosen := e.Port != 0
	for attempt := 1; ; attempt++ {
		if !chosen {
			free, err := FreePort()
			if err != nil {
				return nil, err
			}
			e.Port = free
		}
		if err := e.want(); err != nil {
			return nil, err
		}
		*port = e.Port
		p, err := start()
		if err == nil || chosen || attempt == portAttempts || ctx.Err() != nil || !strings.Contains(err.Error(), addressInUse) {
			return p, err
		}
	}
}

func (k *Kube) etcdCommand(path string) Command {
	url := "http://" + address(k.state.EtcdPort)
	args := []string{
		"--data-dir=" + k.folder.in("etcd"),
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		// There is no peer; a port that nobody is told.
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	}
	if !k.options.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return Command{
		Name: "etcd", Path: path, Args: args, Env: plainEnv(), Log: k.folder.in("etcd.log"),
		Ready: httpReady(oneShot(), url+"/health"), inherit: []*os.File{k.folder.lock},
	}
}

func (k *Kube) apiCommand(path string, ready func(context.Context) error) Command {
	args := []string{
		"--etcd-servers=http://" + address(k.state.EtcdPort),
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(k.state.APIPort), "--advertise-address=127.0.0.1",
		// Service "kubernetes" would point to loopback, which the API refuses.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + k.pki.serverCert, "--tls-private-key-file=" + k.pki.srvKey, "--client-ca-file=" + k.pki.caFile,
		"--cert-dir=" + k.folder.in("pki"),
		"--service-account-issuer=" + tokenIssuer,
		"--service-account-signing-key-file=" + k.pki.signingKey, "--service-account-key-file=" + k.pki.signingPublicKey,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--enable-priority-and-fairness=" + strconv.FormatBool(!k.options.NoPriorityAndFairness),
	}
	return Command{
		Name: "kube-apiserver", Path: path, Args: append(args, k.options.ExtraAPIArgs...), Env: plainEnv(), Log: k.folder.in("kube-apiserver.log"),
		Ready: ready, inherit: []*os.File{k.folder.lock},
	}
}

// apiReady asks /readyz, and then for the namespaces that the API server makes on
// its own after it says that it is ready.
func (k *Kube) apiReady() (func(context.Context) error, error) {
	client, err := rest.HTTPClientFor(k.admin)
	if err != nil {
		return nil, err
	}
	questions := []func(context.Context) error{httpReady(client, k.admin.Host+"/readyz")}
	for _, namespace := range []string{"default", "kube-system"} {
		questions = append(questions, httpReady(client, k.admin.Host+"/api/v1/namespaces/"+namespace))
	}
	return func(ctx context.Context) error {
		for _, ask := range questions {
			if err := ask(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// oneShot is a client that leaves no idle connections behind.
func oneShot() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// httpReady is ready when a URL answers 200.
func httpReady(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, readyDeadline)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		if err != nil {
			return fmt.Errorf("read the answer of %s: %w", url, err)
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
		}
		return nil
	}
}

// watch closes done when a server dies that was not asked to.
func (k *Kube) watch(p *Process) {
	<-p.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	if p != k.killed && !k.stopped && k.err == nil {
		k.err = fmt.Errorf("%s died unasked: %s%s", p.Command.Name, p.ending(), p.quote())
		close(k.done)
	}
}

// Done is closed when etcd or kube-apiserver dies unasked, and on Stop.
func (k *Kube) Done() <-chan struct{} { return k.done }

// Err tells which server died unasked, and how.
func (k *Kube) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// APIServer returns kube-apiserver's process, to pause or to measure it. It
// changes with RestartAPIServer. To kill it, use KillAPIServer, else its death
// counts as unasked.
func (k *Kube) APIServer() *Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.api
}

// KillAPIServer kills kube-apiserver with SIGKILL; etcd goes on.
func (k *Kube) KillAPIServer() error {
	k.mu.Lock()
	p := k.api
	k.killed = p
	k.mu.Unlock()
	return p.Kill()
}

// RestartAPIServer starts kube-apiserver again after KillAPIServer, on the same
// port, and returns when it is ready.
func (k *Kube) RestartAPIServer(ctx context.Context) error {
	p, err := k.APIServer().Restart(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.api = p
	k.mu.Unlock()
	go k.watch(p)
	return nil
}

// Stop ends kube-apiserver, then etcd, and removes a temporary folder. It may be
// called again, and does nothing then.
func (k *Kube) Stop() error {
	k.mu.Lock()
	again := k.stopped
	if !again {
		k.stopped = true
		if k.err == nil {
			close(k.done)
		}
	}
	api, etcd := k.api, k.etcd
	k.mu.Unlock()
	if again {
		return nil
	}
	var errs []error
	if api != nil {
		stop := api.Stop
		if ended(etcd) {
			stop = api.Kill // without etcd it waits for its watches and doesn't end in order
		}
		errs = append(errs, stop())
	}
	if etcd != nil {
		errs = append(errs, etcd.Stop())
	}
	return errors.Join(append(errs, k.folder.close())...)
}

func ended(p *Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}
