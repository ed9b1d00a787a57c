package toolbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// errorLines is how much of the compiler's output an error shows.
const errorLines = 40

// compile runs "go build" and shows how far it is.
func (b *Box) compile(ctx context.Context, t tool, file string) error {
	args := []string{"build", "-v", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + t.ldflags), "-o", file}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	cmd := b.goCommand(ctx, t, append(args, t.pkg)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go removes its temporary files
	cmd.WaitDelay = 10 * time.Second
	// A real pipe, closed here after the wait: a compiler that outlives go must
	// not keep this waiting.
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	cmd.Stdout, cmd.Stderr = w, w

	show := startProgress(b.out, fmt.Sprintf("building %s (%s) from source, once, %s", t.name, t.about, t.cost))
	var rest tail
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			// With -v go prints the import path of each package it compiles; what
			// holds a blank is something else.
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "go: downloading "):
				show.downloaded()
			case !strings.Contains(line, " ") && line != "":
				show.compiled()
			default:
				rest.add(line)
			}
		}
	}()
	err = cmd.Run()
	w.Close()
	<-read
	show.stop(err == nil)

	if ctx.Err() != nil {
		return fmt.Errorf("build stopped: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), cmd.Dir, err, rest.String())
	}
	return nil
}

// tail keeps the last lines.
type tail struct{ lines []string }

func (t *tail) add(line string) {
	if len(t.lines) == errorLines {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, line)
}

func (t *tail) String() string { return strings.Join(t.lines, "\n") }

// progress is one line about work that takes long: refreshed each second on a
// terminal, and elsewhere, where each refresh would be a line, each 30 seconds.
type progress struct {
	out      io.Writer
	what     string
	start    time.Time
	terminal bool
	end      chan struct{}
	ended    chan struct{}

	mu                  sync.Mutex
	packages, downloads int
}

func startProgress(out io.Writer, what string) *progress {
	p := &progress{out: out, what: what, start: time.Now(), end: make(chan struct{}), ended: make(chan struct{})}
	if f, ok := out.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	every := 30 * time.Second
	if p.terminal {
		every = time.Second
	}
	go func() {
		defer close(p.ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.end:
				return
			case <-tick.C:
				p.print("")
			}
		}
	}()
	p.print("")
	return p
}

func (p *progress) compiled()   { p.mu.Lock(); p.packages++; p.mu.Unlock() }
func (p *progress) downloaded() { p.mu.Lock(); p.downloads++; p.mu.Unlock() }

// stop ends the line. It is called once.
func (p *progress) stop(ok bool) {
	close(p.end)
	<-p.ended
	if ok {
		p.print(", done")
	} else {
		p.print(", failed")
	}
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}

func (p *progress) print(end string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%s: %s", p.what, time.Since(p.start).Round(time.Second))
	if p.downloads > 0 {
		line += fmt.Sprintf(", %d modules fetched", p.downloads)
	}
	if p.packages > 0 {
		line += fmt.Sprintf(", %d packages so far", p.packages)
	}
	if p.terminal {
		// Back to the start of the line; erase what the last print left of it.
		fmt.Fprint(p.out, "\r"+line+end+"\x1b[K")
	} else {
		fmt.Fprintln(p.out, line+end)
	}
}
