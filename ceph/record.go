package ceph

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/custody-storage/custody/exclusive"
)

// format is the version of all that is stored. What has another one is left alone.
const format = 1

// storedHold is a hold as custody.hold.ID has it. Its version is the object's own.
type storedHold struct {
	Format    int                `json:"format"`
	Volume    string             `json:"volume"` // for people; the object's name is what counts
	State     string             `json:"state"`
	Machine   string             `json:"machine,omitempty"`
	Node      string             `json:"node,omitempty"`
	Boot      string             `json:"boot,omitempty"`
	Instance  exclusive.Instance `json:"instance,omitempty"`
	Epoch     uint64             `json:"epoch"`
	Fencer    string             `json:"fencer,omitempty"`
	Barrier   uint64             `json:"barrier,omitempty"`
	Formatted bool               `json:"formatted"`
}

// storedFence is a value of custody.fences.ID; its key is the instance.
type storedFence struct {
	Format  int    `json:"format"`
	Machine string `json:"machine"`
	Node    string `json:"node"`
	Boot    string `json:"boot"`
}

// storedBeat is a value of custody.nodes; its key is the machine.
type storedBeat struct {
	Format int    `json:"format"`
	Node   string `json:"node"`
	Boot   string `json:"boot"`
	Count  uint64 `json:"count"`
}

func encodeHold(h exclusive.Hold) ([]byte, error) {
	return json.Marshal(storedHold{
		Format: format, Volume: h.Volume, State: h.State.String(),
		Machine: h.Who.Machine, Node: h.Who.Node, Boot: h.Who.Boot,
		Instance: h.Instance, Epoch: h.Epoch, Fencer: h.Fencer, Barrier: h.Barrier, Formatted: h.Formatted,
	})
}

func decodeHold(volume string, text []byte) (exclusive.Hold, error) {
	var s storedHold
	if err := decode(text, &s); err != nil {
		return exclusive.Hold{}, err
	}
	for _, state := range []exclusive.State{exclusive.Free, exclusive.Claimed, exclusive.Opaque, exclusive.Mapped, exclusive.Fencing} {
		if state.String() == s.State {
			return exclusive.Hold{
				Volume: volume, State: state, Who: exclusive.Who{Machine: s.Machine, Node: s.Node, Boot: s.Boot},
				Instance: s.Instance, Epoch: s.Epoch, Fencer: s.Fencer, Barrier: s.Barrier, Formatted: s.Formatted,
			}, nil
		}
	}
	return exclusive.Hold{}, fmt.Errorf("%w: state %q", exclusive.ErrForeign, s.State)
}

func encodeFence(f exclusive.Fence) ([]byte, error) {
	return json.Marshal(storedFence{Format: format, Machine: f.Who.Machine, Node: f.Who.Node, Boot: f.Who.Boot})
}

func decodeFence(instance string, text []byte) (exclusive.Fence, error) {
	var s storedFence
	if err := decode(text, &s); err != nil {
		return exclusive.Fence{}, err
	}
	who := exclusive.Who{Machine: s.Machine, Node: s.Node, Boot: s.Boot}
	return exclusive.Fence{Instance: exclusive.Instance(instance), Who: who}, nil
}

func encodeBeat(b Beat) ([]byte, error) {
	return json.Marshal(storedBeat{Format: format, Node: b.Node, Boot: b.Boot, Count: b.Count})
}

func decodeBeat(text []byte) (Beat, error) {
	var s storedBeat
	if err := decode(text, &s); err != nil {
		return Beat{}, err
	}
	return Beat{Node: s.Node, Boot: s.Boot, Count: s.Count}, nil
}

// decode reads what this version has written and nothing else: an unknown field may be what a newer version's safety
// rests on.
func decode(text []byte, into any) error {
	var any struct{ Format int }
	if err := json.Unmarshal(text, &any); err != nil {
		return fmt.Errorf("%w: %w", exclusive.ErrForeign, err)
	}
	if any.Format != format {
		return fmt.Errorf("%w: format %d, and this version knows %d", exclusive.ErrForeign, any.Format, format)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", exclusive.ErrForeign, err)
	}
	return nil
}
