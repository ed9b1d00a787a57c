package oracle

import (
	"context"

	custodyv1 "github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/test/double"
)

// OfDouble lists what exists in the storage of a driver double, but not what
// others have made there.
func OfDouble(b *double.Backend) Inventory { return doubles{b} }

type doubles struct{ *double.Backend }

func (d doubles) Items(context.Context) ([]Item, error) {
	var items []Item
	for kind, as := range map[double.Kind]custodyv1.Kind{double.Bucket: custodyv1.KindBucket, double.Account: custodyv1.KindAccess} {
		for _, t := range d.Things(kind) {
			if t.Driver == d.Name() {
				items = append(items, Item{Driver: t.Driver, Kind: as, ID: t.ID, Name: t.Name, Keys: len(t.Keys)})
			}
		}
	}
	return items, nil
}
