//go:build ceph

package mapper_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
)

// said is evidence that a test makes up.
type said exclusive.Verdict

func (s said) Judge(context.Context, exclusive.Hold) (exclusive.Verdict, error) {
	return exclusive.Verdict(s), nil
}

// run runs one request on this machine, over the real doors.
func (m *machine) run(t *testing.T, verb exclusive.Verb, volume string, verdict exclusive.Verdict) (exclusive.Memo, exclusive.Next) {
	t.Helper()
	return m.manager(volume, verdict).Run(t.Context(), m.request(verb, volume), exclusive.Memo{})
}

func (m *machine) request(verb exclusive.Verb, volume string) exclusive.Request {
	return exclusive.Request{Verb: verb, Volume: volume, Me: m.who, Format: true}
}

func (m *machine) manager(volume string, verdict exclusive.Verdict) *exclusive.Manager {
	begin := time.Now()
	return &exclusive.Manager{
		Registry: m.cluster.Registry(), Fencer: m.cluster.Fencer(), Evidence: said(verdict), Device: m.device(volume),
		Now: func() time.Duration { return time.Since(begin) }, First: 50 * time.Millisecond, Max: time.Second,
	}
}

func (m *machine) expect(t *testing.T, verb exclusive.Verb, volume string, verdict exclusive.Verdict, want exclusive.Kind) exclusive.Memo {
	t.Helper()
	begin := time.Now()
	memo, next := m.run(t, verb, volume, verdict)
	if next.Kind != want {
		t.Fatalf("verb %d on %s: %+v, wanted kind %d; hold %+v", verb, m.who.Node, next, want, memo.Hold)
	}
	t.Logf("verb %d on %s: %s", verb, m.who.Node, time.Since(begin).Round(time.Millisecond))
	return memo
}

func (m *machine) file(volume, name string) string {
	return filepath.Join(m.device(volume).Target.Path, name)
}

// writeSynced is what a workload does: the data are in the cluster when it returns nil.
func writeSynced(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestStageAndGiveBack: a volume goes from node to node in order, with its data.
func TestStageAndGiveBack(t *testing.T) {
	a, b := newMachine(t, "a"), newMachine(t, "b")
	volume := a.image(t).String()
	a.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done)
	must(t, writeSynced(a.file(volume, "data"), "from a"))
	a.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done)
	a.expect(t, exclusive.Check, volume, exclusive.Alive, exclusive.Done)
	memo := b.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Refused)
	if memo.Hold.Who != a.who {
		t.Errorf("held by %+v", memo.Hold.Who)
	}
	a.expect(t, exclusive.Unstage, volume, exclusive.Alive, exclusive.Done)
	b.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done)
	if text, err := os.ReadFile(b.file(volume, "data")); err != nil || string(text) != "from a" {
		t.Errorf("b reads %q, %v", text, err)
	}
	b.expect(t, exclusive.Unstage, volume, exclusive.Alive, exclusive.Done)
	if list, err := a.cluster.Fencer().Blocklist(t.Context()); err != nil || len(list.Standing()) > 0 {
		t.Errorf("fenced in all this: %v, %v", list, err)
	}
}

// TestTakeOver: the owner is alive, was killed, or is paused and wakes after the take-over. It writes no byte more, its
// other volume is unharmed, its fence is lifted when it gives back, and not before.
func TestTakeOver(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"alive": 0, "killed": syscall.SIGKILL, "paused": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			a, b, ctx := newMachine(t, "a"), newMachine(t, "b"), t.Context()
			volume, other := a.image(t).String(), a.image(t).String()
			a.expect(t, exclusive.Stage, other, exclusive.Alive, exclusive.Done)
			owner := a.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done).Map
			must(t, writeSynced(a.file(volume, "before"), "acknowledged"))
			pid, err := a.fuse.Process(owner)
			must(t, err)
			if signal != 0 {
				must(t, syscall.Kill(pid, signal))
			}
			// A write that is under way when the owner stops, and goes on when it wakes.
			late := make(chan error, 1)
			if name == "paused" {
				go func() { late <- writeSynced(a.file(volume, "late"), "too late") }()
			}
			b.expect(t, exclusive.Stage, volume, exclusive.Silent, exclusive.Done)
			must(t, writeSynced(b.file(volume, "after"), "from b"))
			if signal == syscall.SIGSTOP {
				must(t, syscall.Kill(pid, syscall.SIGCONT))
				if err := <-late; err == nil {
					t.Error("the old owner's late write was acknowledged")
				}
			}
			if err := writeSynced(a.file(volume, "again"), "no"); err == nil {
				t.Error("the old owner still writes")
			}
			must(t, writeSynced(a.file(other, "data"), "unharmed"))
			if text, err := os.ReadFile(b.file(volume, "before")); err != nil || string(text) != "acknowledged" {
				t.Errorf("an acknowledged write is lost: %q, %v", text, err)
			}
			for _, gone := range []string{"late", "again"} {
				if _, err := os.Stat(b.file(volume, gone)); !os.IsNotExist(err) {
					t.Errorf("%s: %v", gone, err)
				}
			}

			fenced := func() bool {
				t.Helper()
				ok, err := a.cluster.Fencer().Fenced(ctx, owner.Instance)
				must(t, err)
				return ok
			}
			if !fenced() {
				t.Error("the old owner is not fenced")
			}
			a.expect(t, exclusive.Check, volume, exclusive.Alive, exclusive.Gone)
			b.expect(t, exclusive.Sweep, volume, exclusive.Alive, exclusive.Done)
			if !fenced() {
				t.Error("lifted by another machine")
			}
			a.expect(t, exclusive.Unstage, volume, exclusive.Alive, exclusive.Done)
			if fenced() {
				t.Error("not lifted although the owner has unmapped")
			}
			if left, err := a.cluster.Registry().Fences(ctx, volume); err != nil || len(left) > 0 {
				t.Errorf("still listed: %v, %v", left, err)
			}
			must(t, writeSynced(b.file(volume, "after"), "from b"))
			b.expect(t, exclusive.Unstage, volume, exclusive.Alive, exclusive.Done)
			a.expect(t, exclusive.Unstage, other, exclusive.Alive, exclusive.Done)
		})
	}
}

// TestStageRace: many stagers on two nodes, and one wins, each time.
func TestStageRace(t *testing.T) {
	a, b := newMachine(t, "a"), newMachine(t, "b")
	volume := a.image(t).String()
	for round := range 3 {
		var wg sync.WaitGroup
		kinds := make([]exclusive.Kind, 2)
		for n, m := range []*machine{a, b} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				_, next := m.run(t, exclusive.Stage, volume, exclusive.Alive)
				kinds[n] = next.Kind
			}()
		}
		wg.Wait()
		if (kinds[0] == exclusive.Done) == (kinds[1] == exclusive.Done) {
			t.Fatalf("round %d: %v", round, kinds)
		}
		for n, m := range []*machine{a, b} {
			if kinds[n] == exclusive.Done {
				m.expect(t, exclusive.Unstage, volume, exclusive.Alive, exclusive.Done)
			} else if left, err := m.device(volume).Other(t.Context(), volume, ""); err != nil || left.Device != "" {
				t.Errorf("the loser has a device: %+v, %v", left, err)
			}
		}
	}
}

// TestNodeComesBack: a machine that reboots takes its own volume without a fence, and lifts the fences of its earlier
// boot; one whose plugin restarts goes on with its device.
func TestNodeComesBack(t *testing.T) {
	a, ctx := newMachine(t, "a"), t.Context()
	volume := a.image(t).String()
	first := a.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done).Map
	a.expect(t, exclusive.Sweep, volume, exclusive.Alive, exclusive.Done)
	if again := a.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done).Map; again != first {
		t.Errorf("mapped anew: %+v, then %+v", first, again)
	}
	// A boot takes mounts, loop devices and servers away.
	pid, err := a.fuse.Process(first)
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	must(t, a.device(volume).Withdraw(ctx, volume))
	must(t, a.device(volume).Unmap(ctx, first))
	a.who.Boot = "boot-2"
	a.expect(t, exclusive.Stage, volume, exclusive.Alive, exclusive.Done)
	a.expect(t, exclusive.Unstage, volume, exclusive.Alive, exclusive.Done)
	if list, err := a.cluster.Fencer().Blocklist(ctx); err != nil || len(list.Standing()) > 0 {
		t.Errorf("fenced in all this: %v, %v", list, err)
	}
}

const (
	proofBlocks = 256
	blockSize   = 4096
)

// proofWriter writes blocks with its name and a number that grows, all the time, by a client of its own.
type proofWriter struct {
	image    *rbd.Image
	instance exclusive.Instance
	name     uint64
	acked    [proofBlocks]uint64 // the last number that was acknowledged, by block
	pause    chan chan struct{}
	done     chan error
}

func (m *machine) proofWriter(t *testing.T, i ceph.Image, name uint64) *proofWriter {
	t.Helper()
	config, err := m.cluster.Config()
	must(t, err)
	r, instance, err := ceph.Dial(config, map[string]string{"rbd_cache": "false"})
	must(t, err)
	t.Cleanup(r.Shutdown)
	io, err := r.OpenIOContext(i.Pool)
	must(t, err)
	t.Cleanup(io.Destroy)
	image, err := rbd.OpenImageById(io, i.ID, rbd.NoSnapshot)
	must(t, err)
	t.Cleanup(func() { _ = image.Close() }) // one that is fenced closes with an error
	return &proofWriter{image: image, instance: instance, name: name, pause: make(chan chan struct{}), done: make(chan error, 1)}
}

// run writes until it fails or is told to end.
func (w *proofWriter) run(until <-chan struct{}) {
	block := make([]byte, blockSize)
	for n := uint64(1); ; n++ {
		select {
		case <-until:
			w.done <- nil
			return
		case resume := <-w.pause:
			<-resume
		default:
		}
		at := n % proofBlocks
		binary.LittleEndian.PutUint64(block, w.name)
		binary.LittleEndian.PutUint64(block[8:], n)
		if _, err := w.image.WriteAt(block, int64(at*blockSize)); err != nil {
			w.done <- err
			return
		}
		w.acked[at] = n
	}
}

// blocks reads who wrote each block, and its number.
func (w *proofWriter) blocks(t *testing.T) (names, numbers [proofBlocks]uint64) {
	t.Helper()
	all := make([]byte, proofBlocks*blockSize)
	if _, err := w.image.ReadAt(all, 0); err != nil {
		t.Fatal(err)
	}
	for n := range proofBlocks {
		names[n] = binary.LittleEndian.Uint64(all[n*blockSize:])
		numbers[n] = binary.LittleEndian.Uint64(all[n*blockSize+8:])
	}
	return names, numbers
}

// TestDataPath: a writer that is held back in the middle, a take-over, the new owner's blocks, and the writer goes on.
// With the fence not one block of it lands; without, they do, so that this test can see them.
func TestDataPath(t *testing.T) {
	for _, fence := range []bool{true, false} {
		t.Run(fmt.Sprintf("fence=%v", fence), func(t *testing.T) {
			a, b, ctx := newMachine(t, "a"), newMachine(t, "b"), t.Context()
			for range 5 {
				i := plainImage(t, a)
				old := a.proofWriter(t, i, 1)
				until := make(chan struct{})
				go old.run(until)
				time.Sleep(100 * time.Millisecond) // it writes
				resume := make(chan struct{})
				old.pause <- resume
				before := old.acked
				next := b.proofWriter(t, i, 2)
				if fence {
					barrier, err := b.cluster.Fencer().Fence(ctx, old.instance)
					must(t, err)
					ok, err := b.cluster.Fencer().Fenced(ctx, old.instance)
					if err != nil || !ok {
						t.Fatal(ok, err)
					}
					must(t, b.reach(t, barrier))
				}
				_, numbers := next.blocks(t)
				for n := range proofBlocks {
					if numbers[n] < before[n] {
						t.Errorf("block %d: the write %d was acknowledged, and %d is there", n, before[n], numbers[n])
					}
				}
				block := bytes.Repeat([]byte{2, 0, 0, 0, 0, 0, 0, 0}, blockSize/8)
				for n := range proofBlocks {
					_, err := next.image.WriteAt(block, int64(n*blockSize))
					must(t, err)
				}
				close(resume)
				time.Sleep(200 * time.Millisecond)
				close(until)
				err := <-old.done
				if fence == (err == nil) {
					t.Errorf("the old writer ended with %v", err)
				}
				names, _ := next.blocks(t)
				landed := 0
				for _, name := range names {
					if name == old.name {
						landed++
					}
				}
				t.Logf("%d of %d blocks are the old writer's", landed, proofBlocks)
				if fence && landed > 0 {
					t.Errorf("%d blocks of the old writer landed", landed)
				}
				if !fence && landed == 0 {
					t.Error("without a fence nothing landed: this test would not see a fault")
				}
			}
		})
	}
}

// reach waits on a client of its own, as a new device does on its own.
func (m *machine) reach(t *testing.T, barrier uint64) error {
	return ceph.Reach(m.dial(t), barrier)
}

// plainImage has no exclusive lock: only the fence keeps the old writer out, and two write at once where it is off.
func plainImage(t *testing.T, m *machine) ceph.Image {
	t.Helper()
	i := ceph.Image{Pool: embedded.CephPool, Name: fmt.Sprintf("plain%d", names.Add(1))}
	sh(t, "rbd", "--conf", cluster.Get(t).Conf(), "create", i.Pool+"/"+i.Name, "--size", "16M", "--image-feature", "layering")
	found, err := m.cluster.Registry().Image(t.Context(), i.Pool, "", i.Name)
	must(t, err)
	return found
}
