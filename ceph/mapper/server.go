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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// What a server process does.
const (
	ServeFuse = "fuse"
	ServeNBD  = "nbd"
)

// Files in a server's folder.
const (
	pointName   = "fs"      // where it mounts
	socketName  = "control" // where it takes questions
	clientName  = "client"  // which client it is
	keepWanted  = "keep\n"
	folderChars = 10
)

// Order is what a server process reads from its standard input: one line of JSON. After it has answered with an
// [Answer], it reads the line "keep", and ends if that doesn't come: then whoever asked for the device has died.
type Order struct {
	Front  string // ServeFuse or ServeNBD
	Config OrderConfig
	Volume string
	Dir    string // the server's own folder

	ReadOnly bool
}

// OrderConfig is [ceph.Config] with its key in the clear; it goes through a pipe only.
type OrderConfig struct {
	ID, Monitors, User, Key string
	Timeout                 time.Duration
	Settings                map[string]string
}

// Point is where the server mounts its file system.
func (o Order) Point() string { return filepath.Join(o.Dir, pointName) }

// Socket is where the server takes a [Question].
func (o Order) Socket() string { return filepath.Join(o.Dir, socketName) }

// NoteClient writes down which client the server is, before there is a device.
func (o Order) NoteClient(i exclusive.Instance) error {
	return os.WriteFile(filepath.Join(o.Dir, clientName), []byte(i), 0o600)
}

// Answer is what a server process says once it serves, or why it can't.
type Answer struct {
	Instance exclusive.Instance
	Device   string // ServeNBD: the device
	Error    string
}

// Question is a line that a server process takes on its socket, and answers with an Answer.
type Question struct {
	Verb  string // "reach", "refresh", "stop"
	Epoch uint64
}

// Keep reads the line that says that the device is wanted.
func Keep(r *bufio.Reader) bool {
	line, err := r.ReadString('\n')
	return err == nil && line == keepWanted
}

// Servers runs a server process, package server, for each image.
type Servers struct {
	// Dir holds a folder for each. Short: the path of a socket has 107 bytes at most.
	Dir string
	// Command runs a server. The volume and the server's folder are added to it, so that they show in its arguments.
	Command []string
	// Env is what a server has beside this process's environment.
	Env []string
	// Config gives the node's identity as it is now.
	Config func() (ceph.Config, error)
	// Timeout of each step; 0 is DefaultTimeout.
	Timeout time.Duration
	// ReadOnly makes devices that take no writes; the image is not watched and its lock is not taken.
	ReadOnly bool
}

func (s *Servers) within() time.Duration {
	if s.Timeout == 0 {
		return DefaultTimeout
	}
	return s.Timeout
}

// started is a server process until it is let go.
type started struct {
	Answer
	dir   string
	stdin *os.File
}

// release lets the server go on by itself, or end.
func (s *started) release(keep bool) {
	if keep {
		_, _ = s.stdin.WriteString(keepWanted) // if it is gone its device is too, and the caller sees that
	}
	s.stdin.Close()
}

// start runs a server and returns when it serves. The key goes through a pipe.
func (s *Servers) start(ctx context.Context, front, volume string) (_ *started, err error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(s.Dir) // as the kernel will give it back
	if err != nil {
		return nil, err
	}
	order := Order{
		Front: front, Volume: volume, ReadOnly: s.ReadOnly, Dir: filepath.Join(root, rand.Text()[:folderChars]),
		Config: OrderConfig{config.ID, config.Monitors, config.User, string(config.Key), config.Timeout, config.Settings},
	}
	if err := os.MkdirAll(order.Point(), 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("server of %s: %w", volume, err), removeDir(order.Dir))
		}
	}()
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
	cmd := exec.Command(s.Command[0], append(s.Command[1:], volume, order.Dir)...) //nolint:noctx // it outlives ctx
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C at this process is not for it
	err = cmd.Start()
	out.Close()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // reaped; how it ends shows in its device
	answer, err := ask(ctx, stdout, func() error {
		_, err := stdin.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		stdin.Close()
		_ = cmd.Process.Kill() // unless it has ended
		return nil, err
	}
	return &started{answer, order.Dir, stdin}, nil
}

// deadliner is a pipe or a socket.
type deadliner interface {
	Read([]byte) (int, error)
	SetReadDeadline(time.Time) error
}

// ask says something and reads the answer, until ctx ends.
func ask(ctx context.Context, from deadliner, say func() error) (Answer, error) {
	stop := context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Now()) })
	defer stop()
	var answer Answer
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

// question asks the server in a folder, which must be this client.
func (s *Servers) question(ctx context.Context, dir string, i exclusive.Instance, q Question) error {
	ctx, cancel := context.WithTimeout(ctx, s.within())
	defer cancel()
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, socketName))
	if err != nil {
		return fmt.Errorf("ask its server: %w", err)
	}
	defer c.Close()
	answer, err := ask(ctx, c, func() error {
		_, err := c.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("its server: %w", err)
	}
	if answer.Instance != i {
		return fmt.Errorf("its server is client %s", answer.Instance)
	}
	return nil
}

// ended returns when the server's process is gone.
func (s *Servers) ended(ctx context.Context, dir string) error {
	for {
		pid, err := s.process(dir)
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

// kill ends a server at once.
func (s *Servers) kill(dir string) error {
	pid, err := s.process(dir)
	if err != nil || pid == 0 {
		return err
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill the server %d: %w", pid, err)
	}
	return nil
}

// process gives the process that listens on a server's socket, 0 if none does.
func (s *Servers) process(dir string) (int, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
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

// removeDir removes a server's folder, and never what is mounted in it.
func removeDir(dir string) error {
	return errors.Join(
		gone(os.Remove(filepath.Join(dir, socketName))), gone(os.Remove(filepath.Join(dir, clientName))),
		gone(unix.Rmdir(filepath.Join(dir, pointName))), gone(unix.Rmdir(dir)),
	)
}

func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
