package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/custody-storage/custody/embedded"
)

// ErrNone says that no guest can run on this machine, and how one could.
var ErrNone = errors.New("no QEMU guests here")

const fetchWithin = 10 * time.Minute

var packages = []string{"qemu-system-x86", "busybox-static"}

// System is what guests run on.
type System struct {
	qemu, busybox string
	kernel        string // the image to boot
	modules       map[string]string
}

// Prepare installs what lacks of QEMU and busybox (Debian's packages, as root), and fetches Debian's kernel into the
// cache folder: half a minute once, and milliseconds from then on. Where that can't be done the error is [ErrNone].
func Prepare(ctx context.Context, progress io.Writer) (*System, error) {
	qemu, noQEMU := exec.LookPath("qemu-system-x86_64")
	busybox, noBusybox := exec.LookPath("busybox")
	if errors.Join(noQEMU, noBusybox) != nil {
		err := embedded.InstallPackages(ctx, progress, "QEMU", packages)
		if errors.Is(err, embedded.ErrNoPackages) {
			return nil, fmt.Errorf("%w: %w", ErrNone, err)
		}
		if err != nil {
			return nil, err
		}
		if qemu, err = exec.LookPath("qemu-system-x86_64"); err != nil {
			return nil, fmt.Errorf("%w: %s installed: %w", ErrNone, strings.Join(packages, " "), err)
		}
		if busybox, err = exec.LookPath("busybox"); err != nil {
			return nil, fmt.Errorf("%w: %s installed: %w", ErrNone, strings.Join(packages, " "), err)
		}
	}
	root, err := cachedKernel(ctx, progress)
	if err != nil {
		return nil, err
	}
	return open(qemu, busybox, root)
}

// open looks for kernel and modules in a folder that the package was unpacked to.
func open(qemu, busybox, root string) (*System, error) {
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		return nil, errors.Join(fmt.Errorf("%s has %d kernels and not one: remove that folder and try again", root, len(kernels)), err)
	}
	modules, err := findModules(root)
	if err != nil {
		return nil, err
	}
	return &System{qemu: qemu, busybox: busybox, kernel: kernels[0], modules: modules}, nil
}

// cachedKernel gives the folder of the newest kernel in the cache, fetched if there is none.
func cachedKernel(ctx context.Context, progress io.Writer) (string, error) {
	cache := os.Getenv("CUSTODY_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the user's cache folder for the guests' kernel (set CUSTODY_CACHE to choose one): %w", err)
		}
		cache = filepath.Join(user, "custody")
	}
	dir := filepath.Join(cache, "kernel")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cache folder for the guests' kernel: %w", err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "linux-image-*"))
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return found[len(found)-1], nil
	}
	return fetchKernel(ctx, progress, dir)
}

var kernelPackage = regexp.MustCompile(`linux-image-\d+[\w.+-]*-amd64`)

// fetchKernel unpacks Debian's kernel into a folder of its own. What is under the final name is complete: it is moved
// there in one rename, and whoever is second to do so takes the first's.
func fetchKernel(ctx context.Context, progress io.Writer, dir string) (string, error) {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: the guests' kernel is Debian's: on Debian 12 or later, as root, go run ./hack/krbd (%w)", ErrNone, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	depends, err := output(ctx, dir, "apt-cache", "depends", "linux-image-amd64")
	if err != nil {
		return "", err
	}
	name := kernelPackage.FindString(depends)
	if name == "" {
		return "", fmt.Errorf("apt-cache names no kernel that linux-image-amd64 stands for: run apt-get update; it said %q", depends)
	}
	fmt.Fprintf(progress, "fetching %s for the guests, once, 70 MB\n", name)
	temp, err := os.MkdirTemp(dir, "fetch")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if _, err := output(ctx, temp, "apt-get", "download", name); err != nil {
		return "", fmt.Errorf("%w (its list of packages may be old: run apt-get update)", err)
	}
	debs, err := filepath.Glob(filepath.Join(temp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", errors.Join(fmt.Errorf("apt-get download %s left %d files", name, len(debs)), err)
	}
	if _, err := output(ctx, temp, "dpkg", "-x", debs[0], "root"); err != nil {
		return "", err
	}
	final := filepath.Join(dir, name)
	if err := os.Rename(filepath.Join(temp, "root"), final); err != nil {
		if _, gone := os.Stat(final); gone != nil {
			return "", err
		}
	}
	return final, nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), errors.Join(err, context.Cause(ctx)), strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
