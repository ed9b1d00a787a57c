package intents

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

const (
	// fieldManager is who decisions are written by, as managedFields have it.
	fieldManager = "custody-intents"
	// requestTimeout is the deadline of one request to the API server.
	requestTimeout = 30 * time.Second
	// pageSize is how many Intents are asked for at once.
	pageSize = 500
)

// Client reads and decides, as whoever the configuration says we are.
type Client struct {
	api client.Client
	now func() time.Time
}

// Open makes a Client. It makes no request.
func Open(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, cosi.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	api, err := client.New(config, client.Options{Scheme: scheme, FieldOwner: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("make a client for the API server: %w", err)
	}
	return &Client{api: api, now: time.Now}, nil
}

// get reads one Intent from the API server.
func (c *Client) get(ctx context.Context, name string) (*v1alpha1.Intent, error) {
	intent := &v1alpha1.Intent{}
	err := c.api.Get(ctx, client.ObjectKey{Name: name}, intent)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no intent %q: `custody intents list` shows those there are; "+
			"one that is settled and deleted leaves none behind", name)
	case err != nil:
		return nil, c.failed(fmt.Sprintf("read intent %q", name), err)
	}
	return intent, nil
}

// failed says what to do about an error of the API server.
func (c *Client) failed(what string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w (reading takes the role custody-intents-view, deciding custody-intents-admin)", what, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w (are the definitions of custody.dev installed in this cluster? see --kubeconfig and --context)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// clusterUID tells this cluster from others, as Intents have it.
func (c *Client) clusterUID(ctx context.Context) (string, error) {
	ns := &core.Namespace{}
	if err := c.api.Get(ctx, client.ObjectKey{Name: "kube-system"}, ns); err != nil {
		return "", c.failed("read the namespace kube-system, whose UID tells this cluster from others", err)
	}
	return string(ns.UID), nil
}
