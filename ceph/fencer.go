//go:build ceph

package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/exclusive"
)

const (
	// fenceFor is how long an entry stands: it must outlive the mapping, with nobody alive to renew it.
	fenceFor = 10 * 365 * 24 * time.Hour
	// lasting is the least that an entry must still stand to count as ours. Ceph's own last an hour.
	lasting = 365 * 24 * time.Hour
)

// seconds is written with a point: Ceph refuses a whole number where it wants a float, and Go's JSON writes 600.0 as 600.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.1f", time.Duration(s).Seconds()), nil
}

// BlocklistEntry is one entry of the cluster's blocklist.
type BlocklistEntry struct {
	Instance exclusive.Instance
	Until    time.Time
}

// Blocklist is what the cluster's blocklist had at one moment.
type Blocklist struct {
	Entries []BlocklistEntry // for single clients; those of ranges are no business of ours
	Now     time.Time        // no later than it was for the cluster
}

// Fence gives the entry of a client if it stands for years, as one that we have set, and not for an hour, as Ceph's own.
func (b Blocklist) Fence(i exclusive.Instance) (BlocklistEntry, bool) {
	for _, e := range b.Standing() {
		if e.Instance == i {
			return e, true
		}
	}
	return BlocklistEntry{}, false
}

// Standing gives the entries that stand for years. Their number is worth a metric: each is a fence that waits for its
// proof.
func (b Blocklist) Standing() []BlocklistEntry {
	all := []BlocklistEntry{}
	for _, e := range b.Entries {
		if e.Until.Sub(b.Now) > lasting {
			all = append(all, e)
		}
	}
	return all
}

// Fencer is the cluster's blocklist. It implements [exclusive.Fencer].
type Fencer struct {
	cluster *Cluster
	now     func() time.Time
}

// Fencer gives the cluster's fencer.
func (c *Cluster) Fencer() *Fencer { return &Fencer{c, time.Now} }

// Fence implements [exclusive.Fencer]. The barrier is an epoch of the osdmap that has the entry.
func (f *Fencer) Fence(ctx context.Context, i exclusive.Instance) (uint64, error) {
	address, err := exact(i)
	if err != nil {
		return 0, err
	}
	return call(ctx, f.cluster, "fence "+address, func(r *rados.Conn) (uint64, error) {
		if _, err := command(r, map[string]any{
			"prefix": "osd blocklist", "blocklistop": "add", "addr": address, "expire": seconds(fenceFor),
		}); err != nil {
			return 0, err
		}
		// The answer came after the map with the entry was committed, and this is asked after the answer.
		return epoch(r)
	})
}

// Fenced implements [exclusive.Fencer]. An entry that will expire soon is not a fence, and while it stands Fence has no
// effect.
func (f *Fencer) Fenced(ctx context.Context, i exclusive.Instance) (bool, error) {
	list, err := f.Blocklist(ctx)
	if err != nil {
		return false, err
	}
	_, ok := list.Fence(i)
	return ok, nil
}

// Lift implements [exclusive.Fencer].
func (f *Fencer) Lift(ctx context.Context, i exclusive.Instance, _ exclusive.Proof) error {
	address, err := exact(i)
	if err != nil {
		return err
	}
	_, err = call(ctx, f.cluster, "lift the fence of "+address, func(r *rados.Conn) (none, error) {
		_, err := command(r, map[string]any{"prefix": "osd blocklist", "blocklistop": "rm", "addr": address})
		if errno(err) == syscall.ENOENT {
			err = nil
		}
		return none{}, err
	})
	return err
}

// Blocklist reads the cluster's blocklist.
//
// This machine's clock may be years behind, after a reset, and an entry of an hour would look like one of years. So the
// time is the later of its own and of the moment when an OSD last came up, by the monitors' clock.
func (f *Fencer) Blocklist(ctx context.Context) (Blocklist, error) {
	return call(ctx, f.cluster, "read the blocklist", func(r *rados.Conn) (Blocklist, error) {
		text, err := command(r, map[string]any{"prefix": "osd blocklist ls", "format": "json"})
		if err != nil {
			return Blocklist{}, err
		}
		entries, err := parseBlocklist(text)
		if err != nil {
			return Blocklist{}, err
		}
		stat, err := osdStat(r)
		if err != nil {
			return Blocklist{}, err
		}
		now := f.now()
		if up := time.Unix(stat.UpSince, 0); up.After(now) {
			now = up
		}
		return Blocklist{entries, now}, nil
	})
}

// Epoch gives the newest epoch of the osdmap that the monitors have committed.
func (c *Cluster) Epoch(ctx context.Context) (uint64, error) {
	return call(ctx, c, "ask for the osdmap's epoch", epoch)
}

func epoch(r *rados.Conn) (uint64, error) {
	stat, err := osdStat(r)
	return stat.Epoch, err
}

// stat is what the monitors say of the osdmap.
type stat struct {
	Epoch   uint64 `json:"epoch"`
	UpSince int64  `json:"osd_up_since"`
}

func osdStat(r *rados.Conn) (stat, error) {
	text, err := command(r, map[string]any{"prefix": "osd stat", "format": "json"})
	if err != nil {
		return stat{}, err
	}
	var s stat
	if err := json.Unmarshal(text, &s); err != nil {
		return stat{}, fmt.Errorf("read the answer to osd stat: %w", err)
	}
	if s.Epoch == 0 {
		return stat{}, errors.New("the answer to osd stat has no epoch")
	}
	return s, nil
}

// Reach returns when this very client has seen the osdmap of that epoch. Whatever it sends afterwards is carried out by
// OSDs that have seen it too, since an OSD that is behind waits for the client's epoch.
func Reach(r *rados.Conn, barrier uint64) error {
	// The monitor first: waiting for the latest map is worth what the monitor has.
	now, err := epoch(r)
	if err != nil {
		return err
	}
	if now < barrier {
		return fmt.Errorf("the monitor is at osdmap epoch %d, and %d is to be reached: it lags, or the hold is of another cluster", now, barrier)
	}
	if err := r.WaitForLatestOSDMap(); err != nil {
		return fmt.Errorf("wait for the osdmap of epoch %d: %w", now, err)
	}
	return nil
}

// exact refuses everything but one client in the very form that the blocklist has it in.
func exact(i exclusive.Instance) (string, error) {
	plain, err := ParseInstance(string(i))
	if err == nil && plain != i {
		err = fmt.Errorf("client address %q is not in the form of the blocklist, %q", i, plain)
	}
	return string(plain), err
}

// command runs a monitor command.
func command(r *rados.Conn, asked map[string]any) ([]byte, error) {
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, fmt.Errorf("write down command %v: %w", asked["prefix"], err)
	}
	out, said, err := r.MonCommand(text)
	if err != nil {
		return nil, fmt.Errorf("%v %v: %w: %s", asked["prefix"], asked["blocklistop"], err, said)
	}
	return out, nil
}
