//go:build linux

// Package agent is the first process of a guest: it makes the machine usable and takes commands from the host. A test's
// own agent adds the services that it needs.
//
//	func main() { agent.Main(&Node{}) } // serves the methods Node.*, see net/rpc
//
// Build it without cgo, so that it needs nothing of the guest.
package agent

import (
	"context"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What host and guest know of each other.
const (
	Init       = "/init"         // where the kernel looks for its first process
	ModuleList = "/modules/list" // kernel modules to load, by path and in order
	Port       = "agent"         // name of the serial port
)

const (
	settleWithin = 60 * time.Second
	programs     = "/usr/sbin:/usr/bin:/sbin:/bin"
)

// Main sets the machine up, serves, and never returns. What goes wrong is on the console.
func Main(services ...any) {
	fmt.Fprintln(os.Stderr, "agent:", run(services))
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // QEMU ends instead (-no-reboot)
}

// run serves until the host hangs up; it ends with an error only.
func run(services []any) error {
	for _, step := range []func() error{mounts, modules, network} {
		if err := step(); err != nil {
			return err
		}
	}
	server := rpc.NewServer()
	for _, s := range append(services, &Agent{}) {
		if err := server.Register(s); err != nil {
			return err
		}
	}
	line, err := port()
	if err != nil {
		return err
	}
	server.ServeConn(line)
	return fmt.Errorf("the host has hung up")
}

func mounts() error {
	for _, m := range []struct{ fs, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"debugfs", "/sys/kernel/debug"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.fs, m.at, m.fs, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return os.Setenv("PATH", programs)
}

// modules loads what the host has listed.
func modules() error {
	list, err := os.ReadFile(ModuleList)
	if err != nil {
		return err
	}
	for _, path := range strings.Fields(string(list)) {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	return nil
}

// network makes the host's loopback reachable: QEMU's user network hands on what is sent to 127.0.0.1, if only the
// guest's kernel sends it there. So the guest has no loopback of its own.
func network() error {
	for _, at := range []string{"all", "default"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", at, "route_localnet"), []byte("1"), 0); err != nil {
			return err
		}
	}
	if err := awaited("/sys/class/net/eth0"); err != nil {
		return err
	}
	for _, args := range []string{
		"link set eth0 up", "addr add 10.0.2.15/24 dev eth0", "route add default via 10.0.2.2", "route add 127.0.0.1 via 10.0.2.2 dev eth0",
	} {
		if out, err := exec.Command("/bin/busybox", append([]string{"ip"}, strings.Fields(args)...)...).CombinedOutput(); err != nil { //nolint:noctx // it asks the kernel only
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}

// awaited returns when a file is there.
func awaited(path string) error {
	for end := time.Now().Add(settleWithin); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(path)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// port opens the line to the host.
func port() (*os.File, error) {
	for end := time.Now().Add(settleWithin); ; time.Sleep(10 * time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if text, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(text)) == Port {
				return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(n))), os.O_RDWR, 0)
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("no serial port %s", Port)
		}
	}
}

// Agent is the service that each guest has.
type Agent struct{}

// Command is a program to run, until its time is over.
type Command struct {
	Args   []string
	Within time.Duration
}

// Said is what it said; Error is how it failed.
type Said struct{ Output, Error string }

// Hello answers that the guest is ready.
func (*Agent) Hello(_ struct{}, ok *bool) error {
	*ok = true
	return nil
}

// Run runs a program.
func (*Agent) Run(c Command, said *Said) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Within)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	said.Output = string(out)
	if err != nil {
		said.Error = err.Error()
	}
	return nil
}
