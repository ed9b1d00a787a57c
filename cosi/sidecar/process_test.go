package sidecar_test

import (
	"context"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/sidecar"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/provision"
)

func clientFor(t *testing.T, c *rest.Config) client.Client {
	t.Helper()
	cl, err := client.New(c, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func forbidden(err error) bool { return apierrors.IsForbidden(err) }

// unreachable is an error as wire gives it where no driver listens.
func unreachable() error {
	c, err := wire.Dial(context.Background(), "unix:///nonexistent/custody.sock", wire.Options{CallTimeout: 50 * time.Millisecond})
	if err == nil {
		c.Close()
		return nil
	}
	return err
}

// Told to stop, the sidecar brings to its end what it has begun: the id of a create that runs is kept.
func TestGracefulStop(t *testing.T) {
	both(t, func(w *world, s subject) {
		g := newGate()
		w.driver.onBefore(s.make, g.hold)
		c := w.sidecar(func(o *sidecar.Options) { o.CallTimeout, o.Settle = 10*time.Second, 10*time.Second })
		o := s.want()
		<-g.arrived
		c.cancel()
		time.AfterFunc(200*time.Millisecond, func() { close(g.open) })
		<-c.done
		i := w.intent(o)
		if i == nil || i.Spec.Phase != v1alpha1.PhaseLive || i.Spec.Attempt != "" || i.Spec.Doubt {
			w.Fatalf("intent %+v", i)
		}
		if w.get(o); i.Spec.ID != s.ids()[0] {
			w.Errorf("intent has %q, backend %v", i.Spec.ID, s.ids())
		}
		c.stop(w)
	})
}

// Of two sidecars of a driver one acts; when it ends, the other does.
func TestLead(t *testing.T) {
	w := newWorld(t)
	lead := func(o *sidecar.Options) { o.LeaderElect, o.LeaseDuration = true, 20*time.Second } // whatever the machine is busy with
	first := w.sidecar(lead)
	b1 := w.bucket(w.claim("one"))
	w.isReady(b1)
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: sidecar.Lease(w.driver.info.Name)}}
	if !w.get(lease) {
		t.Fatal("no lease")
	}
	second := w.sidecar(lead)
	b2 := w.bucket(w.claim("two"))
	w.isReady(b2)
	if got := second.writes.objects(); got != 0 {
		t.Errorf("the second wrote %v", second.writes.all())
	}
	first.stop(w)
	b3 := w.bucket(w.claim("three"))
	w.isReady(b3)
	if got := second.writes.objects(); got != 3 {
		t.Errorf("the second wrote %v", second.writes.all())
	}
	if w.driver.called("create") != 3 {
		t.Errorf("calls %v", w.driver.log())
	}
}

// A leader that loses its lease ends at once.
func TestLeadLost(t *testing.T) {
	w := newWorld(t)
	g := newGate()
	w.driver.onBefore("create", g.hold)
	c := w.sidecar(func(o *sidecar.Options) {
		o.LeaderElect, o.LeaseDuration, o.CallTimeout, o.Settle = true, 6*time.Second, time.Minute, time.Minute
	})
	w.bucket(w.claim("it"))
	<-g.arrived
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: sidecar.Lease(w.driver.info.Name)}}
	w.edit(lease, false, func() {
		who, for1h, now := "another", int32(3600), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &who, &for1h, &now
	})
	select {
	case <-c.done:
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	if c.err == nil || !strings.Contains(c.err.Error(), "leader election lost") {
		t.Errorf("it ended with %v", c.err)
	}
	c.err = nil
}

// Another program that writes the status is noticed and said, once.
func TestOtherController(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	_, b := w.readyBucket("it")
	b.Status.BucketInfo["COSI_S3_REGION"] = "elsewhere"
	if err := admin.Status().Update(w.Context(), b, client.FieldOwner("cosi-sidecar")); err != nil {
		t.Fatal(err)
	}
	w.eventually("it is said", func() bool { return w.event(b, v1alpha1.ReasonOtherController) })
	w.eventually("the status is ours again", func() bool { return w.get(b) && b.Status.BucketInfo["COSI_S3_REGION"] == "here" })
}

// An Intent that does not come to rest is said.
func TestOverdue(t *testing.T) {
	w := newWorld(t)
	w.driver.onBefore("create", fails(codes.ResourceExhausted, "the quota is used up"))
	w.sidecar(func(o *sidecar.Options) { o.Overdue = 1500 * time.Millisecond })
	b := w.bucket(w.claim("it"))
	w.eventually("it is overdue", func() bool { return condition(w.intent(b), v1alpha1.ConditionOverdue) != "" })
}

// A driver over its socket, in the dialects that a fake in this process does not speak, and one that comes late.
func TestDialects(t *testing.T) {
	for name, play := range map[string]struct {
		services wire.Services
		change   func(*sidecar.Options)
	}{
		"v1alpha1":  {wire.Services{V1alpha1: true}, func(o *sidecar.Options) { o.BucketIDTemplate, o.AccountIDTemplate = "{{.Name}}", "{{.Name}}" }},
		"one phase": {wire.Services{V1alpha2: true}, func(*sidecar.Options) {}},
		"two phase": {wire.Services{V1alpha2: true, TwoPhase: true}, func(*sidecar.Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver.twoPhase = play.services.TwoPhase
			folder, err := os.MkdirTemp("", "sc")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(folder) })
			socket := filepath.Join(folder, "s")
			w.sidecar(play.change, func(o *sidecar.Options) { o.Driver, o.Endpoint = nil, "unix://"+socket })
			claim := w.claim("it")
			b := w.bucket(claim)
			w.stays("nothing without a driver", func() bool { return w.intent(b) == nil })

			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			if err := wire.Register(server, w.driver, play.services); err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.Serve(l) }()
			t.Cleanup(server.Stop)
			w.isReady(b)
			a := w.access("it", b)
			w.isReady(a)
			if play.services.TwoPhase && w.driver.called("generate") != 2 {
				t.Errorf("calls %v", w.driver.log())
			}
			w.delete(a)
			w.gone(a)
			w.deleteBoth(claim, b)
			w.nothingLeft(b)
		})
	}
}

// What is wrong with the flags is said at start, with the flag's name, all at once.
func TestFlags(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		change func(*sidecar.Options)
		want   string
	}{
		"template that does not parse": {func(o *sidecar.Options) { o.BucketIDTemplate = "{{.Name" }, "--bucket-id-template"},
		"template of an unknown field": {func(o *sidecar.Options) { o.AccountIDTemplate = "{{.Nam}}" }, "--account-id-template"},
		"template without the name":    {func(o *sidecar.Options) { o.BucketIDTemplate = "{{.Parameters.region}}" }, "{{.Name}}"},
		"no CA file":                   {func(o *sidecar.Options) { o.CAFile = filepath.Join(folder, "none") }, "--ca-file"},
		"CA file without certificates": {func(o *sidecar.Options) { o.CAFile = file("empty", "hello") }, "no PEM certificate"},
		"CA file with a key": {func(o *sidecar.Options) {
			o.CAFile = file("key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})))
		}, "PRIVATE KEY"},
		"settle below the call timeout": {func(o *sidecar.Options) { o.Settle = time.Second }, "--settle"},
		"no call timeout":               {func(o *sidecar.Options) { o.CallTimeout = 0 }, "--call-timeout"},
		"unknown kind":                  {func(o *sidecar.Options) { o.RepeatSafe = []string{"buckets"} }, "--repeat-safe"},
		"endpoint":                      {func(o *sidecar.Options) { o.Endpoint = "http://example.com" }, "--driver-endpoint"},
		"workers":                       {func(o *sidecar.Options) { o.Workers = 0 }, "--workers"},
		"log level":                     {func(o *sidecar.Options) { o.LogLevel = "loud" }, "--log-level"},
		"two at once":                   {func(o *sidecar.Options) { o.Workers, o.CallTimeout = 0, -1 }, "--call-timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			o := sidecar.Defaults()
			if err := o.Validate(); err != nil {
				t.Fatalf("the defaults: %v", err)
			}
			c.change(&o)
			err := sidecar.Run(t.Context(), o, logr.Discard())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want it to name %s", err, c.want)
			}
		})
	}
}

// A class's certificates reach the Secret; a class's text that is none is refused.
func TestCertificates(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	_, b := w.readyBucket("its")
	a := w.access("it", b, func(a *cosi.BucketAccess) {
		a.Status.Parameters = map[string]string{sidecar.ParameterCA: "-----BEGIN PRIVATE KEY-----\neA==\n-----END PRIVATE KEY-----\n"}
	})
	w.says(a, v1alpha1.ReasonAPIRefused)
	if w.get(theirs2(a)) {
		t.Error("a Secret was made")
	}
}

// Several buckets in one access: a Secret each, each with its own bucket and the same account.
func TestSeveralBuckets(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	_, b1 := w.readyBucket("one")
	_, b2 := w.readyBucket("two")
	a := w.accessTo("it", []*cosi.Bucket{b1, b2})
	w.isReady(a)
	for i, b := range []*cosi.Bucket{b1, b2} {
		s := theirs2(a)
		s.Name = a.Name + "-" + string(rune('0'+i))
		if !w.get(s) {
			t.Fatalf("no Secret %s", s.Name)
		}
		if got := string(s.Data[cosi.KeyS3BucketID]); got != b.Status.BucketID {
			t.Errorf("Secret %s is of the bucket %s", s.Name, got)
		}
	}
	if got := w.driver.accountIDs(); !slices.Equal(got, []string{a.Status.AccountID}) {
		t.Errorf("accounts %v", got)
	}
}

// Access by ServiceAccount: the Secret has the bucket and no credentials.
func TestServiceAccountAccess(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	_, b := w.readyBucket("its")
	a := w.access("it", b, func(a *cosi.BucketAccess) {
		a.Spec.Protocol = cosi.ProtocolGCS // for which the driver gives no credentials
		a.Spec.ServiceAccountName = "web"
		a.Status.AuthenticationType = cosi.AuthenticationTypeServiceAccount
	})
	w.isReady(a)
	s := theirs2(a)
	w.get(s)
	for key := range s.Data {
		if cosi.IsCredentialKey(key) {
			t.Errorf("the Secret has %s", key)
		}
	}
	if string(s.Data[cosi.KeyProtocol]) != "GCS" {
		t.Errorf("Secret %v", s.Data)
	}
}

// panics is a backend that panics once, after the driver has made something.
type panics struct {
	provision.Backend
	done *atomic.Bool
}

func (p panics) Do(ctx context.Context, c provision.Call) provision.Answer {
	a := p.Backend.Do(ctx, c)
	if c.Op == provision.Create && p.done.CompareAndSwap(false, true) {
		panic("on purpose")
	}
	return a
}

// A panic is a crash of one name: what was called is in doubt, and found.
func TestPanic(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.driver.recovers(wire.Capabilities{DeleteByName: true, FindByName: true})
		var done atomic.Bool
		w.sidecar(func(o *sidecar.Options) {
			o.WrapBackend = func(b provision.Backend) provision.Backend { return panics{b, &done} }
		})
		o := s.want()
		w.isReady(o)
		if i := w.intent(o); !i.Spec.Doubt && i.Spec.Attempt == "" {
			w.Errorf("the call that was not heard of is forgotten: %+v", i.Spec)
		}
		w.stays("one is there", func() bool { return len(s.ids()) == 1 })
		s.drop(o)
		w.gone(o)
		w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 })
	})
}
