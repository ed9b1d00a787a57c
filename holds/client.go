//go:build ceph

package holds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// atOnce is how many images of a cluster are read at once.
const atOnce = 8

type client struct {
	clusters ceph.Clusters
	mu       sync.Mutex
	open     map[string]*ceph.Cluster // by cluster and role
}

// Open reads the configuration file of the clusters. It makes no call.
func Open(path string) (Client, error) {
	clusters, err := ceph.ReadClusters(path)
	if err != nil {
		return nil, err
	}
	return &client{clusters: clusters, open: map[string]*ceph.Cluster{}}, nil
}

func (c *client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cluster := range c.open {
		cluster.Close()
	}
}

// connect gives a connection as the role, or as the other one if the file has no identity for it.
func (c *client) connect(id string, role ceph.Role) (*ceph.Cluster, error) {
	entry, err := c.clusters.Entry(id)
	if err != nil {
		return nil, err
	}
	switch {
	case role == ceph.Controller && entry.Controller == nil:
		role = ceph.Node
	case role == ceph.Node && entry.Node == nil:
		role = ceph.Controller
	}
	key := entry.ID + "/" + string(role)
	c.mu.Lock()
	defer c.mu.Unlock()
	if cluster := c.open[key]; cluster != nil {
		return cluster, nil
	}
	config, err := entry.Config(role)
	if err != nil {
		return nil, err
	}
	cluster, err := ceph.Open(config)
	if err != nil {
		return nil, err
	}
	c.open[key] = cluster
	return cluster, nil
}

func (c *client) List(ctx context.Context, f Filter) ([]Row, error) {
	if err := f.check(c.clusters); err != nil {
		return nil, err
	}
	rows, errs := []Row{}, []error{}
	for _, entry := range c.clusters.Clusters {
		some, err := c.listCluster(ctx, entry, f)
		rows, errs = append(rows, some...), append(errs, err)
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return !f.takes(r) })
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Spec(), b.Spec()) })
	return rows, errors.Join(errs...)
}

func (f Filter) check(clusters ceph.Clusters) error {
	if f.State != "" && !slices.Contains(States, f.State) {
		return fmt.Errorf("--state is %q; it is one of %s", f.State, strings.Join(States, ", "))
	}
	if f.Cluster != "" {
		if _, err := clusters.Entry(f.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// listCluster reads all images of a cluster that the filter may take.
func (c *client) listCluster(ctx context.Context, entry ceph.Entry, f Filter) ([]Row, error) {
	images, failed := c.images(ctx, entry, f)
	if len(images) == 0 {
		return nil, failed
	}
	cluster, err := c.connect(entry.ID, ceph.Controller)
	if err != nil {
		return nil, err
	}
	list, err := cluster.Fencer().Blocklist(ctx)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	rows := make([]Row, len(images))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n, image := range images {
		group.Go(func() error {
			var err error
			rows[n], err = read(within, cluster, image, list)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(failed, err)
	}
	return rows, errors.Join(failed, hear(ctx, cluster, entry.HeartbeatPool(), f.Listen, rows))
}

// images lists those of the pools that are wanted, and says which pools could not be read.
func (c *client) images(ctx context.Context, entry ceph.Entry, f Filter) ([]ceph.Image, error) {
	images, errs := []ceph.Image{}, []error{}
	for _, at := range entry.Pools {
		pool, namespace, _ := strings.Cut(at, "/")
		if !f.in(entry.ID, pool, namespace) {
			continue
		}
		cluster, err := c.connect(entry.ID, ceph.Controller)
		if err != nil {
			return nil, err
		}
		some, err := cluster.Registry().Images(ctx, pool, namespace)
		images, errs = append(images, some...), append(errs, err)
	}
	return images, errors.Join(errs...)
}

// read reads all about one image.
func read(ctx context.Context, cluster *ceph.Cluster, image ceph.Image, list ceph.Blocklist) (Row, error) {
	r, volume := cluster.Registry(), image.String()
	row := Row{Cluster: cluster.ID(), Pool: image.Pool, Namespace: image.Namespace, Image: image.Name, ImageID: image.ID, volume: volume}
	h, err := r.Load(ctx, volume)
	switch {
	case errors.Is(err, exclusive.ErrForeign):
		row.State, row.Error = unreadable, err.Error()
	case err != nil:
		return Row{}, err
	default:
		row.fill(h)
	}
	if row.State != exclusive.None.String() {
		since, err := r.Since(ctx, volume)
		if err != nil {
			return Row{}, err
		}
		row.Since = &since
	}
	fences, err := r.Fences(ctx, volume)
	if err != nil {
		return Row{}, err
	}
	row.Fences = []Fence{}
	for _, f := range fences {
		row.Fences = append(row.Fences, fenceOf(f, list))
	}
	return row, nil
}

func fenceOf(f exclusive.Fence, list ceph.Blocklist) Fence {
	_, stands := list.Fence(f.Instance)
	return Fence{Instance: string(f.Instance), Node: f.Who.Node, Machine: f.Who.Machine, Boot: f.Who.Boot, Standing: stands}
}

func (r *Row) fill(h exclusive.Hold) {
	r.State, r.Epoch, r.Fencer, r.Barrier, r.Formatted = h.State.String(), h.Epoch, h.Fencer, h.Barrier, h.Formatted
	r.Node, r.Machine, r.Boot, r.Instance = h.Who.Node, h.Who.Machine, h.Who.Boot, string(h.Instance)
}

// hear fills in the owners' heartbeats.
func hear(ctx context.Context, cluster *ceph.Cluster, pool string, listen time.Duration, rows []Row) error {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Machine != "" }) {
		return nil
	}
	beats := cluster.Beats(pool, "")
	first, err := beats(ctx)
	if err != nil {
		return err
	}
	last := first
	if listen > 0 {
		if err := pause(ctx, listen); err != nil {
			return err
		}
		if last, err = beats(ctx); err != nil {
			return err
		}
	}
	for n := range rows {
		if r := &rows[n]; r.Machine != "" {
			r.Heartbeat = heartbeat(r.Boot, first, last, r.Machine, listen > 0)
		}
	}
	return nil
}

func heartbeat(boot string, first, last map[string]ceph.Beat, machine string, listened bool) Heartbeat {
	b, ok := last[machine]
	h := Heartbeat{State: beatMissing, Node: b.Node, Boot: b.Boot, Count: b.Count}
	switch {
	case !ok:
	case b.Boot != boot:
		h.State = beatOther
	case !listened:
		h.State = beatThis
	case b != first[machine]:
		h.State = beatMoving
	default:
		h.State = beatStill
	}
	return h
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *client) Find(ctx context.Context, name string, f Filter) (Row, error) {
	if err := f.check(c.clusters); err != nil {
		return Row{}, err
	}
	found, errs := []Row{}, []error{}
	for _, entry := range c.clusters.Clusters {
		images, err := c.images(ctx, entry, f)
		errs = append(errs, err)
		for _, i := range images {
			row := Row{Cluster: entry.ID, Pool: i.Pool, Namespace: i.Namespace, Image: i.Name, ImageID: i.ID, volume: i.String()}
			if row.named(name) {
				found = append(found, row)
			}
		}
	}
	failed := errors.Join(errs...)
	switch {
	case len(found) == 1 && failed == nil:
		return c.one(ctx, found[0], f.Listen)
	case len(found) > 1:
		names := []string{}
		for _, r := range found {
			names = append(names, r.Spec())
		}
		return Row{}, fmt.Errorf("%q may be any of %s: say which", name, strings.Join(names, ", "))
	case failed != nil:
		return Row{}, fmt.Errorf("look for image %q: %w", name, failed)
	}
	return Row{}, fmt.Errorf("no image %q in the clusters and pools of the configuration", name)
}

// one reads the row of an image that is known.
func (c *client) one(ctx context.Context, r Row, listen time.Duration) (Row, error) {
	cluster, err := c.connect(r.Cluster, ceph.Controller)
	if err != nil {
		return Row{}, err
	}
	list, err := cluster.Fencer().Blocklist(ctx)
	if err != nil {
		return Row{}, err
	}
	image, err := ceph.ParseImage(r.volume)
	if err != nil {
		return Row{}, err
	}
	if r, err = read(ctx, cluster, image, list); err != nil {
		return Row{}, err
	}
	entry, err := c.clusters.Entry(r.Cluster)
	if err != nil {
		return Row{}, err
	}
	words, err := cluster.Words(ctx, entry.HeartbeatPool())
	if err != nil {
		return Row{}, err
	}
	for _, w := range words {
		if w.ImageID == image.ID {
			r.Words = append(r.Words, Word{At: w.At, By: w.By, Instance: string(w.Instance), Node: w.Node, Reason: w.Reason})
		}
	}
	rows := []Row{r}
	err = hear(ctx, cluster, entry.HeartbeatPool(), listen, rows)
	return rows[0], err
}
