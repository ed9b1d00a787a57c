package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/custody-storage/custody/explore"
)

// newExploreCommand is "custody explore".
func newExploreCommand() *cobra.Command {
	var o exploreOptions
	cmd := &cobra.Command{
		Use:   "explore [NAME...]",
		Short: "Play the shipped protocol code through every interleaving, crash and lost reply",
		Long: `Plays the protocol code that ships, and protocols that others use or have proposed, through every interleaving, crash,
lost reply, late call and stale read within a bound, and prints what was found. A NAME is one setting, a part of its
path such as bucket/template, or a pattern such as "*/none/*". Without a name, all are searched: this takes a while.

It ends with an error, and writes a replay file, if the shipped code was caught.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), names)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "name the settings and search none")
	f.BoolVar(&o.json, "json", false, "print a JSON array, one element a setting")
	f.BoolVar(&o.markdown, "markdown", false, "print the tables of docs/proof.md")
	f.StringVar(&o.trace, "trace", "", "print the shortest trace that is found in this setting")
	f.StringVar(&o.replay, "replay", "", "play a replay file")
	f.StringVar(&o.write, "write-replay", "explore-replay.json", "where a replay file goes if the shipped code is caught")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random search; 0: chosen and printed")
	f.DurationVar(&o.budget, "budget", 0, "search at random for this long, beyond the bounds, instead of visiting every state")
	f.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "settings searched at once")
	f.IntVar(&o.states, "max-states", 0, "give a setting up after so many states (about 120 bytes each); 0: no limit")
	return cmd
}

type exploreOptions struct {
	list, json, markdown bool
	trace, replay, write string
	seed                 uint64
	budget               time.Duration
	states, parallel     int
}

var errCaught = errors.New("the shipped protocol was caught")

func (o exploreOptions) run(ctx context.Context, out, progress io.Writer, patterns []string) error {
	if o.replay != "" {
		return o.play(out)
	}
	if o.trace != "" {
		patterns = []string{o.trace}
	}
	var names, what []string
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	for _, p := range patterns {
		n, w := explore.Names(p)
		if len(n) == 0 {
			return fmt.Errorf("%q: %w", p, explore.ErrUnknown)
		}
		names, what = append(names, n...), append(what, w...)
	}
	switch {
	case o.list:
		for i, n := range names {
			fmt.Fprintf(out, "%-44s %s\n", n, what[i])
		}
		return nil
	case o.budget > 0:
		return o.random(ctx, out, progress, names)
	}
	return o.search(ctx, out, progress, names)
}

func (o exploreOptions) search(ctx context.Context, out, progress io.Writer, names []string) error {
	say := explore.Progress(func(name string, states, transitions, todo int) {
		fmt.Fprintf(progress, "%s: %d states, %d transitions, %d states to go\n", name, states, transitions, todo)
	})
	rows := make([]explore.Row, len(names))
	var group errgroup.Group
	group.SetLimit(max(1, o.parallel))
	for i, n := range names {
		group.Go(func() (err error) {
			rows[i], err = explore.Search(ctx, n, say.Limits(n, o.states))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the search was interrupted, and what was not searched says nothing: %w", err)
	}
	var caught *explore.Replay
	for _, r := range rows {
		if r.Bad() && caught == nil {
			caught = r.Replay()
		}
	}
	switch {
	case o.trace != "":
		for _, r := range rows {
			fmt.Fprintf(out, "%s (%s)\n", r.Name, r.Bound)
			if len(r.Trace) == 0 {
				fmt.Fprintln(out, "  nothing was found")
			}
			for i, l := range r.Trace {
				fmt.Fprintf(out, "%4d  %s\n", i+1, l)
			}
		}
	case o.json:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(rows); err != nil {
			return err
		}
	case o.markdown:
		explore.Markdown(out, rows)
	default:
		if err := explore.Table(out, rows); err != nil {
			return err
		}
	}
	return o.keep(caught)
}

func (o exploreOptions) random(ctx context.Context, out, progress io.Writer, names []string) error {
	seed := o.seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	fmt.Fprintf(progress, "seed %d\n", seed)
	each := o.budget / time.Duration(len(names))
	for _, n := range names {
		part, cancel := context.WithTimeout(ctx, each)
		found, made, err := explore.Random(part, n, seed)
		cancel()
		switch {
		case err != nil:
			return err
		case found == nil:
			fmt.Fprintf(out, "%-44s %d moves, nothing found\n", n, made)
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", n, found.Fault)
		for i, l := range found.Story {
			fmt.Fprintf(out, "%4d  %s\n", i+1, l)
		}
		if found.Shipped() {
			return o.keep(found)
		}
	}
	return nil
}

// keep writes the replay file.
func (o exploreOptions) keep(p *explore.Replay) error {
	if p == nil {
		return nil
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.write, append(b, '\n'), 0o644); err != nil { //nolint:gosec // not a secret
		return fmt.Errorf("%w (%s in %s), and the replay file could not be written: %w", errCaught, p.Fault, p.Name, err)
	}
	return fmt.Errorf("%w: %s in %s; play it again with custody explore --replay %s", errCaught, p.Fault, p.Name, o.write)
}

func (o exploreOptions) play(out io.Writer) error {
	f, err := os.Open(o.replay)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := explore.ReadReplay(f)
	if err != nil {
		return fmt.Errorf("%s: %w", o.replay, err)
	}
	story, fault, err := p.Play()
	if err != nil {
		return err
	}
	for i, l := range story {
		fmt.Fprintf(out, "%4d  %s\n", i+1, l)
	}
	fmt.Fprintf(out, "%s: %s\n", p.Name, fault)
	if fault != "clean" && p.Shipped() {
		return errCaught
	}
	return nil
}
