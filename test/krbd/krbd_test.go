//go:build ceph

package krbd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/krbd/node"
)

// alive tells whether the device takes a write.
func (m *machine) alive(t *testing.T, device string) bool {
	t.Helper()
	call[struct{}](t, m, "Begin", node.Writing{Device: device, Name: 7, Count: 1})
	return call[node.Wrote](t, m, "End", device).Error == ""
}

// TestInstance: client_addr is exactly the client that the cluster sees and that a fence shuts out. By itself: the other
// devices of the machine have the same address with another nonce. Shared clients, as maps have them without noshare,
// die together: so this test can see that.
func TestInstance(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			a, _ := machines(t)
			if shared {
				a.spec.Options = []string{"share"} // the later word counts
			}
			image, other := a.image(t, plain), a.image(t, plain)
			first, second := a.mapped(t, image.String()), a.mapped(t, other.String())
			if (first.Instance == second.Instance) != shared {
				t.Errorf("clients %s and %s", first.Instance, second.Instance)
			}
			if status := tool(t, "status", embedded.CephPool+"/"+image.Name); !strings.Contains(status, "watcher="+string(first.Instance)+" ") {
				t.Errorf("%s is not a watcher that the cluster knows: %s", first.Instance, status)
			}
			if !a.alive(t, first.Device) || !a.alive(t, second.Device) {
				t.Fatal("no writes before the fence")
			}
			_, err := a.cluster.Fencer().Fence(t.Context(), first.Instance)
			must(t, err)
			if a.alive(t, first.Device) {
				t.Error("the fenced device still writes")
			}
			if a.alive(t, second.Device) == shared {
				t.Errorf("the other device lives: %v", !shared)
			}
			must(t, a.cluster.Fencer().Lift(t.Context(), first.Instance, exclusive.Unmapped))
		})
	}
}

// TestList: what is found is what the kernel has, of this volume alone: twice mapped, beside another image and a
// snapshot.
func TestList(t *testing.T) {
	a, _ := machines(t)
	image, other := a.image(t, plain), a.image(t, plain)
	volume := image.String()
	spec := embedded.CephPool + "/" + image.Name
	tool(t, "snap", "create", spec+"@snap")
	c := a.spec.Config
	_, err := a.sh(t, fmt.Sprintf("echo '%s name=%s,secret=%s,noshare %s %s snap' > /sys/bus/rbd/add_single_major",
		cluster.Get(t).MonitorV1(), c.User, c.Key, image.Pool, image.Name))
	must(t, err)
	if devices, err := a.sh(t, "ls /sys/bus/rbd/devices"); err != nil || len(strings.Fields(devices)) != 1 {
		t.Fatalf("the snapshot's device: %q, %v", devices, err)
	}
	t.Cleanup(func() {
		_, err := a.sh(t, "cat /sys/bus/rbd/devices/*/current_snap; for d in /sys/bus/rbd/devices/*; do echo ${d##*/} > /sys/bus/rbd/remove_single_major; done")
		must(t, err)
	})
	if all := a.list(t, volume); len(all) != 0 {
		t.Errorf("a snapshot is taken for the volume: %v", all)
	}
	first, stranger, second := a.mapped(t, volume), a.mapped(t, other.String()), a.mapped(t, volume)
	all := a.list(t, volume)
	if len(all) != 2 || !slices.Contains(all, first) || !slices.Contains(all, second) {
		t.Errorf("listed %v, wanted %v and %v", all, first, second)
	}
	d := a.device(t, volume, mapper.Target{})
	for _, m := range []exclusive.Mapping{first, second} {
		if got, err := d.Find(t.Context(), volume, m.Instance); err != nil || got != m {
			t.Errorf("found %v, %v", got, err)
		}
	}
	if got, err := d.Find(t.Context(), volume, stranger.Instance); err != nil || got.Device != "" {
		t.Errorf("found by another volume's client: %v, %v", got, err)
	}
	// The number of another's device, and an instance that is gone: nothing of it is removed.
	wrong := exclusive.Mapping{Device: stranger.Device, Volume: volume, Instance: "127.0.0.1:0/1"}
	must(t, d.Unmap(t.Context(), wrong))
	if left := a.list(t, other.String()); len(left) != 1 {
		t.Errorf("another's device was removed: %v", left)
	}
	must(t, d.Unmap(t.Context(), first))
	if left := a.list(t, volume); len(left) != 1 || left[0] != second {
		t.Errorf("left %v", left)
	}
	tool(t, "rename", spec, spec+"-renamed")
	if left := a.list(t, volume); len(left) != 1 {
		t.Errorf("renamed, and left %v", left)
	}
}

// TestReach: what a device's client has seen is in its note, and where that is lost in debugfs. An epoch that it has not
// seen is not taken for seen.
func TestReach(t *testing.T) {
	a, _ := machines(t)
	volume := a.image(t, plain).String()
	d := a.device(t, volume, mapper.Target{})
	m := a.mapped(t, volume)
	epoch, err := a.cluster.Epoch(t.Context())
	must(t, err)
	must(t, d.Reach(t.Context(), m, epoch))
	_, err = a.sh(t, "rm /run/krbd/*")
	must(t, err)
	must(t, d.Reach(t.Context(), m, epoch))
	if err := d.Reach(t.Context(), m, epoch+1000); err == nil || !strings.Contains(err.Error(), "so far") {
		t.Errorf("an epoch ahead: %v", err)
	}
	// A fence of somebody else makes a new epoch, which a client sees without being asked only as its subscription goes.
	const nobody = exclusive.Instance("127.0.0.1:0/424242")
	barrier, err := a.cluster.Fencer().Fence(t.Context(), nobody)
	must(t, err)
	err = d.Reach(t.Context(), m, barrier)
	t.Logf("at once after a new epoch: %v", err)
	begin := time.Now()
	for ; err != nil && time.Since(begin) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		a.alive(t, m.Device)
		err = d.Reach(t.Context(), m, barrier)
	}
	if err != nil {
		t.Errorf("never seen: %v", err)
	}
	t.Logf("seen after %s of writing", time.Since(begin).Round(10*time.Millisecond))
	must(t, a.cluster.Fencer().Lift(t.Context(), nobody, exclusive.Unmapped))
}

// TestGrow: an image that has grown in the cluster grows in the kernel, and with it the file system, in use.
func TestGrow(t *testing.T) {
	a, _ := machines(t)
	image := a.image(t, locked)
	target := at(image.String(), "ext4")
	d := a.device(t, image.String(), target)
	m := d.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done).Map
	tool(t, "resize", "--size", "128M", embedded.CephPool+"/"+image.Name)
	must(t, d.grow(t.Context(), m))
	size, err := a.sh(t, "cat /sys/block/"+strings.TrimPrefix(m.Device, "/dev/")+"/size")
	must(t, err)
	if sectors := strings.TrimSpace(size); sectors != fmt.Sprint(128<<20/512) {
		t.Errorf("%s sectors", sectors)
	}
	_, err = a.sh(t, "dd if=/dev/zero of="+target.Path+"/large bs=1M count=90 conv=fsync") // more than it could hold before
	must(t, err)
	d.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
}
