package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	lowestPort  = 15000
	portGuesses = 100
)

// FreePort returns a loopback TCP port that is free now and that the kernel
// doesn't hand out to outgoing connections. A port that it does hand out can be
// lost while its server is down for a moment: to any client, even to one that
// dials this very port over and over and in the end connects to itself.
func FreePort() (int, error) {
	highest := firstEphemeralPort() - 1
	for range portGuesses {
		if highest <= lowestPort {
			break
		}
		port := lowestPort + rand.IntN(highest-lowestPort)
		if listenable(port) == nil {
			return port, nil
		}
	}
	l, err := listen(0)
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// firstEphemeralPort is where the range of outgoing connections begins (ip(7)),
// 32768 unless the machine says otherwise.
func firstEphemeralPort() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if fields := strings.Fields(string(text)); err == nil && len(fields) == 2 {
		if first, err := strconv.Atoi(fields[0]); err == nil {
			return first
		}
	}
	return 32768
}

func listenable(port int) error {
	l, err := listen(port)
	if err != nil {
		return err
	}
	return l.Close()
}

// listen needs no context: no name is looked up.
func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", address(port))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// A PortError says that a port that was asked for can't be had.
type PortError struct {
	Server string // who wants it
	Port   int
	Option string // field of the options that chooses another
	Flag   string // and the flag that "make up" has for it
	Holder string // process that listens on it, "" if it isn't known
	Err    error
}

func (e *PortError) Error() string {
	if !errors.Is(e.Err, syscall.EADDRINUSE) {
		return fmt.Sprintf("%s can't listen on port %d: %v; choose another with --%s (%s)", e.Server, e.Port, e.Err, e.Flag, e.Option)
	}
	holder := "another process"
	if e.Holder != "" {
		holder = e.Holder
	}
	return fmt.Sprintf("port %d, wanted for %s, is in use by %s: stop that, or choose another port with --%s (%s)", e.Port, e.Server, holder, e.Flag, e.Option)
}

func (e *PortError) Unwrap() error { return e.Err }

// want fails with e if its port can't be listened on now.
func (e PortError) want() error {
	if e.Err = listenable(e.Port); e.Err == nil {
		return nil
	}
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		e.Holder = portHolder(e.Port)
	}
	return &e
}

// portHolder names the process that listens on a port. It finds only what this
// user may see, and only on Linux.
func portHolder(port int) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			// sl local_address rem_address st ... inode: proc(5); state 0A is LISTEN.
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				inodes["socket:["+fields[9]+"]"] = true
			}
		}
		f.Close()
	}
	if len(inodes) == 0 {
		return ""
	}
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, fd := range descriptors {
		if target, err := os.Readlink(fd); err == nil && inodes[target] {
			process := filepath.Dir(filepath.Dir(fd))
			name, err := os.ReadFile(filepath.Join(process, "comm"))
			if err != nil {
				continue
			}
			return fmt.Sprintf("process %s (%s)", filepath.Base(process), strings.TrimSpace(string(name)))
		}
	}
	return ""
}
