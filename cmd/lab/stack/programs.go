package stack

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/custody-storage/custody/api/crds"
	cosicrds "github.com/custody-storage/custody/cosi/api/crds"
	"github.com/custody-storage/custody/cosi/controller/admission"
	controllerroles "github.com/custody-storage/custody/cosi/controller/rbac"
	"github.com/custody-storage/custody/cosi/driver/s3"
	sidecarroles "github.com/custody-storage/custody/cosi/sidecar/rbac"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/embedded"
)

// Namespace is where Custody's accounts and leases are.
const Namespace = "custody-system"

// account is a Kubernetes account and its roles.
type account struct {
	namespace, name string
	roles           fs.FS
}

func controllerAccount() account {
	return account{Namespace, "custody-controller", controllerroles.Files()}
}

func sidecarAccount() account {
	return account{Namespace, "custody-sidecar", sidecarroles.Files()}
}

// install puts into the cluster what an admin installs before Custody runs there.
func (s *Stack) install(ctx context.Context) error {
	for _, definitions := range []fs.FS{crds.Files(), cosicrds.Files()} {
		if err := installDefinitions(ctx, s.Client, definitions); err != nil {
			return err
		}
	}
	for _, a := range []account{controllerAccount(), sidecarAccount()} {
		if _, err := s.Kube.Account(ctx, a.namespace, a.name); err != nil { // makes the namespace
			return err
		}
		if err := bind(ctx, s.Client, a); err != nil {
			return err
		}
	}
	_, err := Apply(ctx, s.Client, admission.Files())
	return err
}

// Program is a program of bin/custody that is ready to be started.
type Program struct {
	embedded.Command
	// Config is how it reaches the API server.
	Config *rest.Config
	// Metrics is the URL of its metrics, Profiles of its Go profiles.
	Metrics, Profiles string
}

// ControllerOptions says how the controller is run.
type ControllerOptions struct {
	// Args are added to its arguments.
	Args []string
}

// Controller is "custody cosi controller".
func (s *Stack) Controller(ctx context.Context, o ControllerOptions) (Program, error) {
	return s.program(ctx, "controller", controllerAccount(), nil, append([]string{"cosi", "controller"}, o.Args...))
}

// SidecarOptions says how the sidecar is run.
type SidecarOptions struct {
	// Endpoint of the driver.
	Endpoint string
	// Through, if not nil, changes the way to the API server, such as into one through
	// a proxy.
	Through func(*rest.Config) (*rest.Config, error)
	// Args are added to its arguments.
	Args []string
}

// Sidecar is "custody cosi sidecar".
func (s *Stack) Sidecar(ctx context.Context, o SidecarOptions) (Program, error) {
	args := append([]string{"cosi", "sidecar", "--driver-endpoint=" + o.Endpoint}, o.Args...)
	return s.program(ctx, "sidecar", sidecarAccount(), o.Through, args)
}

func (s *Stack) program(ctx context.Context, name string, a account, through func(*rest.Config) (*rest.Config, error), args []string) (p Program, err error) {
	if p.Config, err = s.Kube.Account(ctx, a.namespace, a.name); err != nil {
		return p, err
	}
	if through != nil {
		if p.Config, err = through(p.Config); err != nil {
			return p, err
		}
	}
	kubeconfig := s.In(name + ".kubeconfig")
	if err := embedded.WriteKubeconfig(kubeconfig, p.Config); err != nil {
		return p, err
	}
	var addresses [3]string // for health, metrics and profiles
	for i := range addresses {
		port, err := embedded.FreePort()
		if err != nil {
			return p, err
		}
		addresses[i] = "127.0.0.1:" + strconv.Itoa(port)
	}
	p.Metrics = "http://" + addresses[1] + "/metrics"
	p.Profiles = "http://" + addresses[2] + "/debug/pprof"
	p.Command = embedded.Command{
		Name: name, Path: s.binary, Log: s.In(name + ".log"),
		Args: append(args,
			"--kubeconfig="+kubeconfig, "--lease-namespace="+a.namespace,
			"--health-probe-bind-address="+addresses[0], "--metrics-bind-address="+addresses[1], "--pprof-bind-address="+addresses[2]),
		Ready: answers("http://" + addresses[0] + "/readyz"),
	}
	return p, nil
}

// answers is ready when a URL answers 200.
func answers(url string) func(context.Context) error {
	const within = 5 * time.Second
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(url + " answers " + resp.Status)
		}
		return nil
	}
}

// S3Driver is "custody cosi driver s3" before the stack's S3 server. It needs no
// Kubernetes account, so it has none.
func (s *Stack) S3Driver(endpoint string) embedded.Command {
	access, secret := s.S3.Root()
	return embedded.Command{
		Name: "driver", Path: s.binary, Log: s.In("driver.log"),
		Args: []string{"cosi", "driver", "s3", "--endpoint=" + endpoint, "--s3-endpoint=" + s.S3.Endpoint(), "--s3-region=" + s.S3.Region()},
		Env:  append(os.Environ(), s3.EnvAccessKey+"="+access, s3.EnvSecretKey+"="+secret),
		Ready: func(ctx context.Context) error {
			client, err := wire.Dial(ctx, endpoint, wire.Options{})
			if err != nil {
				return err
			}
			return client.Close()
		},
	}
}
