package mapper

import (
	"context"

	"github.com/custody-storage/custody/exclusive"
)

// Mapper makes and removes devices of one kind.
type Mapper interface {
	// List gives the devices of a volume on this node, half-made ones too.
	List(ctx context.Context, volume string) ([]exclusive.Mapping, error)
	// All gives the devices of all volumes on this node, half-made ones too.
	All(ctx context.Context) ([]exclusive.Mapping, error)
	// Map makes a device by a client of its own.
	Map(ctx context.Context, volume string) (exclusive.Mapping, error)
	// Unmap removes exactly this device. One that is gone, or whose number another has now, is no error.
	Unmap(ctx context.Context, m exclusive.Mapping) error
	// Reach returns when the device's own client has seen the osdmap of that epoch.
	Reach(ctx context.Context, m exclusive.Mapping, epoch uint64) error
	// Refresh makes the device as large as the image.
	Refresh(ctx context.Context, m exclusive.Mapping) error
}

// same tells whether a device is still the one that m names.
func same(a, m exclusive.Mapping) bool { return a.Device == m.Device && a.Instance == m.Instance }
