package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is a shell program as a command, ready once it made the file "ready" in
// its working folder.
func script(t *testing.T, text string) Command {
	t.Helper()
	dir := t.TempDir()
	return Command{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", text}, Dir: dir, Log: filepath.Join(dir, "log"),
		Ready:       func(context.Context) error { _, err := os.Stat(filepath.Join(dir, "ready")); return err },
		ReadyWithin: 10 * time.Second,
	}
}

func start(t *testing.T, c Command) *Process {
	t.Helper()
	p, err := StartProcess(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error has no %q:\n%v", part, err)
		}
	}
}

func TestProcessThatEndsEarly(t *testing.T) {
	c := script(t, "echo it broke; exit 3")
	c.Env = []string{"SECRET=sesame"}
	_, err := StartProcess(t.Context(), c)
	wantText(t, err, "script ended before it was ready", "exit status 3", "it broke", c.Log)
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("error tells the environment: %v", err)
	}
}

func TestProcessThatIsNeverReady(t *testing.T) {
	c := script(t, "echo $$ > pid; exec sleep 60")
	c.ReadyWithin = 300 * time.Millisecond
	_, err := StartProcess(t.Context(), c)
	wantText(t, err, "not ready within 300ms", "last answer", "no such file")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last answer is not wrapped: %v", err)
	}
	if pid := readPid(t, filepath.Join(c.Dir, "pid")); alive(pid) {
		t.Errorf("process %d was left running", pid)
	}
}

func TestProcessThatIsNotThere(t *testing.T) {
	c := script(t, "")
	c.Path = "/nowhere/at-all"
	_, err := StartProcess(t.Context(), c)
	wantText(t, err, "start script", "/nowhere/at-all")
}

func TestKillAndRestart(t *testing.T) {
	p := start(t, script(t, "echo run; touch ready; exec sleep 60"))
	if _, err := p.Restart(t.Context()); err == nil {
		t.Error("a running process was started a second time")
	}
	if err := p.Err(); err != nil {
		t.Errorf("Err of a running process: %v", err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	wantText(t, p.Err(), "killed", "run")
	if alive(p.Pid()) {
		t.Error("still there after Kill")
	}
	if err := errors.Join(p.Kill(), p.Stop(), p.Pause(), p.Resume()); err != nil {
		t.Errorf("signals to an ended process: %v", err)
	}
	again, err := p.Restart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Kill() })
	eventually(t, "one line of the second run", func() bool { return again.Tail(10) == "run" })
}

func TestStopIsGraceful(t *testing.T) {
	p := start(t, script(t, "trap 'echo bye; exit 0' TERM; touch ready; while :; do sleep 0.05; done"))
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	if tail := p.Tail(1); tail != "bye" {
		t.Errorf("last line is %q", tail)
	}
}

func TestStopKillsInTheEnd(t *testing.T) {
	c := script(t, "trap '' TERM; touch ready; while :; do sleep 0.05; done")
	c.StopWithin = 200 * time.Millisecond
	p := start(t, c)
	wantText(t, p.Stop(), "did not stop within 200ms", "killed")
	if alive(p.Pid()) {
		t.Error("still there after Stop")
	}
}

func TestPause(t *testing.T) {
	p := start(t, script(t, "touch ready; while :; do echo tick; sleep 0.02; done"))
	state := func() string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		if err != nil {
			t.Skip("needs /proc:", err)
		}
		_, after, _ := strings.Cut(string(text), ") ")
		return after[:1]
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if s := state(); s != "T" {
		t.Errorf("paused, but in state %s", s)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "running", func() bool { return state() != "T" })
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stop a paused process: %v", err)
	}
}

const parentEnv = "CUSTODY_TEST_PARENT_DIR"

// TestParent is no test of its own: TestChildDiesWithParent runs it.
func TestParent(t *testing.T) {
	dir := os.Getenv(parentEnv)
	if dir == "" {
		t.Skip("runs only as the parent in TestChildDiesWithParent")
	}
	c := script(t, "touch ready; exec sleep 60")
	start(t, c)
	p := start(t, c)
	if err := writeFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(p.Pid()))); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
}

func TestChildDiesWithParent(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("only Linux kills the children of the dead:", err)
	}
	dir := t.TempDir()
	parent := exec.Command(os.Args[0], "-test.run=^TestParent$")
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pid")
	eventually(t, "child started", func() bool { _, err := os.Stat(file); return err == nil })
	pid := readPid(t, file)
	if !alive(pid) {
		t.Fatal("the child is not there while its parent lives")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	eventually(t, "child gone", func() bool { return !alive(pid) })
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// alive says whether a process is there and no zombie.
func alive(pid int) bool {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, after, _ := strings.Cut(string(text), ") ")
		return !strings.HasPrefix(after, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}
