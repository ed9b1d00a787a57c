package show

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// noteEvery keeps notes from filling the screen.
const noteEvery = 2 * time.Second

// Progress writes lines about work. Its methods may be called from any goroutine.
type Progress struct {
	mu  sync.Mutex
	out io.Writer
}

// To makes a Progress that writes to out.
func To(out io.Writer) *Progress { return &Progress{out: out} }

// Out is where the lines go, for others that show progress of their own.
func (p *Progress) Out() io.Writer { return p.out }

// Say writes one line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Work is something that takes a while.
type Work struct {
	progress *Progress
	what     string
	start    time.Time

	mu       sync.Mutex
	noted    time.Time
	lastNote string
}

// Begin says that work begins.
func (p *Progress) Begin(format string, args ...any) *Work {
	now := time.Now()
	w := &Work{progress: p, what: fmt.Sprintf(format, args...), start: now, noted: now}
	p.Say("%s ...", w.what)
	return w
}

// Note says what is waited for, if that is news and the last note is a while ago.
func (w *Work) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	news := text != w.lastNote && time.Since(w.noted) >= noteEvery
	if news {
		w.lastNote, w.noted = text, time.Now()
	}
	w.mu.Unlock()
	if news {
		w.progress.Say("%s: %s (%s)", w.what, text, seconds(time.Since(w.start)))
	}
}

// End says that the work is done, or that it failed: why is said by whoever gets
// the error. It returns err.
func (w *Work) End(err error) error {
	word := "done"
	if err != nil {
		word = "failed"
	}
	w.progress.Say("%s: %s (%s)", w.what, word, seconds(time.Since(w.start)))
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
