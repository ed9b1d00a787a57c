//go:build linux

// Package node is what a guest does for the tests of package krbd: the door [exclusive.Device] by the shipped mappers,
// and a writer that never stops. Its types are those of both ends of the line.
package node

import (
	"context"
	"fmt"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// Spec says how a node maps, and as whom. The cluster is asked for its epoch by the host, before the call:
// an older one is as good, since it vouches for less.
type Spec struct {
	FSID    string
	Options []string
	Config  mapper.OrderConfig
	Within  time.Duration
}

// Order is one call of the door.
type Order struct {
	Spec
	Verb     string
	Volume   string
	Target   mapper.Target
	Mapping  exclusive.Mapping
	Instance exclusive.Instance
	Number   uint64 // the barrier, or the cluster's epoch to Map
}

func (o Order) config() (ceph.Config, error) {
	c := o.Config
	return ceph.Config{ID: c.ID, Monitors: c.Monitors, User: c.User, Key: ceph.Secret(c.Key), Timeout: c.Timeout, Settings: c.Settings}, nil
}

func (o Order) mapper() mapper.Mapper {
	return &mapper.Krbd{
		Sys: "/sys", Dev: "/dev", Debug: "/sys/kernel/debug", Dir: "/run/krbd", FSID: o.FSID, Options: o.Options,
		Config: o.config, Timeout: o.Within,
		Epoch: func(context.Context) (uint64, error) { return o.Number, nil },
	}
}

// Node is the service.
type Node struct{ writers writers }

// Device goes through the door.
func (n *Node) Device(o Order, m *exclusive.Mapping) (err error) {
	ctx := context.Background()
	d := &mapper.Device{Mapper: o.mapper(), Volume: o.Volume, Target: o.Target}
	switch o.Verb {
	case "find":
		*m, err = d.Find(ctx, o.Volume, o.Instance)
	case "other":
		*m, err = d.Other(ctx, o.Volume, o.Instance)
	case "map":
		*m, err = d.Map(ctx, o.Volume)
	case "unmap":
		err = d.Unmap(ctx, o.Mapping)
	case "reach":
		err = d.Reach(ctx, o.Mapping, o.Number)
	case "format":
		err = d.Format(ctx, o.Mapping)
	case "expose":
		err = d.Expose(ctx, o.Mapping)
	case "withdraw":
		err = d.Withdraw(ctx, o.Volume)
	case "grow":
		err = d.Grow(ctx, o.Mapping)
	default:
		err = fmt.Errorf("no verb %q", o.Verb)
	}
	return err
}

// List lists the devices of a volume.
func (n *Node) List(o Order, all *[]exclusive.Mapping) (err error) {
	*all, err = o.mapper().List(context.Background(), o.Volume)
	return err
}
