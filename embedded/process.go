package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	readyEvery   = 50 * time.Millisecond
	readyWithin  = 60 * time.Second // a busy machine needs 10 s for kube-apiserver
	stopWithin   = 15 * time.Second
	pauseWithin  = 10 * time.Second
	tailBytes    = 4 << 10
	tailInErrors = 15 // lines
)

// Command says how to run a program as a child process.
type Command struct {
	Name string   // for errors
	Path string   // of the program
	Args []string // without the program's name
	Dir  string   // working folder; "" is this process's
	// Env is the whole environment; nil is this process's. Values never appear in
	// errors, so secrets belong here and not in Args.
	Env []string
	// Log is the file that standard output and error are appended to; "" discards
	// them, and then errors can't quote them.
	Log string
	// Ready is asked until it returns nil; nil means ready once started. Its
	// context ends when the process does.
	Ready func(context.Context) error
	// ReadyWithin is how long that may take; 0 is 60 s.
	ReadyWithin time.Duration
	// StopWithin is how long Stop waits before it kills; 0 is 15 s.
	StopWithin time.Duration

	inherit []*os.File
}

// Process is a running child process. Its methods may be called from any
// goroutine, also after it has ended.
type Process struct {
	Command Command

	cmd   *exec.Cmd
	logAt int64 // size of the log when this run began
	done  chan struct{}
	err   error // of the wait; read after done
}

// StartProcess starts a program and returns when it is ready. If it ends before
// that, isn't ready in time, or ctx ends, it is killed, and the error quotes the
// end of its log.
func StartProcess(ctx context.Context, c Command) (*Process, error) {
	p := &Process{Command: c, done: make(chan struct{})}
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("start %s (%s): %w", c.Name, c.Path, err)
	}
	if err := p.waitReady(ctx); err != nil {
		_ = p.Kill() // the first error says more
		return nil, err
	}
	return p, nil
}

// Restart runs the same command anew. The process must have ended.
func (p *Process) Restart(ctx context.Context) (*Process, error) {
	select {
	case <-p.done:
		return StartProcess(ctx, p.Command)
	default:
		return nil, fmt.Errorf("restart %s: it still runs (pid %d), kill or stop it first", p.Command.Name, p.Pid())
	}
}

func (p *Process) start() error {
	c := p.Command
	p.cmd = &exec.Cmd{
		Path: c.Path, Args: append([]string{c.Path}, c.Args...), Dir: c.Dir, Env: c.Env,
		ExtraFiles: c.inherit, SysProcAttr: childAttributes(),
	}
	if c.Log != "" {
		// A file, not a pipe: a child must not block or die on its log when this
		// process is slow or gone.
		log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer log.Close()
		info, err := log.Stat()
		if err != nil {
			return err
		}
		p.logAt = info.Size()
		p.cmd.Stdout, p.cmd.Stderr = log, log
	}
	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that made the child
		// ends, not the process (golang/go#27505): keep the thread until the child
		// is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	return <-started
}

func (p *Process) waitReady(ctx context.Context) error {
	c := p.Command
	if c.Ready == nil {
		return nil
	}
	within := c.ReadyWithin
	if within == 0 {
		within = readyWithin
	}
	start := time.Now()
	timeout := fmt.Errorf("not ready within %s", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, timeout)
	defer cancel()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-p.done:
			stop()
		case <-asking.Done():
		}
	}()
	for {
		err := c.Ready(asking)
		select {
		case <-p.done: // whoever answered was another
		default:
			if err == nil {
				return nil
			}
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready, after %s: %s%s", c.Name, time.Since(start).Round(time.Millisecond), p.ending(), p.quote())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last answer: %w%s", c.Name, context.Cause(ctx), err, p.quote())
		case <-time.After(readyEvery):
		}
	}
}

// Pid returns the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells how the process ended, with the end of its log, or returns nil as
// long as it runs and if it exited with status 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s ended: %w%s", p.Command.Name, p.err, p.quote())
}

func (p *Process) ending() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// Kill sends SIGKILL and returns when the process is gone. A process that has
// ended is no error.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Pause freezes the process (SIGSTOP): it keeps its sockets and answers nothing.
// On Linux it returns when all threads stand still, which on a busy machine takes
// longer than the sending of the signal.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(pauseWithin); ; time.Sleep(time.Millisecond) {
		stopped, err := allStopped(p.Pid())
		select {
		case <-p.done:
			return nil
		default:
		}
		if err != nil {
			return fmt.Errorf("pause %s (pid %d): %w", p.Command.Name, p.Pid(), err)
		}
		if stopped {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("pause %s (pid %d): it still runs %s after SIGSTOP", p.Command.Name, p.Pid(), pauseWithin)
		}
	}
}

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Stop asks the process to end (SIGTERM), also a paused one, and returns when it
// is gone. If it takes longer than StopWithin, it is killed and Stop returns an
// error. How it ended, Err tells.
func (p *Process) Stop() error {
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	within := p.Command.StopWithin
	if within == 0 {
		within = stopWithin
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(within):
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return fmt.Errorf("%s did not stop within %s of SIGTERM and was killed%s", p.Command.Name, within, p.quote())
}

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s (pid %d): %w", s, p.Command.Name, p.Pid(), err)
	}
	return nil
}

// Tail returns the last lines that the process logged in this run.
func (p *Process) Tail(lines int) string {
	if p.Command.Log == "" {
		return ""
	}
	f, err := os.Open(p.Command.Log)
	if err != nil {
		return fmt.Sprintf("(log can't be read: %v)", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Sprintf("(log can't be read: %v)", err)
	}
	from := max(p.logAt, info.Size()-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return fmt.Sprintf("(log can't be read: %v)", err)
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (p *Process) quote() string {
	tail := p.Tail(tailInErrors)
	if tail == "" {
		return ""
	}
	return fmt.Sprintf("; end of its log %s:\n%s", p.Command.Log, tail)
}

// plainEnv is an environment for servers that take settings from variables: what
// the user set for a server of their own must not change these.
func plainEnv(more ...string) []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}
