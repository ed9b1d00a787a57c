//go:build ceph

package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/exclusive"
)

// wordsObject has the reasons of those who lifted fences without proof.
const wordsObject = "custody.words"

// Word is why somebody lifted a fence without proof. It is kept with the heartbeats: a list of fences has only what is
// not lifted, and goes with its image.
type Word struct {
	At       time.Time
	By       string // for people
	Instance exclusive.Instance
	ImageID  string // "" if no list had the fence
	Node     string
	Reason   string
}

// storedWord is a value of custody.words; its key is the time with the instance, so that they are in order.
type storedWord struct {
	Format   int                `json:"format"`
	At       time.Time          `json:"at"`
	By       string             `json:"by"`
	Instance exclusive.Instance `json:"instance"`
	ImageID  string             `json:"imageID,omitempty"`
	Node     string             `json:"node,omitempty"`
	Reason   string             `json:"reason"`
}

// Keep writes a word down. It is durable when it returns.
func (c *Cluster) Keep(ctx context.Context, pool string, w Word) error {
	w.At = w.At.UTC().Truncate(time.Second)
	text, err := json.Marshal(storedWord{format, w.At, w.By, w.Instance, w.ImageID, w.Node, w.Reason})
	if err != nil {
		return fmt.Errorf("write down why the fence of %s is lifted: %w", w.Instance, err)
	}
	key := w.At.Format(time.RFC3339) + " " + string(w.Instance)
	what := fmt.Sprintf("keep why the fence of %s is lifted", w.Instance)
	_, err = inPool(ctx, c, what, pool, "", func(io *rados.IOContext) (none, error) {
		return none{}, io.SetOmap(wordsObject, map[string][]byte{key: text})
	})
	return err
}

// Words gives all that was kept, the oldest first. One that can't be read is left out.
func (c *Cluster) Words(ctx context.Context, pool string) ([]Word, error) {
	return inPool(ctx, c, "read why fences were lifted", pool, "", func(io *rados.IOContext) ([]Word, error) {
		all, err := io.GetAllOmapValues(wordsObject, "", "", omapBatch)
		if err != nil && errno(err) != syscall.ENOENT {
			return nil, err
		}
		words := []Word{}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			var s storedWord
			if err := decode(all[key], &s); err == nil {
				words = append(words, Word{s.At, s.By, s.Instance, s.ImageID, s.Node, s.Reason})
			}
		}
		return words, nil
	})
}
