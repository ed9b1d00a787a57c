//go:build ceph

package holds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/cephtest"
	"github.com/custody-storage/custody/exclusive"
)

var (
	server cephtest.Cluster
	names  atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

// world is the cluster, a client for people, and a way to write what nodes write.
type world struct {
	t       *testing.T
	ceph    *embedded.Ceph
	cluster *ceph.Cluster
	raw     *rados.Conn
	client  Client
	file    string
}

func newWorld(t *testing.T, more string) *world {
	t.Helper()
	c := server.Get(t)
	dir := t.TempDir()
	config := ceph.Config{ID: "test", Monitors: c.Monitors(), User: fmt.Sprintf("holds%d", names.Add(1)), KeyFile: filepath.Join(dir, "key"), Timeout: 10 * time.Second}
	key, err := c.Auth(t.Context(), "client."+config.User, ceph.Caps(ceph.Node, embedded.CephPool))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ceph: c, file: filepath.Join(dir, "clusters.yaml")}
	text := fmt.Sprintf("clusters:\n- id: test\n  monitors: %q\n  pools: [%s]\n  node: {user: %s, keyFile: %s}\n%s", config.Monitors, embedded.CephPool, config.User, config.KeyFile, more)
	if err := errors.Join(os.WriteFile(config.KeyFile, []byte(key), 0o600), os.WriteFile(w.file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	if w.cluster, err = ceph.Open(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cluster.Close)
	w.raw, _ = w.dial()
	if w.client, err = Open(w.file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	return w
}

// dial makes a client of the cluster and gives its instance.
func (w *world) dial() (*rados.Conn, exclusive.Instance) {
	w.t.Helper()
	config, err := w.cluster.Config()
	if err != nil {
		w.t.Fatal(err)
	}
	conn, instance, err := ceph.Dial(config, map[string]string{"rados_osd_op_timeout": "20"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(conn.Shutdown)
	return conn, instance
}

func (w *world) write(conn *rados.Conn, object, text string) error {
	io, err := conn.OpenIOContext(embedded.CephPool)
	if err != nil {
		return err
	}
	defer io.Destroy()
	return io.WriteFull(object, []byte(text))
}

// image makes an image with this hold; with State None it has none.
func (w *world) image(name string, h exclusive.Hold) ceph.Image {
	w.t.Helper()
	if _, err := w.ceph.Run(w.t.Context(), "rbd", "create", "--size", "8M", embedded.CephPool+"/"+name); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { // another run of the tests makes it again
		if _, err := w.ceph.Run(context.Background(), "rbd", "rm", "--no-progress", embedded.CephPool+"/"+name); err != nil {
			w.t.Error(err)
		}
	})
	i, err := w.cluster.Registry().Image(w.t.Context(), embedded.CephPool, "", name)
	if err != nil {
		w.t.Fatal(err)
	}
	if h.State != exclusive.None {
		h.Volume = i.String()
		if _, err := w.cluster.Registry().Swap(w.t.Context(), h); err != nil {
			w.t.Fatal(err)
		}
	}
	return i
}

func (w *world) beat(who exclusive.Who) *ceph.Heart {
	w.t.Helper()
	h := w.cluster.Heart(embedded.CephPool, "", who)
	if err := h.Beat(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.cluster.Forget(context.Background(), embedded.CephPool, "", who.Machine); err != nil {
			w.t.Error(err)
		}
	})
	return h
}

func (w *world) stands(i exclusive.Instance) bool {
	w.t.Helper()
	// By the cluster's own list, not by our reading of it.
	texts, err := w.ceph.Mon(w.t.Context(), map[string]any{"prefix": "osd blocklist ls", "format": "json"})
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Contains(texts[0], `"`+string(i)+`"`)
}

func who(node, boot string) exclusive.Who {
	return exclusive.Who{Machine: "uuid-of-" + node, Node: node, Boot: boot}
}

func TestListsEachState(t *testing.T) {
	w := newWorld(t, "")
	before := time.Now().Add(-time.Minute)
	w.beat(who("ls-a", "boot1"))
	w.beat(who("ls-b", "boot9"))
	w.image("ls-none", exclusive.Hold{})
	w.image("ls-free", exclusive.Hold{State: exclusive.Free})
	w.image("ls-claimed", exclusive.Hold{State: exclusive.Claimed, Who: who("ls-a", "boot1"), Epoch: 4})
	w.image("ls-opaque", exclusive.Hold{State: exclusive.Opaque, Who: who("ls-a", "boot1"), Epoch: 5})
	mapped := w.image("ls-mapped", exclusive.Hold{State: exclusive.Mapped, Who: who("ls-b", "boot1"), Instance: "10.9.0.1:0/77", Epoch: 6, Formatted: true})
	w.image("ls-fencing", exclusive.Hold{State: exclusive.Fencing, Who: who("ls-c", "boot1"), Instance: "10.9.0.1:0/78", Epoch: 7, Fencer: "ls-a"})
	garbage, newer := w.image("ls-garbage", exclusive.Hold{}), w.image("ls-newer", exclusive.Hold{})
	fence := exclusive.Fence{Instance: "10.9.0.1:0/70", Who: who("ls-d", "boot1")}
	if err := errors.Join(w.write(w.raw, "custody.hold."+garbage.ID, "\x00\x1b[2J"), w.write(w.raw, "custody.hold."+newer.ID, `{"format":2}`),
		w.cluster.Registry().List(t.Context(), mapped.String(), fence)); err != nil {
		t.Fatal(err)
	}
	rows, err := w.client.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range rows {
		if !strings.HasPrefix(r.Image, "ls-") {
			continue
		}
		got[r.Image] = r.State + " " + r.Node + " " + r.Heartbeat.State
		if r.Since == nil || r.Since.Before(before) || r.Since.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s: since %v", r.Image, r.Since)
		}
	}
	want := map[string]string{
		"ls-free": "free  ", "ls-claimed": "claimed ls-a thisBoot", "ls-opaque": "opaque ls-a thisBoot", "ls-mapped": "mapped ls-b otherBoot",
		"ls-fencing": "fencing ls-c missing", "ls-garbage": "unreadable  ", "ls-newer": "unreadable  ",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v\nwant   %v", got, want)
	}
	for _, tc := range []struct {
		f    Filter
		want string
	}{
		{Filter{Node: "ls-a"}, "ls-claimed ls-opaque"},
		{Filter{Node: "ls-d"}, "ls-mapped"}, // fenced from
		{Filter{State: "none", Pool: embedded.CephPool}, "ls-none"},
		{Filter{State: "fencing"}, "ls-fencing"},
		{Filter{Pool: "other"}, ""},
	} {
		rows, err := w.client.List(t.Context(), tc.f)
		names := []string{}
		for _, r := range rows {
			if strings.HasPrefix(r.Image, "ls-") {
				names = append(names, r.Image)
			}
		}
		if err != nil || strings.Join(names, " ") != tc.want {
			t.Errorf("%+v: %v, %v; want %s", tc.f, names, err, tc.want)
		}
	}
	for name, says := range map[string][]string{
		"ls-none": {"There is no hold"}, "ls-free": {"Nobody holds it", "nothing was ever written", "It can be"},
		"ls-claimed": {"Node ls-a is about to map it", "same boot"}, "ls-opaque": {"a client that nobody knows", "Reboot node ls-a"},
		"ls-mapped":  {"Node ls-b holds it", "10.9.0.1:0/77", "booted again since", "10.9.0.1:0/70 of node ls-d is on the list of fences, and no entry"},
		"ls-fencing": {"ls-a is fencing node ls-c", "custody fence test:rbd/ls-fencing"}, "ls-garbage": {"can't be read", "Garbage"},
		"ls-newer": {"format 2", "upgrade this program"},
	} {
		text := w.explain(name)
		for _, s := range says {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %q is not in:\n%s", name, s, text)
			}
		}
		if strings.ContainsAny(text, "\x00\x1b") {
			t.Errorf("%s: control characters: %q", name, text)
		}
	}
	for _, name := range []string{"rbd/ls-mapped", "test:rbd/ls-mapped", mapped.ID, mapped.String(), "test/rbd//ls-mapped"} {
		if r, err := w.client.Find(t.Context(), name, Filter{}); err != nil || r.Image != "ls-mapped" {
			t.Errorf("%s: %q, %v", name, r.Image, err)
		}
	}
	if _, err := w.client.Find(t.Context(), "ls-nothing", Filter{}); err == nil || !strings.Contains(err.Error(), "no image") {
		t.Errorf("what is not there: %v", err)
	}
}

func (w *world) explain(name string) string {
	w.t.Helper()
	r, err := w.client.Find(w.t.Context(), name, Filter{})
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Explain(time.Now()).WriteText(&b); err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// TestUnreachable: one cluster that does not answer hides nothing of the other, and is named.
func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("AQBPZGtnAAAAABAA4Y7w3sX1e0Ew5Yp0xw8d0A=="), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "- {id: away, monitors: '127.0.0.1:1', pools: [rbd], timeout: 2s, node: {user: x, keyFile: "+key+"}}\n")
	w.image("un-free", exclusive.Hold{State: exclusive.Free})
	start := time.Now()
	rows, err := w.client.List(t.Context(), Filter{})
	if err == nil || !strings.Contains(err.Error(), "away") || !slices.ContainsFunc(rows, func(r Row) bool { return r.Image == "un-free" }) {
		t.Errorf("rows %v, error %v", rows, err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
	if _, err := w.client.Find(t.Context(), "un-free", Filter{}); err == nil {
		t.Error("an image was found by its bare name though a cluster that may have it too was not read")
	}
	if _, err := w.client.Find(t.Context(), "un-free", Filter{Cluster: "test"}); err != nil {
		t.Errorf("in the cluster that answers: %v", err)
	}
}

// TestFence: the recorded client, which writes until then, is shut out, and the hold is free.
func TestFence(t *testing.T) {
	w := newWorld(t, "")
	owner, instance := w.dial()
	w.image("fe-mapped", exclusive.Hold{State: exclusive.Mapped, Who: who("fe-a", "boot1"), Instance: instance, Epoch: 3, Formatted: true})
	w.image("fe-opaque", exclusive.Hold{State: exclusive.Opaque, Who: who("fe-a", "boot1")})
	free := w.image("fe-free", exclusive.Hold{State: exclusive.Free})
	if err := w.write(owner, "fe-data", "x"); err != nil {
		t.Fatal(err)
	}
	row := w.find("fe-mapped")
	done, err := w.client.Fence(t.Context(), row)
	if err != nil || done.Instance != string(instance) || done.Barrier == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if !w.stands(instance) {
		t.Error("the entry does not stand")
	}
	if err := w.write(w.raw, "fe-data", "after the barrier"); err != nil {
		t.Fatal(err)
	}
	if err := w.write(owner, "fe-data", "y"); err == nil {
		t.Error("the fenced client still writes")
	}
	after := w.find("fe-mapped")
	if after.State != "free" || after.Epoch != done.Epoch || !after.Formatted || len(after.Fences) != 1 || !after.Fences[0].Standing {
		t.Errorf("afterwards %+v", after)
	}
	if _, err := w.client.Fence(t.Context(), row); err == nil || !strings.Contains(err.Error(), "nothing was taken") {
		t.Errorf("from an old look: %v", err)
	}
	if _, err := w.client.Fence(t.Context(), w.find("fe-free")); err == nil || !strings.Contains(err.Error(), "nobody holds it") {
		t.Errorf("what is free: %v", err)
	}
	if _, err := w.client.Fence(t.Context(), w.find("fe-opaque")); err == nil || !strings.Contains(err.Error(), "new boot") {
		t.Errorf("what is opaque: %v", err)
	}
	if h, err := w.cluster.Registry().Load(t.Context(), free.String()); err != nil || h.Epoch != 0 {
		t.Errorf("the free hold was touched: %+v, %v", h, err)
	}
}

func (w *world) find(name string) Row {
	w.t.Helper()
	r, err := w.client.Find(w.t.Context(), name, Filter{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) plan(l Lift) Lifting {
	w.t.Helper()
	all, err := w.client.Plan(w.t.Context(), l)
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

// TestLift: refused without proof, the entry standing; lifted once the machine shows that it lives in another boot.
func TestLift(t *testing.T) {
	w := newWorld(t, "")
	_, instance := w.dial()
	i := w.image("li-vol", exclusive.Hold{State: exclusive.Mapped, Who: who("li-a", "boot1"), Instance: instance, Formatted: true})
	refused := func(what, says string) {
		t.Helper()
		l := w.plan(Lift{Volume: "li-vol", Listen: time.Second})
		err := w.client.Lift(t.Context(), l, "")
		if err == nil || !strings.Contains(err.Error(), says) || l.Proof != "" {
			t.Errorf("%s: %+v, %v", what, l, err)
		}
		if !w.stands(instance) {
			t.Errorf("%s: the entry is gone", what)
		}
	}
	if _, err := w.client.Fence(t.Context(), w.find("li-vol")); err != nil {
		t.Fatal(err)
	}
	refused("no heartbeat", "no heartbeat")
	old := w.beat(who("li-a", "boot1"))
	refused("the same boot", "still in the boot")
	w.beat(who("li-a", "boot2"))
	refused("another boot that does not move", "did not move")
	if err := old.Beat(t.Context()); !errors.Is(err, ceph.ErrTwin) { // the fenced boot is back: no proof in what comes before
		t.Fatal(err)
	}
	refused("the old boot again", "still in the boot")

	heart, stop := w.beat(who("li-a", "boot2")), make(chan struct{})
	beaten := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				beaten <- nil
				return
			case <-time.After(50 * time.Millisecond):
				if err := heart.Beat(t.Context()); err != nil {
					beaten <- err
					return
				}
			}
		}
	}()
	l := w.plan(Lift{Instance: string(instance), Listen: 20 * time.Second})
	close(stop)
	if err := <-beaten; err != nil {
		t.Fatal(err)
	}
	if l.Proof != rebooted {
		t.Fatalf("no proof: %+v", l)
	}
	// Since then somebody has taken the client up again in the hold: the proof does not help.
	r := w.cluster.Registry()
	h, err := r.Load(t.Context(), i.String())
	if err != nil {
		t.Fatal(err)
	}
	free := h
	h.State, h.Instance, h.Who = exclusive.Fencing, instance, who("li-a", "boot1")
	if free.Rev, err = r.Swap(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Lift(t.Context(), l, "because"); err == nil || !strings.Contains(err.Error(), "names this very client") || !w.stands(instance) {
		t.Errorf("a client that the hold names: %v", err)
	}
	if _, err := r.Swap(t.Context(), free); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Lift(t.Context(), l, ""); err != nil || w.stands(instance) {
		t.Errorf("with proof: %v; stands: %v", err, w.stands(instance))
	}
	if got := w.find("li-vol"); len(got.Fences) != 0 || len(got.Words) != 0 {
		t.Errorf("afterwards: %+v", got)
	}
	if _, err := w.client.Plan(t.Context(), Lift{Instance: string(instance)}); err == nil || !strings.Contains(err.Error(), "not Custody's") {
		t.Errorf("lifted already: %v", err)
	}
}

// TestLiftForced: a reason takes the place of proof, and is found later. What is not Custody's stays.
func TestLiftForced(t *testing.T) {
	w := newWorld(t, "")
	_, instance := w.dial()
	w.image("fo-vol", exclusive.Hold{State: exclusive.Mapped, Who: who("fo-a", "boot1"), Instance: instance})
	if _, err := w.client.Fence(t.Context(), w.find("fo-vol")); err != nil {
		t.Fatal(err)
	}
	l := w.plan(Lift{Volume: "fo-vol"})
	if err := w.client.Lift(t.Context(), l, "  "); err == nil || !w.stands(instance) {
		t.Errorf("without a reason: %v", err)
	}
	if err := w.client.Lift(t.Context(), l, "scrapped, ticket 42"); err != nil || w.stands(instance) {
		t.Errorf("with a reason: %v", err)
	}
	if text := w.explain("fo-vol"); !strings.Contains(text, "ticket 42") || !strings.Contains(text, string(instance)) {
		t.Errorf("the reason is not found later:\n%s", text)
	}
	const theirs = "10.7.7.7:0/4711"
	if _, err := w.ceph.Mon(t.Context(), map[string]any{"prefix": "osd blocklist", "blocklistop": "add", "addr": theirs, "expire": json.Number("3600.0")}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Plan(t.Context(), Lift{Instance: theirs}); err == nil || !strings.Contains(err.Error(), "not Custody's") || !w.stands(theirs) {
		t.Errorf("an entry of Ceph's own: %v", err)
	}
	_, orphan := w.dial()
	if _, err := w.cluster.Fencer().Fence(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	o := w.plan(Lift{Instance: string(orphan)})
	if err := w.client.Lift(t.Context(), o, ""); err == nil || !w.stands(orphan) {
		t.Errorf("no list has it: %v", err)
	}
	if err := w.client.Lift(t.Context(), o, "image removed"); err != nil || w.stands(orphan) {
		t.Errorf("no list has it, with a reason: %v", err)
	}
}
