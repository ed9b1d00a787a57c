//go:build ceph

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/test/takeover"
)

// line is the last line of the report, for programs.
type line struct {
	AliveP50Ms         float64 `json:"alive_p50_ms"`
	KilledP50Ms        float64 `json:"killed_p50_ms"`
	PausedP50Ms        float64 `json:"paused_p50_ms"`
	PlainKilledP50Ms   float64 `json:"plain_killed_p50_ms"`
	RatioKilled        float64 `json:"ratio_killed"`
	StageOverheadP50Ms float64 `json:"stage_overhead_p50_ms"`
	Runs               int     `json:"runs"`
	OldWriterBlocks    int     `json:"old_writer_blocks"`
}

func (f figures) line() line {
	plain, killed := median(f.plain), median(f.takeovers[takeover.Killed])
	return line{
		AliveP50Ms:         milliseconds(median(f.takeovers[takeover.Alive])),
		KilledP50Ms:        milliseconds(killed),
		PausedP50Ms:        milliseconds(median(f.takeovers[takeover.Paused])),
		PlainKilledP50Ms:   milliseconds(plain),
		RatioKilled:        math.Round(10*float64(plain)/float64(killed)) / 10,
		StageOverheadP50Ms: milliseconds(median(f.held) - median(f.bare)),
		Runs:               f.runs,
		OldWriterBlocks:    f.oldBlocks,
	}
}

func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(100*time.Microsecond)) / 10
}

func (f figures) write(out io.Writer, lineOnly bool) error {
	l := f.line()
	if !lineOnly {
		on := f.fs
		if on == "" {
			on = "the device itself"
		}
		row := func(what string, all []time.Duration, aim string) []string {
			return []string{what, fmt.Sprint(len(all)), ms(median(all)), ms(quantile(all, 90)), aim}
		}
		fmt.Fprintln(out)
		show.Table(out,
			[]string{"stage request to first acknowledged write, " + on, "runs", "half below", "9 of 10 below", "aim"},
			row("owner alive, writing", f.takeovers[takeover.Alive], "under 1 s"),
			row("owner killed", f.takeovers[takeover.Killed], "under 1 s"),
			row("owner paused", f.takeovers[takeover.Paused], "under 1 s"),
			row("owner killed, plain RBD: wait for its watch to lapse, map", f.plain, ""),
			[]string{"plain RBD, as a multiple", "", fmt.Sprintf("%.1f", l.RatioKilled)},
		)
		fmt.Fprintln(out)
		show.Table(out,
			[]string{"stage that nobody contests, " + on, "runs", "half below", "9 of 10 below", "aim"},
			row("with a hold", f.held, ""),
			row("without", f.bare, ""),
			[]string{"what the hold adds", "", fmt.Sprintf("%.1f ms", l.StageOverheadP50Ms), "", "under 30 ms"},
		)
		fmt.Fprintf(out, "\nblocks of an old writer after the new one's: %d\n\n", l.OldWriterBlocks)
	}
	return json.NewEncoder(out).Encode(l)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", milliseconds(d)) }

// open is one row of what open images take.
type open struct {
	Images      int     `json:"images"`
	How         string  `json:"how"`
	Connections int     `json:"connections"`
	MB          float64 `json:"mb"`
}

// measureFootprint compares one client for all images with one for each.
func (o options) measureFootprint(ctx context.Context, fleet *takeover.Fleet, out io.Writer) error {
	all := []open{}
	rows := [][]string{{"images", "how", "TCP connections", "MB (PSS)", "MB per image"}}
	for _, images := range []int{1, 10, 50} {
		work := o.progress.Begin("%d images", images)
		found, err := openImages(ctx, fleet, images)
		if work.End(err) != nil {
			return err
		}
		for _, row := range found {
			rows = append(rows, []string{
				fmt.Sprint(row.Images), row.How, fmt.Sprint(row.Connections), fmt.Sprintf("%.1f", row.MB),
				fmt.Sprintf("%.1f", row.MB/float64(row.Images)),
			})
		}
		all = append(all, found...)
	}
	if !o.json {
		fmt.Fprintln(out)
		show.Table(out, rows...)
		fmt.Fprintln(out)
	}
	return json.NewEncoder(out).Encode(all)
}

func openImages(ctx context.Context, fleet *takeover.Fleet, images int) ([]open, error) {
	volumes := []string{}
	for range images {
		v, err := fleet.Volume(ctx, takeover.Locked)
		if err != nil {
			return nil, err
		}
		volumes = append(volumes, v)
	}
	all := []open{}
	for _, way := range []struct {
		how     string
		measure func(*takeover.Machine) (takeover.Footprint, error)
	}{
		{"one client, one process", func(m *takeover.Machine) (takeover.Footprint, error) { return m.Opened(ctx, volumes, false) }},
		{"a client each, one process", func(m *takeover.Machine) (takeover.Footprint, error) { return m.Opened(ctx, volumes, true) }},
		{"a client each, an image server each", func(m *takeover.Machine) (takeover.Footprint, error) { return m.Mapped(ctx, volumes) }},
	} {
		m, err := fleet.Machine(ctx, "m")
		if err != nil {
			return nil, err
		}
		f, err := way.measure(m)
		if err != nil {
			return nil, fmt.Errorf("%d images, %s: %w", images, way.how, err)
		}
		all = append(all, open{images, way.how, f.Connections, math.Round(10*f.MB) / 10})
	}
	return all, nil
}
