package mapper

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// What a server process and this package agree on.
const (
	FuseType   = "custody-rbd" // of the file system: fuse.custody-rbd
	fuseSource = "custody-rbd:"
	FuseFile   = "image" // the one file in it
	fuseKeep   = "keep\n"
)

// FuseOrder is what a server process reads from its standard input: one line of JSON. After it has answered with a
// [FuseAnswer], it reads the line "keep", and ends if it doesn't come: then whoever asked for the device has died.
type FuseOrder struct {
	Config  FuseConfig
	Volume  string
	Mount   string // folder to mount at
	Control string // socket to listen on
}

// FuseConfig is [ceph.Config] with its key in the clear; it goes through a pipe only.
type FuseConfig struct {
	ID, Monitors, User, Key string
	Timeout                 time.Duration
	Settings                map[string]string
}

// FuseAnswer is what a server process says once it serves, or why it can't.
type FuseAnswer struct {
	Instance exclusive.Instance
	Error    string
}

// FuseControl is a line that a server process takes on its socket, and answers with a FuseAnswer.
type FuseControl struct {
	Verb  string // "reach"
	Epoch uint64
}

// Source is how a server's mount names its volume and its client; the kernel keeps it as long as the mount.
func (o FuseOrder) Source(i exclusive.Instance) string {
	return fuseSource + o.Volume + "@" + string(i)
}

// Keep reads the line that says that the device is wanted.
func Keep(r *bufio.Reader) bool {
	line, err := r.ReadString('\n')
	return err == nil && line == fuseKeep
}

// Fuse maps through a server process for each image, by FUSE and a loop device.
type Fuse struct {
	// Dir holds sockets and mount points. Short: a socket's path has 107 bytes at most.
	Dir string
	// Server is the command that serves, package rbdfuse.
	Server []string
	// Env is what the server has beside this process's environment.
	Env []string
	// Config gives the node's identity as it is now.
	Config func() (ceph.Config, error)
	// Timeout of each step; 0 is DefaultTimeout.
	Timeout time.Duration
}

func (f *Fuse) within() time.Duration {
	if f.Timeout == 0 {
		return DefaultTimeout
	}
	return f.Timeout
}

// served is a mount of a server, as the kernel has it.
type served struct {
	exclusive.Mapping
	dir string // the folder of this server
}

func (f *Fuse) all() ([]served, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	behind, err := loops()
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(f.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := []served{}
	for _, m := range all {
		volume, instance, ok := strings.Cut(strings.TrimPrefix(m.source, fuseSource), "@")
		if m.fs != "fuse."+FuseType || !ok || filepath.Dir(filepath.Dir(m.point)) != root {
			continue
		}
		s := served{exclusive.Mapping{Device: m.point, Volume: volume, Instance: exclusive.Instance(instance)}, filepath.Dir(m.point)}
		if device := behind[filepath.Join(m.point, FuseFile)]; device != "" {
			s.Device = device
		}
		found = append(found, s)
	}
	return found, nil
}

// List implements [Mapper]. A server without a loop device is listed by its mount point.
func (f *Fuse) List(_ context.Context, volume string) ([]exclusive.Mapping, error) {
	all, err := f.all()
	if err != nil {
		return nil, err
	}
	found := []exclusive.Mapping{}
	for _, s := range all {
		if s.Volume == volume {
			found = append(found, s.Mapping)
		}
	}
	return found, nil
}

// find gives the server that has this client.
func (f *Fuse) find(m exclusive.Mapping) (served, bool, error) {
	all, err := f.all()
	for _, s := range all {
		if s.Volume == m.Volume && s.Instance == m.Instance {
			return s, true, nil
		}
	}
	return served{}, false, err
}

// Map implements [Mapper].
func (f *Fuse) Map(ctx context.Context, volume string) (_ exclusive.Mapping, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.within())
	defer cancel()
	config, err := f.Config()
	if err != nil {
		return exclusive.Mapping{}, err
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return exclusive.Mapping{}, err
	}
	root, err := filepath.EvalSymlinks(f.Dir)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	dir := filepath.Join(root, rand.Text()[:10])
	order := FuseOrder{
		Config: FuseConfig{config.ID, config.Monitors, config.User, string(config.Key), config.Timeout, config.Settings},
		Volume: volume, Mount: filepath.Join(dir, "fs"), Control: filepath.Join(dir, "control"),
	}
	if err := os.MkdirAll(order.Mount, 0o700); err != nil {
		return exclusive.Mapping{}, err
	}
	m := exclusive.Mapping{Device: order.Mount, Volume: volume}
	server, err := f.start(ctx, order)
	if err != nil {
		return exclusive.Mapping{}, errors.Join(err, removeDir(dir))
	}
	m.Instance = server.instance
	defer func() {
		server.release(err == nil)
		if err != nil {
			err = errors.Join(err, f.Unmap(context.WithoutCancel(ctx), m))
		}
	}()
	if m.Device, err = attach(ctx, filepath.Join(order.Mount, FuseFile)); err != nil {
		m.Device = order.Mount
		return exclusive.Mapping{}, err
	}
	return m, nil
}

// server is a server process until it is let go.
type server struct {
	instance exclusive.Instance
	stdin    *os.File
}

// release lets the server go on by itself, or end.
func (s *server) release(keep bool) {
	if keep {
		_, _ = s.stdin.WriteString(fuseKeep) // if it is gone its mount is too, and the caller sees that
	}
	s.stdin.Close()
}

// start runs a server and returns when it serves. The key goes through a pipe.
func (f *Fuse) start(ctx context.Context, order FuseOrder) (*server, error) {
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	stdout, out, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	defer stdout.Close()
	cmd := exec.Command(f.Server[0], f.Server[1:]...) // it outlives ctx
	cmd.Env = append(os.Environ(), f.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C at this process is not for it
	err = cmd.Start()
	out.Close()
	if err != nil {
		stdin.Close()
		return nil, fmt.Errorf("start the server of %s: %w", order.Volume, err)
	}
	go func() { _ = cmd.Wait() }() // reaped; how it ends shows in its mount
	answer, err := f.ask(ctx, stdout, func() error {
		_, err := stdin.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		stdin.Close()
		_ = cmd.Process.Kill() // unless it has ended
		return nil, fmt.Errorf("server of %s: %w", order.Volume, err)
	}
	return &server{answer.Instance, stdin}, nil
}

// deadliner is a pipe or a socket.
type deadliner interface {
	Read([]byte) (int, error)
	SetReadDeadline(time.Time) error
}

// ask says something and reads the answer, until ctx ends.
func (f *Fuse) ask(ctx context.Context, from deadliner, say func() error) (FuseAnswer, error) {
	stop := context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Now()) })
	defer stop()
	var answer FuseAnswer
	if err := say(); err != nil {
		return answer, err
	}
	line, err := bufio.NewReader(from).ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("it gave no answer: %w", errors.Join(err, context.Cause(ctx)))
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return answer, fmt.Errorf("its answer can't be read: %w", err)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

// Reach implements [Mapper]: the server asks for the latest map on the image's own connection.
func (f *Fuse) Reach(ctx context.Context, m exclusive.Mapping, epoch uint64) error {
	ctx, cancel := context.WithTimeout(ctx, f.within())
	defer cancel()
	s, ok, err := f.find(m)
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("there is no such device any more")
	}
	text, err := json.Marshal(FuseControl{"reach", epoch})
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, "control"))
	if err != nil {
		return fmt.Errorf("ask its server: %w", err)
	}
	defer c.Close()
	answer, err := f.ask(ctx, c, func() error {
		_, err := c.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("its server: %w", err)
	}
	if answer.Instance != m.Instance {
		return fmt.Errorf("its server is client %s", answer.Instance)
	}
	return nil
}

// Unmap implements [Mapper]: the loop device, then the mount, then the server.
func (f *Fuse) Unmap(ctx context.Context, m exclusive.Mapping) error {
	s, ok, err := f.find(m)
	if err != nil || !ok {
		return err
	}
	if s.Device != filepath.Join(s.dir, "fs") {
		if err := detach(ctx, s.Device, filepath.Join(s.dir, "fs", FuseFile)); err != nil {
			return err
		}
	}
	// The image is not in use any more, so that a server which hangs may be killed; both waits are for its answers. One
	// that ends in order gives the image's lock back.
	short, cancel := context.WithTimeout(ctx, f.within()/4)
	defer cancel()
	point := filepath.Join(s.dir, "fs")
	if err := errors.Join(unmount(short, point), f.ended(short, s.dir)); err != nil {
		pid, err := f.process(s.dir)
		if err != nil {
			return err
		}
		if err := unix.Kill(pid, unix.SIGKILL); pid != 0 && err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill the server %d: %w", pid, err)
		}
		if err := unmount(ctx, point); err != nil {
			return err
		}
	}
	return removeDir(s.dir)
}

// ended returns when the server's process is gone.
func (f *Fuse) ended(ctx context.Context, dir string) error {
	for {
		pid, err := f.process(dir)
		if err != nil || pid == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server %d has not ended: %w", pid, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// process gives the process that listens on a server's socket, 0 if none does.
func (f *Fuse) process(dir string) (int, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "control")})
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for the server: %w", err)
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var got error
	err = raw.Control(func(fd uintptr) { peer, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, got); err != nil {
		return 0, fmt.Errorf("look for the server: %w", err)
	}
	return int(peer.Pid), nil
}

// Process gives the process that serves a device, 0 if it is gone. Where that dies, so does the device.
func (f *Fuse) Process(m exclusive.Mapping) (int, error) {
	s, ok, err := f.find(m)
	if err != nil || !ok {
		return 0, err
	}
	return f.process(s.dir)
}

// Refresh implements [Mapper].
func (f *Fuse) Refresh(ctx context.Context, m exclusive.Mapping) error {
	_, err := run(ctx, f.within(), "losetup", "--set-capacity", m.Device)
	return err
}

// removeDir removes a server's folder, and never what is mounted in it.
func removeDir(dir string) error {
	return errors.Join(gone(os.Remove(filepath.Join(dir, "control"))), gone(unix.Rmdir(filepath.Join(dir, "fs"))), gone(unix.Rmdir(dir)))
}

func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
