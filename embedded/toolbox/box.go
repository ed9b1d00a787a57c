package toolbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	mainModule = "github.com/custody-storage/custody"
	cacheEnv   = "CUSTODY_CACHE"
	assetsEnv  = "KUBEBUILDER_ASSETS"
)

// Box builds and finds programs. Its methods may be called at the same time
// from many goroutines and processes.
type Box struct {
	root  string    // of the repository
	cache string    // absolute
	out   io.Writer // progress
}

// Open finds the repository, from the working folder upwards, and the cache.
// Progress of builds is written to out.
func Open(out io.Writer) (*Box, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	cache := os.Getenv(cacheEnv)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the user's cache folder for built tools (set %s to choose one): %w", cacheEnv, err)
		}
		cache = filepath.Join(user, "custody")
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return nil, fmt.Errorf("cache folder for built tools: %w", err)
	}
	return &Box{root: root, cache: filepath.Join(cache, "tools"), out: out}, nil
}

// Root is the folder of the repository.
func (b *Box) Root() string { return b.root }

func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			for line := range strings.Lines(string(mod)) {
				if f := strings.Fields(line); len(f) == 2 && f[0] == "module" && f[1] == mainModule {
					return dir, nil
				}
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the repository: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of %s in %s or above it: tools are built from its sources, run this inside the repository", mainModule, start)
		}
	}
}

// Path returns the path of a program, which it builds first if need be.
func (b *Box) Path(ctx context.Context, name string) (string, error) {
	t, ok := find(name)
	if !ok {
		return "", fmt.Errorf("no tool is called %q; there are %s", name, names())
	}
	dir, err := b.folder(ctx, t)
	if err != nil {
		return "", fmt.Errorf("tool %s: %w", name, err)
	}
	return filepath.Join(dir, name), nil
}

// Kube is where the servers of a Kubernetes API are.
type Kube struct {
	Etcd, APIServer string
}

// Kube returns etcd and kube-apiserver, built first if need be. If
// KUBEBUILDER_ASSETS is set, they are those in its folder, as with
// controller-runtime's envtest, and nothing is built.
func (b *Box) Kube(ctx context.Context) (Kube, error) {
	dir := os.Getenv(assetsEnv)
	if dir != "" {
		for _, name := range []string{"etcd", "kube-apiserver"} {
			if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
				return Kube{}, fmt.Errorf("%s is set to %s, which has no %s that can be run (%w): put one there, or unset %s to have the servers built from source",
					assetsEnv, dir, name, err, assetsEnv)
			}
		}
	} else {
		path, err := b.Path(ctx, "kubebox")
		if err != nil {
			return Kube{}, err
		}
		dir = filepath.Dir(path)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Kube{}, fmt.Errorf("folder of etcd and kube-apiserver: %w", err)
	}
	return Kube{Etcd: filepath.Join(dir, "etcd"), APIServer: filepath.Join(dir, "kube-apiserver")}, nil
}

// folder returns the folder in which a built program stands.
func (b *Box) folder(ctx context.Context, t tool) (string, error) {
	key, err := b.key(ctx, t)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.cache, key)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder (set %s to choose another): %w", cacheEnv, err)
	}
	unlock, err := b.lock(ctx, dir+".lock", t)
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) { // built while this waited for the lock
		return dir, nil
	}
	return dir, b.build(ctx, t, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// build makes dir. The caller holds its lock.
func (b *Box) build(ctx context.Context, t tool, dir string) error {
	// The name is fixed, so that what a killed build left is found and removed.
	half := dir + ".half"
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("remove what an interrupted build left: %w", err)
	}
	if err := os.Mkdir(half, 0o755); err != nil {
		return fmt.Errorf("make the build's folder: %w", err)
	}
	file := filepath.Join(half, t.name)
	if err := b.compile(ctx, t, file); err != nil {
		return err
	}
	for _, link := range t.links {
		if err := os.Symlink(t.name, filepath.Join(half, link)); err != nil {
			return fmt.Errorf("link %s: %w", link, err)
		}
	}
	// Without the flush a power cut could leave the final name with an empty file.
	if err := flush(file); err != nil {
		return err
	}
	if err := os.Rename(half, dir); err != nil {
		return fmt.Errorf("move the built program into place: %w", err)
	}
	return nil
}

func flush(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("flush the built program: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("flush the built program: %w", err)
	}
	return nil
}

// key hashes all that decides what a build brings forth.
func (b *Box) key(ctx context.Context, t tool) (string, error) {
	module := filepath.Join(b.root, filepath.FromSlash(t.module))
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", []string{t.name, t.pkg, t.tags, t.ldflags, strings.Join(t.links, " ")})

	cmd := b.goCommand(ctx, t, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its version in %s (is Go installed and in PATH?): %w", module, err)
	}
	h.Write(out)

	files := []string{"go.mod", "go.sum"}
	if t.sources != "" {
		own, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(t.sources), "*.go"))
		if err != nil {
			return "", fmt.Errorf("list sources: %w", err)
		}
		for _, file := range own {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			rel, err := filepath.Rel(module, file)
			if err != nil {
				return "", fmt.Errorf("list sources: %w", err)
			}
			files = append(files, filepath.ToSlash(rel))
		}
		slices.Sort(files)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(file)))
		if err != nil {
			return "", fmt.Errorf("read sources: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", file, len(text))
		h.Write(text)
	}
	return t.name + "-" + hex.EncodeToString(h.Sum(nil))[:16], nil
}

func (b *Box) goCommand(ctx context.Context, t tool, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(t.module))
	// A go.work above the repository knows nothing of the nested modules.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd
}
