package ceph

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Clusters is the configuration file of everything that speaks with Ceph: each cluster once, with the standing identity
// of each role. Node plugin, controller and commands read the same file, and each finds its own identity in it.
//
//	clusters:
//	- id: prod
//	  monitors: 10.0.0.1,10.0.0.2,10.0.0.3
//	  pools: [rbd, rbd/tenant-a]
//	  heartbeats: rbd
//	  node: {user: custody-node, keyFile: /etc/custody/keys/prod-node}
//	  controller: {user: custody-controller, keyFile: /etc/custody/keys/prod-controller}
type Clusters struct {
	Clusters []Entry `json:"clusters"`
}

// Entry is one cluster of the file.
type Entry struct {
	// ID names the cluster in volume ids and parameters; letters, digits, "." "_" "-". It must never change.
	ID string `json:"id"`
	// Monitors as in [Config].
	Monitors string `json:"monitors"`
	// Pools that volumes may be in, as POOL or POOL/NAMESPACE. Rights are checked in them, and holds looked for.
	Pools []string `json:"pools"`
	// Heartbeats is the pool of the nodes' heartbeats; the first of Pools if empty.
	Heartbeats string `json:"heartbeats,omitempty"`
	// Timeout of each call, such as "15s"; empty is [DefaultTimeout].
	Timeout string `json:"timeout,omitempty"`
	// Settings of Ceph's client beside these.
	Settings map[string]string `json:"settings,omitempty"`
	// Node and Controller are the standing identities.
	Node       *Identity `json:"node,omitempty"`
	Controller *Identity `json:"controller,omitempty"`
}

var clusterID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,35}$`)

// Identity is a Ceph user and where its key is. The file is read anew on each call: to rotate a key is to replace it.
type Identity struct {
	User    string `json:"user"`
	KeyFile string `json:"keyFile"`
}

// ReadClusters reads the file and tells everything that is wrong with it.
func ReadClusters(path string) (Clusters, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Clusters{}, fmt.Errorf("read the configuration of Ceph clusters: %w", err)
	}
	var c Clusters
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Clusters{}, fmt.Errorf("configuration of Ceph clusters %s: %w", path, err)
	}
	if err := c.validate(); err != nil {
		return Clusters{}, fmt.Errorf("configuration of Ceph clusters %s: %w", path, err)
	}
	return c, nil
}

// Entry finds a cluster by its id. With one cluster in the file "" finds that.
func (c Clusters) Entry(id string) (Entry, error) {
	if id == "" && len(c.Clusters) == 1 {
		return c.Clusters[0], nil
	}
	ids := []string{}
	for _, e := range c.Clusters {
		if e.ID == id {
			return e, nil
		}
		ids = append(ids, e.ID)
	}
	if id == "" {
		return Entry{}, fmt.Errorf("no cluster was named; the configuration has %q", ids)
	}
	return Entry{}, fmt.Errorf("no cluster %q; the configuration has %q", id, ids)
}

// Config gives the connection of a role's standing identity.
func (e Entry) Config(role Role) (Config, error) {
	who := map[Role]*Identity{Node: e.Node, Controller: e.Controller}[role]
	if who == nil {
		return Config{}, fmt.Errorf("configuration of Ceph cluster %q: no identity for the %s", e.ID, role)
	}
	timeout, err := e.timeout()
	if err != nil {
		return Config{}, err
	}
	config := Config{ID: e.ID, Monitors: e.Monitors, User: who.User, KeyFile: who.KeyFile, Timeout: timeout, Settings: e.Settings}
	return config, config.Validate()
}

// HeartbeatPool is the pool of the nodes' heartbeats.
func (e Entry) HeartbeatPool() string {
	if e.Heartbeats == "" {
		pool, _, _ := strings.Cut(e.Pools[0], "/")
		return pool
	}
	return e.Heartbeats
}

// Has tells whether volumes may be in that pool and namespace.
func (e Entry) Has(pool, namespace string) bool {
	for _, p := range e.Pools {
		if q, n, _ := strings.Cut(p, "/"); q == pool && n == namespace {
			return true
		}
	}
	return false
}

func (e Entry) timeout() (time.Duration, error) {
	if e.Timeout == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(e.Timeout)
	if err != nil {
		return 0, fmt.Errorf("configuration of Ceph cluster %q: timeout: %w", e.ID, err)
	}
	return d, nil
}

func (c Clusters) validate() error {
	errs, seen := []error{}, map[string]bool{}
	if len(c.Clusters) == 0 {
		errs = append(errs, errors.New("no clusters"))
	}
	for i, e := range c.Clusters {
		if !clusterID.MatchString(e.ID) {
			errs = append(errs, fmt.Errorf("cluster %d: id %q: wanted are 1 to 36 letters, digits, \".\", \"_\" or \"-\"", i+1, e.ID))
		}
		if seen[e.ID] {
			errs = append(errs, fmt.Errorf("cluster %q is there twice", e.ID))
		}
		seen[e.ID] = true
		if len(e.Pools) == 0 {
			errs = append(errs, fmt.Errorf("cluster %q: no pools", e.ID))
		}
		for _, p := range e.Pools {
			pool, namespace, _ := strings.Cut(p, "/")
			if err := (Image{Pool: pool, Namespace: namespace, Name: "x", ID: "x"}).Validate(); err != nil {
				errs = append(errs, fmt.Errorf("cluster %q: pool %q: %w", e.ID, p, err))
			}
		}
		if e.Node == nil && e.Controller == nil {
			errs = append(errs, fmt.Errorf("cluster %q: neither an identity for the node nor one for the controller", e.ID))
		}
		for role, who := range map[Role]*Identity{Node: e.Node, Controller: e.Controller} {
			if who == nil {
				continue
			}
			if _, err := e.Config(role); err != nil {
				errs = append(errs, fmt.Errorf("the %s's: %w", role, err))
			}
		}
	}
	return errors.Join(errs...)
}
