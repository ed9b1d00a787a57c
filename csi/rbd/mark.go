package rbd

import (
	"encoding/json"
	"fmt"

	"github.com/custody-storage/custody/exclusive"
)

// markKey is the key of the mark in the image's metadata.
const markKey = "custody.mark"

const markFormat = 1

// The states of an image, as doc.go has them.
const (
	making   = "making"
	ready    = "ready"
	deleting = "deleting"
)

// Mark says on an image that it is ours, and what it is.
type Mark struct {
	Format int    `json:"format"`
	Image  string `json:"image"` // the image's own name: a clone inherits its parent's metadata
	State  string `json:"state"`
	Name   string `json:"name"` // as requested
	// Source is the id of the volume or snapshot that it was made from, "" for none.
	Source string `json:"source,omitempty"`
	// Created is when a snapshot was taken, in nanoseconds since 1970 by the controller's clock.
	Created int64 `json:"created,omitempty"`
}

func (m Mark) text() string {
	m.Format = markFormat
	text, _ := json.Marshal(m) // texts and numbers only
	return string(text)
}

// readMark gives the image's mark; State is "" if it has none of its own. A mark of a newer version is an
// [exclusive.ErrForeign].
func readMark(image string, metadata map[string]string) (Mark, error) {
	text, ok := metadata[markKey]
	if !ok {
		return Mark{}, nil
	}
	var m Mark
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Mark{}, fmt.Errorf("mark of image %s: %w: %w", image, exclusive.ErrForeign, err)
	}
	switch {
	case m.Format != markFormat:
		return Mark{}, fmt.Errorf("mark of image %s: %w: format %d, and this version knows %d", image, exclusive.ErrForeign, m.Format, markFormat)
	case m.Image != image:
		return Mark{}, nil
	case m.State != making && m.State != ready && m.State != deleting:
		return Mark{}, fmt.Errorf("mark of image %s: %w: state %q", image, exclusive.ErrForeign, m.State)
	}
	return m, nil
}
