package campaign

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	crand "crypto/rand"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/cmd/lab/stack"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/test/actor"
	"github.com/custody-storage/custody/test/double"
	"github.com/custody-storage/custody/test/failpoint"
	"github.com/custody-storage/custody/test/oracle"
	"github.com/custody-storage/custody/test/proxy"
)

// Short times, so that much happens in a minute. A call may be lost for settle.
const (
	callTimeout = 1500 * time.Millisecond
	settle      = 4 * time.Second
	lease       = 3 * time.Second
	sweep       = 1500 * time.Millisecond
)

// world is what one test runs: drivers, their sidecars, controllers, a proxy.
type world struct {
	t      *testing.T
	ctx    context.Context
	seed   uint64
	lab    *stack.Stack
	client client.Client
	dir    string // logs, and the file that disarms
	short  string // sockets
	ns     string
	proxy  *proxy.Proxy
	fleet  *fleet

	drivers []*driver
}

// driver is one driver under test, with its classes.
type driver struct {
	name    string
	config  double.Config
	flags   []string        // of its sidecars
	backend *double.Backend // nil for the real one
	server  *embedded.S3    // nil for a double
	socket  string

	first         *slot // its process
	backendSocket string
}

// seed is the one that was asked for, or a new one; it is printed.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	var seed uint64
	if text := os.Getenv("CUSTODY_SEED"); text != "" {
		s, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CUSTODY_SEED: %v", err)
		}
		seed = s
	} else {
		var b [8]byte
		_, _ = crand.Read(b[:])
		seed = binary.LittleEndian.Uint64(b[:]) >> 32
	}
	fmt.Fprintf(os.Stderr, "%s: seed %d (replay with CUSTODY_SEED=%d)\n", t.Name(), seed, seed)
	return seed
}

// newWorld makes a world without processes. Its name goes into the names of drivers
// and of its namespace.
func newWorld(t *testing.T, name string, seed uint64) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), seed: seed, lab: openLab(t), fleet: newFleet()}
	w.client = w.lab.Client
	w.ns = fmt.Sprintf("%s-%x", name, rand.Uint32())
	var err error
	if w.dir, err = os.MkdirTemp("", "campaign-"+name+"-"); err != nil {
		t.Fatal(err)
	}
	if w.short, err = os.MkdirTemp("", "cc"); err != nil { // a socket's path is short
		t.Fatal(err)
	}
	if w.proxy, err = proxy.New(w.lab.Kube.Config(), seed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.fleet.close()
		w.fleet.panics(t)
		_ = w.proxy.Close()
		_ = os.RemoveAll(w.short)
		if t.Failed() {
			t.Logf("the logs are in %s", w.dir)
		} else {
			_ = os.RemoveAll(w.dir)
		}
	})
	w.create(&core.Namespace{ObjectMeta: meta.ObjectMeta{Name: w.ns}})
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.ctx, o); err != nil {
		w.t.Fatal(err)
	}
}

// dice are for one purpose, so that what one part draws doesn't change another's.
func (w *world) dice(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, purpose)) }

func (w *world) off() string { return filepath.Join(w.dir, "disarmed") }

// double adds a driver double with its backend. The config's name is set here.
func (w *world) double(name string, c double.Config, flags ...string) *driver {
	w.t.Helper()
	c.Name = name + "." + w.ns
	b, err := double.NewBackend(c, w.seed+uint64(len(w.drivers)))
	if err != nil {
		w.t.Fatal(err)
	}
	d := &driver{name: c.Name, config: c, flags: flags, backend: b}
	backendSocket := filepath.Join(w.short, fmt.Sprint("b", len(w.drivers)))
	d.socket = filepath.Join(w.short, fmt.Sprint("d", len(w.drivers)))
	ctx, stop := context.WithCancel(context.Background())
	w.t.Cleanup(stop)
	go func() {
		if err := b.Serve(ctx, backendSocket); err != nil {
			w.t.Error(err)
		}
	}()
	w.addDriver(d)
	d.first = w.process(d, name, backendSocket, d.socket)
	d.backendSocket = backendSocket
	return d
}

// process adds one driver process before a double's backend.
func (w *world) process(d *driver, name, backendSocket, socket string) *slot {
	log := filepath.Join(w.dir, name+".log")
	s := &slot{name: name, role: driverRole, log: log, pause: 100 * time.Millisecond,
		make: func(int) embedded.Command { return actor.Double(name, log, backendSocket, socket) }}
	w.fleet.add(s)
	return s
}

// second adds another process of a driver, and gives its socket.
func (w *world) second(d *driver) string {
	socket := d.socket + "x"
	w.process(d, d.name+"-2", d.backendSocket, socket)
	return socket
}

// real adds the S3 driver before the S3 server.
func (w *world) real(flags ...string) *driver {
	w.t.Helper()
	d := &driver{name: "s3." + w.ns, server: w.lab.S3, flags: flags, socket: filepath.Join(w.short, "s3")}
	w.addDriver(d)
	log := filepath.Join(w.dir, "s3.log")
	w.fleet.add(&slot{name: "s3", role: driverRole, log: log, pause: 100 * time.Millisecond,
		make: func(int) embedded.Command {
			return actor.S3("s3", log, d.server, "--driver-name="+d.name, "--owner="+w.ns, "--endpoint=unix://"+d.socket,
				"--call-timeout="+(callTimeout-300*time.Millisecond).String(), "--settle="+callTimeout.String(), "--request-timeout=1s")
		}})
	return d
}

func (w *world) addDriver(d *driver) {
	w.t.Helper()
	w.drivers = append(w.drivers, d)
	parameters := map[string]string(nil)
	if d.backend != nil {
		parameters = map[string]string{"region": "eu"}
	}
	for _, policy := range []cosi.DeletionPolicy{cosi.DeletionPolicyDelete, cosi.DeletionPolicyRetain} {
		w.create(&cosi.BucketClass{ObjectMeta: meta.ObjectMeta{Name: d.class(policy)},
			Spec: cosi.BucketClassSpec{DriverName: d.name, DeletionPolicy: policy, Parameters: parameters}})
	}
	w.create(&cosi.BucketAccessClass{ObjectMeta: meta.ObjectMeta{Name: d.name},
		Spec: cosi.BucketAccessClassSpec{DriverName: d.name, AuthenticationType: cosi.AuthenticationTypeKey, Parameters: parameters}})
}

func (d *driver) class(p cosi.DeletionPolicy) string {
	return d.name + "-" + strings.ToLower(string(p))
}

func (d *driver) items() oracle.Inventory {
	if d.backend != nil {
		return oracle.OfDouble(d.backend)
	}
	return oracle.OfS3(d.server, d.name)
}

// arm says how a sidecar is hooked.
type arm struct {
	rules          []failpoint.Rule
	on             string // the file that arms it; "" is always
	withoutIntents bool
	flags          []string
	socket         string        // "" is the driver's
	pause          time.Duration // before it is started again
}

// sidecar adds one sidecar process of a driver.
func (w *world) sidecar(d *driver, n int, a arm) *slot {
	w.t.Helper()
	short, _, _ := strings.Cut(d.name, ".")
	name := fmt.Sprintf("sidecar-%s-%d", short, n)
	endpoint := "unix://" + cmp.Or(a.socket, d.socket)
	door, kubeconfig := w.door(name, lab.sidecar)
	args := append([]string{
		"--driver-endpoint=" + endpoint,
		"--call-timeout=" + callTimeout.String(), "--settle=" + settle.String(), "--sweep-interval=" + sweep.String(),
		"--retry-interval-start=100ms", "--retry-interval-max=1500ms", "--request-timeout=4s", "--workers=16", "--overdue=20s",
	}, common(kubeconfig)...)
	args = append(append(args, d.flags...), a.flags...)
	s := &slot{name: name, role: sidecar, door: door, log: filepath.Join(w.dir, name+".log"), pause: cmp.Or(a.pause, 200*time.Millisecond)}
	s.make = func(run int) embedded.Command {
		plan := &failpoint.Plan{Seed: w.seed + uint64(run), Rules: a.rules, Log: filepath.Join(w.dir, "failpoints"), Off: w.off(), On: a.on}
		return actor.Sidecar{Args: args, Failpoints: plan, WithoutIntents: a.withoutIntents}.Command(name, s.log)
	}
	w.fleet.add(s)
	return s
}

// controller adds one controller process, of the shipped binary.
func (w *world) controller(n int) *slot {
	w.t.Helper()
	name := fmt.Sprint("controller-", n)
	door, kubeconfig := w.door(name, lab.controller.Config)
	s := &slot{name: name, role: controller, door: door, log: filepath.Join(w.dir, name+".log"), pause: 200 * time.Millisecond}
	c := lab.controller.Command
	c.Name, c.Log, c.Ready = name, s.log, nil
	c.Args = append([]string{"cosi", "controller", "--workers=16"}, common(kubeconfig)...)
	s.make = func(int) embedded.Command { return c }
	w.fleet.add(s)
	return s
}

// common are flags of sidecar and controller.
func common(kubeconfig string) []string {
	return []string{"--kubeconfig=" + kubeconfig, "--lease-namespace=" + stack.Namespace, "--lease-duration=" + lease.String(),
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--stop-timeout=2s"}
}

func (w *world) door(name string, c *rest.Config) (*proxy.Door, string) {
	w.t.Helper()
	door, err := w.proxy.Door(name, c)
	if err != nil {
		w.t.Fatal(err)
	}
	kubeconfig := filepath.Join(w.dir, name+".kubeconfig")
	if err := embedded.WriteKubeconfig(kubeconfig, door.Config()); err != nil {
		w.t.Fatal(err)
	}
	return door, kubeconfig
}

// options are for the oracle.
func (w *world) options(keeps []oracle.Keep) oracle.Options {
	o := oracle.Options{Reader: w.client, Keeps: keeps, Excuse: unmade}
	for _, d := range w.drivers {
		o.Drivers = append(o.Drivers, d.name)
		o.Backends = append(o.Backends, d.items())
	}
	return o
}

// unmade excuses a Bucket that was made for a claim which was gone by then: by a
// controller that slept or whose request was held up, or one of policy Retain whose
// claim was quicker than the sidecar. Nothing is provisioned for it, and it says so.
// Nobody deletes it unasked: a restored Bucket looks the same.
func unmade(o client.Object) string {
	b, ok := o.(*cosi.Bucket)
	if ok && b.Status.BucketID == "" && b.Status.Error.Reason() == "ClaimGone" {
		return "made for a claim that is gone"
	}
	return ""
}
