//go:build ceph

package holds

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

const (
	rebooted = "rebooted"
	// lookAgain is the time between two looks at a heartbeat.
	lookAgain = 500 * time.Millisecond
)

func (c *client) Plan(ctx context.Context, l Lift) ([]Lifting, error) {
	all, err := c.listed(ctx, l)
	if err != nil {
		return nil, err
	}
	for _, entry := range c.clusters.Clusters {
		mine := []*Lifting{}
		for n := range all {
			if all[n].Cluster == entry.ID && all[n].Refused == "" && all[n].Machine != "" {
				mine = append(mine, &all[n])
			}
		}
		if err := c.prove(ctx, entry, l.Listen, mine); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// listed finds the fences that are meant.
func (c *client) listed(ctx context.Context, l Lift) ([]Lifting, error) {
	rows := []Row{}
	if l.Volume != "" {
		row, err := c.Find(ctx, l.Volume, Filter{Cluster: l.Cluster})
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	} else {
		instance, err := ceph.ParseInstance(l.Instance)
		if err != nil {
			return nil, err
		}
		l.Instance = string(instance)
		if rows, err = c.List(ctx, Filter{Cluster: l.Cluster}); err != nil {
			return nil, fmt.Errorf("not all lists of fences could be read, and nothing was lifted: %w", err)
		}
	}
	all := []Lifting{}
	for _, r := range rows {
		for _, f := range r.Fences {
			if l.Instance != "" && f.Instance != l.Instance {
				continue
			}
			all = append(all, Lifting{Cluster: r.Cluster, Volume: r.Spec(), Fence: f, Refused: r.names(f.Instance), volume: r.volume})
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case l.Volume != "":
		return nil, fmt.Errorf("no fence is listed for %s: there is nothing to lift", rows[0].Spec())
	}
	return c.unlisted(ctx, l)
}

// names says why a fence can't be lifted while the hold is as it is.
func (r Row) names(instance string) string {
	switch {
	case r.Error != "":
		return "the hold can't be read, so nobody can tell whether it names this client: " + r.Error
	case r.Instance == instance:
		return fmt.Sprintf("the hold is %s and names this very client: the volume was not given back or taken yet", r.State)
	}
	return ""
}

// unlisted finds an entry that no list has, as that of an image that was removed.
func (c *client) unlisted(ctx context.Context, l Lift) ([]Lifting, error) {
	for _, entry := range c.clusters.Clusters {
		if l.Cluster != "" && l.Cluster != entry.ID {
			continue
		}
		cluster, err := c.connect(entry.ID, ceph.Node)
		if err != nil {
			return nil, err
		}
		list, err := cluster.Fencer().Blocklist(ctx)
		if err != nil {
			return nil, err
		}
		if _, stands := list.Fence(exclusive.Instance(l.Instance)); stands {
			return []Lifting{{Cluster: entry.ID, Fence: Fence{Instance: l.Instance, Standing: true},
				Lacks: "no list of fences has this client, so it is not known which machine it was on"}}, nil
		}
	}
	return nil, fmt.Errorf("no list of fences has client %s, and no entry of years stands for it: it is not Custody's to lift", l.Instance)
}

// prove listens until each machine has shown that it lives in another boot, or for as long as was asked.
func (c *client) prove(ctx context.Context, entry ceph.Entry, listen time.Duration, all []*Lifting) error {
	if len(all) == 0 {
		return nil
	}
	cluster, err := c.connect(entry.ID, ceph.Node)
	if err != nil {
		return err
	}
	beats := cluster.Beats(entry.HeartbeatPool(), "")
	first, err := beats(ctx)
	if err != nil {
		return err
	}
	last := first
	for end := time.Now().Add(listen); ; {
		open := false
		for _, l := range all {
			l.judge(first[l.Machine], last[l.Machine], listen)
			open = open || l.Proof == "" && first[l.Machine].Boot != "" && first[l.Machine].Boot != l.Boot
		}
		if !open || time.Now().After(end) {
			return nil
		}
		if err := pause(ctx, lookAgain); err != nil {
			return err
		}
		if last, err = beats(ctx); err != nil {
			return err
		}
	}
}

// judge takes two looks at the heartbeat of the fenced machine. One look proves nothing: it may be the late beat of a
// boot that was over before the fenced one.
func (l *Lifting) judge(first, last ceph.Beat, listen time.Duration) {
	switch {
	case last.Boot == "":
		l.Lacks = fmt.Sprintf("machine %s (node %s) has no heartbeat, so nothing proves that it does not write any more", l.Machine, l.Node)
	case last.Boot == l.Boot:
		l.Lacks = fmt.Sprintf("node %s is still in the boot in which it was fenced. When its device is unmapped its node plugin lifts the fence by itself", l.Node)
	case first.Boot == last.Boot && last.Count > first.Count:
		l.Proof, l.Lacks = rebooted, ""
	default:
		l.Lacks = fmt.Sprintf("the heartbeat of node %s is of another boot, but did not move within %s", l.Node, listen)
	}
}

func (c *client) Lift(ctx context.Context, l Lifting, reason string) error {
	switch {
	case l.Refused != "":
		return fmt.Errorf("the fence of %s is not lifted: %s", l.Instance, l.Refused)
	case l.Proof == "" && strings.TrimSpace(reason) == "":
		return fmt.Errorf("the fence of %s is not lifted: %s", l.Instance, l.Lacks)
	}
	cluster, err := c.connect(l.Cluster, ceph.Node)
	if err != nil {
		return err
	}
	f := exclusive.Fence{Instance: exclusive.Instance(l.Instance), Who: exclusive.Who{Machine: l.Machine, Node: l.Node, Boot: l.Boot}}
	if err := still(ctx, cluster, l, f); err != nil {
		return err
	}
	proof := exclusive.Rebooted
	if l.Proof == "" {
		proof = exclusive.Unmapped // by the word of whoever gave the reason
		if err := c.keep(ctx, cluster, l, reason); err != nil {
			return fmt.Errorf("the fence of %s is not lifted: %w", l.Instance, err)
		}
	}
	fencer := cluster.Fencer()
	if err := fencer.Lift(ctx, f.Instance, proof); err != nil {
		return err
	}
	if l.volume == "" {
		return nil
	}
	if err := cluster.Registry().Unlist(ctx, l.volume, f); err != nil {
		return err
	}
	return fencer.Lift(ctx, f.Instance, proof) // once more: a fencer that slept may have fenced in between
}

// still reads the list and after it the hold, as package exclusive does before it lifts: a hold that does not name the
// client then never will again.
func still(ctx context.Context, cluster *ceph.Cluster, l Lifting, f exclusive.Fence) error {
	if l.volume == "" {
		return nil
	}
	r := cluster.Registry()
	fences, err := r.Fences(ctx, l.volume)
	if err != nil {
		return err
	}
	if !slices.Contains(fences, f) {
		return fmt.Errorf("the fence of %s has just gone off the list of %s: somebody has lifted it", l.Instance, l.Volume)
	}
	h, err := r.Load(ctx, l.volume)
	if err != nil {
		return err
	}
	if h.Instance == f.Instance {
		return fmt.Errorf("the fence of %s is not lifted: the hold of %s names this very client", l.Instance, l.Volume)
	}
	return nil
}

// keep writes the reason down before anything is lifted.
func (c *client) keep(ctx context.Context, cluster *ceph.Cluster, l Lifting, reason string) error {
	entry, err := c.clusters.Entry(l.Cluster)
	if err != nil {
		return err
	}
	w := ceph.Word{At: time.Now(), By: whoami(), Instance: exclusive.Instance(l.Instance), Node: l.Node, Reason: reason}
	if l.volume != "" {
		image, err := ceph.ParseImage(l.volume)
		if err != nil {
			return err
		}
		w.ImageID = image.ID
	}
	return cluster.Keep(ctx, entry.HeartbeatPool(), w)
}

// whoami is for people who ask later.
func whoami() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
