package wire

import "github.com/custody-storage/custody/cosi/wire/recovery"

// The messages of the Recovery service to this package's types and back.

func capabilitiesFrom(c *recovery.Capabilities) Capabilities {
	return Capabilities{
		DeleteByName:     c.GetDeleteByName(),
		FindByName:       c.GetFindByName(),
		List:             c.GetList(),
		CreateRepeatSafe: c.GetCreateRepeatSafe(),
		OwnerMark:        c.GetOwnerMark(),
	}
}

func capabilitiesTo(c Capabilities) *recovery.Capabilities {
	return &recovery.Capabilities{
		DeleteByName:     c.DeleteByName,
		FindByName:       c.FindByName,
		List:             c.List,
		CreateRepeatSafe: c.CreateRepeatSafe,
		OwnerMark:        c.OwnerMark,
	}
}

func itemsFrom(in []*recovery.Item) []Item {
	var out []Item
	for _, i := range in {
		out = append(out, Item{ID: i.GetId(), Name: i.GetName(), Owner: i.GetOwnerMark()})
	}
	return out
}

func itemsTo(in []Item) []*recovery.Item {
	var out []*recovery.Item
	for _, i := range in {
		out = append(out, &recovery.Item{Id: i.ID, Name: i.Name, OwnerMark: i.Owner})
	}
	return out
}
