package toolbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}
func (o *output) String() string { o.mu.Lock(); defer o.mu.Unlock(); return o.Buffer.String() }

// hello is a tool that needs nothing beyond the runtime.
func hello() tool {
	return tool{name: "hello", about: "says hello", cost: "a second", module: "tools", pkg: "./cmd/hello", sources: "cmd/hello", links: []string{"again"}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newBox(t *testing.T) (*Box, *output) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "tools/go.mod"), "module example.test/tools\n\ngo 1.26.0\n")
	write(t, filepath.Join(root, "tools/go.sum"), "")
	write(t, filepath.Join(root, "tools/cmd/hello/main.go"), "package main\n\nfunc main() { println(\"hello\") }\n")
	out := &output{}
	return &Box{root: root, cache: filepath.Join(root, "cache"), out: out}, out
}

func folder(t *testing.T, b *Box, tool tool) string {
	t.Helper()
	dir, err := b.folder(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func says(t *testing.T, program, want string) {
	t.Helper()
	text, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(text)); got != want {
		t.Errorf("%s says %q, want %q", program, got, want)
	}
}

func TestBuildOnce(t *testing.T) {
	b, out := newBox(t)
	dir := folder(t, b, hello())
	says(t, filepath.Join(dir, "hello"), "hello")
	says(t, filepath.Join(dir, "again"), "hello")
	if text := out.String(); !strings.Contains(text, "building hello (says hello) from source, once, a second") || !strings.Contains(text, "done") {
		t.Errorf("progress says %q", text)
	}
	out.Reset()
	if again := folder(t, b, hello()); again != dir || out.String() != "" {
		t.Errorf("second time %s, %q; first %s", again, out.String(), dir)
	}

	write(t, filepath.Join(b.root, "tools/cmd/hello/main_test.go"), "package main\n")
	if same := folder(t, b, hello()); same != dir {
		t.Error("a test file changed the key")
	}
	write(t, filepath.Join(b.root, "tools/cmd/hello/main.go"), "package main\n\nfunc main() { println(\"good day\") }\n")
	changed := folder(t, b, hello())
	says(t, filepath.Join(changed, "hello"), "good day")
	says(t, filepath.Join(dir, "hello"), "hello")
}

func TestManyWantTheSame(t *testing.T) {
	b, out := newBox(t)
	var all sync.WaitGroup
	for range 5 { // a file lock excludes goroutines as it does processes
		all.Go(func() {
			if _, err := b.folder(t.Context(), hello()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := strings.Count(out.String(), "done"); n < 1 {
		t.Errorf("progress says %q", out.String())
	}
	builds := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "building") && strings.Contains(line, "done") {
			builds++
		}
	}
	if builds != 1 {
		t.Errorf("%d builds:\n%s", builds, out)
	}
}

func TestHalfBuiltIsNeverUsed(t *testing.T) {
	b, _ := newBox(t)
	key, err := b.key(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.cache, key)
	write(t, filepath.Join(dir+".half", "hello"), "half a program")
	if got := folder(t, b, hello()); got != dir {
		t.Fatalf("built in %s, want %s", got, dir)
	}
	says(t, filepath.Join(dir, "hello"), "hello")
	if exists(dir + ".half") {
		t.Error("what an interrupted build left is still there")
	}
}

func TestBuildFails(t *testing.T) {
	b, out := newBox(t)
	write(t, filepath.Join(b.root, "tools/cmd/hello/main.go"), "package main\n\nfunc main() { nonsense() }\n")
	_, err := b.folder(t.Context(), hello())
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("want the compiler's words, have: %v", err)
	}
	if !strings.Contains(out.String(), "failed") {
		t.Errorf("progress says %q", out)
	}
	write(t, filepath.Join(b.root, "tools/cmd/hello/main.go"), "package main\n\nfunc main() { println(\"mended\") }\n")
	says(t, filepath.Join(folder(t, b, hello()), "hello"), "mended")
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	b, out := newBox(t)
	key, err := b.key(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.cache, key+".lock"), "")
	other, err := os.Open(filepath.Join(b.cache, key+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, fmt.Errorf("enough"))
	defer cancel()
	_, err = b.folder(ctx, hello())
	if err == nil || !strings.Contains(err.Error(), "enough") || !strings.Contains(err.Error(), key+".lock") {
		t.Errorf("want an error that names the lock and the cause, have: %v", err)
	}
	if !strings.Contains(out.String(), "waiting for another process that builds hello") {
		t.Errorf("progress says %q", out)
	}
}

func TestNoGo(t *testing.T) {
	b, _ := newBox(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := b.folder(t.Context(), hello()); err == nil || !strings.Contains(err.Error(), "is Go installed") {
		t.Errorf("want a hint at Go, have: %v", err)
	}
}

func TestUnknownTool(t *testing.T) {
	b, _ := newBox(t)
	if _, err := b.Path(t.Context(), "hammer"); err == nil || !strings.Contains(err.Error(), "versitygw") {
		t.Errorf("want an error that names the tools, have: %v", err)
	}
}

func TestOpen(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(cacheEnv, cache)
	b, err := Open(&output{})
	if err != nil {
		t.Fatal(err)
	}
	if b.cache != filepath.Join(cache, "tools") {
		t.Errorf("cache is %s", b.cache)
	}
	for _, tool := range tools() { // each has its module and its sources
		if _, err := b.key(t.Context(), tool); err != nil {
			t.Error(err)
		}
	}

	t.Chdir(t.TempDir())
	if _, err := Open(&output{}); err == nil || !strings.Contains(err.Error(), "inside the repository") {
		t.Errorf("outside the repository: %v", err)
	}
}

func TestKubernetesVersionIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\tk8s.io/kubernetes "+kubernetesVersion+"\n") {
		t.Errorf("tools/go.mod requires another k8s.io/kubernetes than %s", kubernetesVersion)
	}
}

func TestAssetsOfTheUser(t *testing.T) {
	b, out := newBox(t)
	assets := t.TempDir()
	t.Setenv(assetsEnv, assets)
	write(t, filepath.Join(assets, "etcd"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(assets, "etcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(assets, "kube-apiserver"), "not to be run")
	if _, err := b.Kube(t.Context()); err == nil || !strings.Contains(err.Error(), "no kube-apiserver that can be run") || !strings.Contains(err.Error(), assets) {
		t.Errorf("want an error that names what is missing and where, have: %v", err)
	}
	if err := os.Chmod(filepath.Join(assets, "kube-apiserver"), 0o755); err != nil {
		t.Fatal(err)
	}
	kube, err := b.Kube(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if kube != (Kube{Etcd: filepath.Join(assets, "etcd"), APIServer: filepath.Join(assets, "kube-apiserver")}) || out.String() != "" {
		t.Errorf("have %+v, progress %q", kube, out)
	}
}
