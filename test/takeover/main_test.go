//go:build ceph

package takeover

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/cephtest"
)

// The cluster holds a dead client to be alive for 5 s instead of 30: what waits for that is not waited for long.
var cluster = cephtest.Cluster{Options: embedded.CephOptions{Settings: map[string]string{"osd_client_watch_timeout": "5"}}}

var shared struct {
	network    *Network
	networkErr error
	once       sync.Once
	fleet      *Fleet
	err        error
}

func TestMain(m *testing.M) {
	RunIfAsked()
	if shared.network, shared.networkErr = OpenNetwork(); shared.networkErr == nil {
		cluster.Options.IP = shared.network.IP()
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	code := cluster.Run(testsThenFleet{m})
	if shared.network == nil {
		return code
	}
	if err := shared.network.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// testsThenFleet ends the machines before the cluster goes.
type testsThenFleet struct{ *testing.M }

func (r testsThenFleet) Run() int {
	code := r.M.Run()
	if shared.fleet == nil {
		return code
	}
	if err := shared.fleet.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// fleet gives the fleet that the tests share.
func fleet(t *testing.T) *Fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster")
	}
	if errors.Is(shared.networkErr, ErrNoMachines) && os.Getenv("CI") != "true" {
		t.Skip(shared.networkErr)
	}
	if shared.networkErr != nil {
		t.Fatal(shared.networkErr)
	}
	c := cluster.Get(t)
	shared.once.Do(func() { shared.fleet, shared.err = NewFleet(t.Context(), c, shared.network) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.fleet
}

func machine(t *testing.T, f *Fleet, name string) *Machine {
	t.Helper()
	m, err := f.Machine(t.Context(), name)
	must(t, err)
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
