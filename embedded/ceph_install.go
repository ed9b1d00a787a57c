package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrNoCeph says that there is no Ceph on this machine and that it can't be installed from here.
var ErrNoCeph = errors.New("no Ceph here")

// ErrNoPackages says that packages can't be installed from here.
var ErrNoPackages = errors.New("packages can't be installed here")

const installWithin = 15 * time.Minute

// cephPackages are Debian's. Nothing of them starts by itself. The two -dev ones are needed to build with the tag ceph.
var cephPackages = []string{
	"ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph-common", "librbd-dev", "librados-dev", "rbd-fuse",
}

// cephPrograms gives the path of each program by its name.
type cephPrograms map[string]string

func findCeph() (found cephPrograms, lacking []string) {
	found = cephPrograms{}
	for _, name := range []string{"ceph-mon", "monmaptool", "ceph-osd", "radosgw", "radosgw-admin", "rbd", "rados", "ceph"} {
		path, err := exec.LookPath(name)
		if err != nil {
			lacking = append(lacking, name)
		}
		found[name] = path
	}
	for _, file := range []string{"/usr/include/rados/librados.h", "/usr/include/rbd/librbd.h", debianPython} {
		if _, err := os.Stat(file); err != nil {
			lacking = append(lacking, file)
		}
	}
	return found, lacking
}

// InstallCeph installs what lacks of Ceph: Debian's packages, as root on Debian or a derivative of it, about a minute,
// shown on progress. Anywhere else the error is [ErrNoCeph] and says how to get them. Call it before a build with the
// tag ceph, which needs Ceph's headers.
func InstallCeph(ctx context.Context, progress io.Writer) error {
	_, lacking := findCeph()
	if len(lacking) == 0 {
		return nil
	}
	err := InstallPackages(ctx, progress, "Ceph", cephPackages)
	if errors.Is(err, ErrNoPackages) {
		return fmt.Errorf("%w (%s): %w", ErrNoCeph, strings.Join(lacking, ", "), err)
	}
	if err != nil {
		return err
	}
	if _, lacking = findCeph(); len(lacking) > 0 {
		return fmt.Errorf("%w: %s installed, but %s still lack", ErrNoCeph, strings.Join(cephPackages, ", "), strings.Join(lacking, ", "))
	}
	return nil
}

// InstallPackages installs Debian's packages, shown on progress, and waits for others who install. Where it can't, since
// this is another system or another user, the error is [ErrNoPackages] and says what to run.
func InstallPackages(ctx context.Context, progress io.Writer, what string, packages []string) error {
	how := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return fmt.Errorf("%w: as root on Debian 12 or later, run %s", ErrNoPackages, how)
	}
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	fmt.Fprintf(progress, "installing %s for the tests, once, about a minute: %s\n", what, how)
	begin := time.Now()
	// Another test's process may be at it: apt's own lock makes this one wait.
	wait := "DPkg::Lock::Timeout=600"
	for _, args := range [][]string{
		{"-o", wait, "update"},
		append([]string{"-o", wait, "install", "-y", "--no-install-recommends"}, packages...),
	} {
		if err := runShown(ctx, progress, begin, apt, args...); err != nil {
			return fmt.Errorf("install %s: %w; by hand: %s", what, err, how)
		}
	}
	fmt.Fprintf(progress, "%s is installed, after %s\n", what, time.Since(begin).Round(time.Second))
	return nil
}

// runShown runs a program and shows a line of what it says every few seconds.
func runShown(ctx context.Context, progress io.Writer, begin time.Time, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	shown := begin
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if time.Since(shown) > 5*time.Second {
			shown = time.Now()
			fmt.Fprintf(progress, "  %s: %s\n", time.Since(begin).Round(time.Second), lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return nil
}
