//go:build ceph

package takeover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrNoMachines says that this process can't make machines here.
var ErrNoMachines = errors.New("needs root, /dev/fuse, losetup and iproute2 (apt-get install iproute2) to play machines")

const ipWithin = 20 * time.Second

// Network joins machines and cluster: a bridge with the cluster's address, and a network namespace for each machine.
type Network struct {
	bridge string
	prefix netip.Prefix // the cluster's address in it
	last   netip.Addr
	spaces []string
}

// OpenNetwork makes the bridge, with a subnet that this machine does not use. The error is [ErrNoMachines] where that
// can't be.
func OpenNetwork() (*Network, error) {
	_, fuse := os.Stat("/dev/fuse")
	_, ip := exec.LookPath("ip")
	_, enter := exec.LookPath("nsenter")
	if err := errors.Join(fuse, ip, enter); err != nil || os.Getuid() != 0 {
		return nil, ErrNoMachines
	}
	used, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("look for a free subnet: %w", err)
	}
	n := &Network{bridge: fmt.Sprintf("cb%d", os.Getpid())}
	for third := 1; third < 255 && !n.prefix.IsValid(); third++ {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, byte(third), 1}), 24)
		if !overlaps(p, used) {
			n.prefix, n.last = p, p.Addr()
		}
	}
	for _, args := range [][]string{
		{"link", "add", n.bridge, "type", "bridge"},
		{"addr", "add", n.prefix.String(), "dev", n.bridge},
		{"link", "set", n.bridge, "up"},
	} {
		if err := runIP(args...); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoMachines, err), n.Close())
		}
	}
	return n, nil
}

func overlaps(p netip.Prefix, used []net.Addr) bool {
	for _, a := range used {
		if q, err := netip.ParsePrefix(a.String()); err == nil && q.Overlaps(p) {
			return true
		}
	}
	return false
}

// IP is the address for the cluster to listen on.
func (n *Network) IP() string { return n.prefix.Addr().String() }

// Close removes namespaces and bridge. What still runs in a namespace keeps it, without a name and without a link.
func (n *Network) Close() error {
	var errs []error
	for _, space := range n.spaces {
		errs = append(errs, runIP("netns", "del", space))
	}
	if _, err := net.InterfaceByName(n.bridge); err == nil {
		errs = append(errs, runIP("link", "del", n.bridge))
	}
	n.spaces = nil
	return errors.Join(errs...)
}

// space is a machine's network namespace.
type space struct{ name, link string }

// space makes a namespace with an address of its own, joined to the bridge.
func (n *Network) space() (space, error) {
	n.last = n.last.Next()
	number := len(n.spaces) + 1
	s := space{name: fmt.Sprintf("custody-%d-%d", os.Getpid(), number), link: fmt.Sprintf("cv%d-%d", os.Getpid(), number)}
	if err := runIP("netns", "add", s.name); err != nil {
		return s, err
	}
	n.spaces = append(n.spaces, s.name)
	address := netip.PrefixFrom(n.last, n.prefix.Bits()).String()
	for _, args := range [][]string{
		{"link", "add", s.link, "type", "veth", "peer", "name", "eth0", "netns", s.name},
		{"link", "set", s.link, "master", n.bridge, "up"},
		{"-n", s.name, "addr", "add", address, "dev", "eth0"},
		{"-n", s.name, "link", "set", "eth0", "up"},
		{"-n", s.name, "link", "set", "lo", "up"},
	} {
		if err := runIP(args...); err != nil {
			return s, err
		}
	}
	return s, nil
}

// command runs a program in the namespace. (Not "ip netns exec": that takes a mount namespace too, and nobody else
// would see the mounts.)
func (s space) command(path string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + s.name, path}, args...)...) //nolint:noctx // ended by the machine
}

// set joins the namespace to the bridge, or cuts it off: nothing comes or goes, and nobody is told.
func (s space) set(joined bool) error {
	word := "down"
	if joined {
		word = "up"
	}
	return runIP("link", "set", s.link, word)
}

func runIP(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), ipWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
