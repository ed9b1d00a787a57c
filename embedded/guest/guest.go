package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/guest/agent"
)

const (
	bootWithin = 3 * time.Minute // 10 s on an idle machine
	megabytes  = 384
)

// lineModules are what a guest needs to hear and to be heard. crc32c_generic is what others ask the kernel for by the
// name of the sum.
var lineModules = []string{"virtio_pci", "virtio_net", "virtio_console", "crc32c_generic"}

// Options says what guest to run.
type Options struct {
	Name string
	// Init is the static program that the guest begins with; it calls agent.Main.
	Init string
	// Modules are loaded when it starts, with what they need, in this order.
	Modules []string
	// Files gives files of this machine by their path in the guest, with the shared libraries that they need.
	Files map[string]string
	// Megabytes of memory; 0 is 384.
	Megabytes int
}

// Guest is a running machine.
type Guest struct {
	*embedded.Process
	dir  string
	line *rpc.Client
}

// Start boots a guest and returns when its agent answers, some 10 s later. ctx is for the start only: the guest runs
// until Stop.
func Start(ctx context.Context, s *System, o Options) (_ *Guest, err error) {
	dir, err := os.MkdirTemp("", "guest") // short: it holds a socket
	if err != nil {
		return nil, err
	}
	g := &Guest{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start guest %s: %w", o.Name, err), g.Stop())
		}
	}()
	initrd := filepath.Join(dir, "initrd")
	t, load, err := s.build(ctx, o)
	if err != nil {
		return g, err
	}
	if err := t.write(initrd, lines{agent.ModuleList: load}); err != nil {
		return g, err
	}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(dir, "line"))
	if err != nil {
		return g, err
	}
	defer socket.Close()
	memory := o.Megabytes
	if memory == 0 {
		memory = megabytes
	}
	g.Process, err = embedded.StartProcess(ctx, embedded.Command{
		Name: "guest " + o.Name, Path: s.qemu, Args: arguments(s.kernel, initrd, socket.Addr().String(), memory), Dir: dir, Log: filepath.Join(dir, "console"),
		ReadyWithin: bootWithin,
		Ready: func(ctx context.Context) error {
			if g.line == nil {
				c, err := accept(ctx, socket)
				if err != nil {
					return err
				}
				g.line = rpc.NewClient(c)
			}
			return g.hello(ctx)
		},
	})
	return g, err
}

// arguments are QEMU's: software emulation, so that it runs and behaves the same wherever it is tried.
func arguments(kernel, initrd, line string, memory int) []string {
	return []string{
		"-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35", "-smp", "1", "-m", strconv.Itoa(memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-kernel", kernel, "-initrd", initrd,
		"-append", "console=ttyS0 quiet loglevel=5 mitigations=off nokaslr panic=-1 random.trust_cpu=on",
		"-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
		"-chardev", "socket,id=line,path=" + line, "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=line,name=" + agent.Port,
	}
}

// accept waits for QEMU to take up its end of the line.
func accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	return l.Accept()
}

// hello waits for the agent: the line keeps the question until it listens.
func (g *Guest) hello(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootWithin)
	defer cancel()
	var ok bool
	return g.Call(ctx, "Agent.Hello", struct{}{}, &ok)
}

// Call asks a service of the agent, as net/rpc does. At the end of ctx the guest may still do it. A guest that is paused
// answers once it is resumed.
func (g *Guest) Call(ctx context.Context, method string, args, reply any) error {
	call := g.line.Go(method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return fmt.Errorf("%s has not answered %s: %w", g.Command.Name, method, context.Cause(ctx))
	}
}

// Run runs a program in the guest and gives what it says.
func (g *Guest) Run(ctx context.Context, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within+time.Second)
	defer cancel()
	var said agent.Said
	if err := g.Call(ctx, "Agent.Run", agent.Command{Args: args, Within: within}, &said); err != nil {
		return "", err
	}
	if said.Error != "" {
		return said.Output, fmt.Errorf("%s: %s: %s: %s", g.Command.Name, strings.Join(args, " "), said.Error, strings.TrimSpace(said.Output))
	}
	return said.Output, nil
}

// Console gives the last lines of the guest's console.
func (g *Guest) Console() string { return g.Tail(40) }

// Stop ends the guest as a power failure does. It may be called again.
func (g *Guest) Stop() error {
	var err error
	if g.Process != nil {
		err = g.Kill()
	}
	if g.line != nil {
		_ = g.line.Close() // the other end is gone
	}
	return errors.Join(err, os.RemoveAll(g.dir))
}
