//go:build ceph

package krbd

import (
	"strings"
	"testing"

	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// at is where a volume is mounted in a guest.
func at(volume, fs string) mapper.Target {
	return mapper.Target{Path: "/run/at/" + strings.ReplaceAll(volume, "/", "-"), FSType: fs}
}

// read reads a file past what the guest has in memory.
func (m *machine) read(t *testing.T, path string) string {
	t.Helper()
	text, err := m.sh(t, "echo 3 > /proc/sys/vm/drop_caches; cat "+path)
	must(t, err)
	return strings.TrimSpace(text)
}

// TestStage: a volume goes from node to node in order, with its data, and never to two.
func TestStage(t *testing.T) {
	for _, fs := range []string{"ext4"} {
		t.Run(fs, func(t *testing.T) {
			a, b := machines(t)
			volume := a.image(t, locked).String()
			target := at(volume, fs)
			onA, onB := a.device(t, volume, target), b.device(t, volume, target)
			onA.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done)
			_, err := a.sh(t, "echo from-a > "+target.Path+"/data && sync")
			must(t, err)
			if got := a.read(t, target.Path+"/data"); got != "from-a" {
				t.Errorf("a reads %q", got)
			}
			onA.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done)
			onB.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Refused)
			onA.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
			if left := a.list(t, volume); len(left) > 0 {
				t.Errorf("still mapped: %v", left)
			}
			onB.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done)
			if got := b.read(t, target.Path+"/data"); got != "from-a" {
				t.Errorf("b reads %q", got)
			}
			onB.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
			list, err := a.cluster.Fencer().Blocklist(t.Context())
			must(t, err)
			for _, e := range list.Standing() {
				t.Errorf("fenced in all this: %v", e)
			}
		})
	}
}
