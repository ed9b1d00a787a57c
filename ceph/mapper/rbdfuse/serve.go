//go:build ceph

package rbdfuse

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"
	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// controlWithin is how long a question on the socket may take to arrive.
const controlWithin = 10 * time.Second

// Serve takes an order, serves, and returns when the file system is unmounted. See [mapper.FuseOrder].
func Serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	var order mapper.FuseOrder
	if err := json.Unmarshal(line, &order); err != nil {
		return errors.New("the order can't be read") // it has a key: not quoted
	}
	s, err := start(order)
	if err != nil {
		return errors.Join(err, answer(out, mapper.FuseAnswer{Error: err.Error()}))
	}
	if err := answer(out, mapper.FuseAnswer{Instance: s.instance}); err != nil {
		return errors.Join(err, s.fuse.Unmount(), s.close())
	}
	if !mapper.Keep(lines) {
		return errors.Join(errors.New("whoever wanted the device is gone"), s.fuse.Unmount(), s.close())
	}
	s.fuse.Wait()
	return s.close()
}

func answer(w io.Writer, a mapper.FuseAnswer) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// server has one image open by one client.
type server struct {
	rados    *rados.Conn
	io       *rados.IOContext
	image    *rbd.Image
	instance exclusive.Instance
	control  net.Listener
	fuse     *fuse.Server
}

func start(o mapper.FuseOrder) (_ *server, err error) {
	i, err := ceph.ParseImage(o.Volume)
	if err != nil {
		return nil, err
	}
	s := &server{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	config := ceph.Config{
		ID: o.Config.ID, Monitors: o.Config.Monitors, User: o.Config.User, Key: ceph.Secret(o.Config.Key),
		Timeout: o.Config.Timeout, Settings: o.Config.Settings,
	}
	// No deadline for reads and writes of the image: like a disk's, they wait for a cluster that is away.
	s.rados, s.instance, err = ceph.Dial(config, map[string]string{
		"rbd_cache": "false",
		// A hole must read as zeros, however small: the loop device writes zeros that way.
		"rbd_skip_partial_discard": "false",
	})
	if err != nil {
		return s, err
	}
	if s.io, err = s.rados.OpenIOContext(i.Pool); err != nil {
		return s, fmt.Errorf("open pool %q: %w", i.Pool, err)
	}
	s.io.SetNamespace(i.Namespace)
	if s.image, err = rbd.OpenImageById(s.io, i.ID, rbd.NoSnapshot); err != nil {
		return s, fmt.Errorf("open image %s: %w", i.Spec(), err)
	}
	if s.control, err = net.Listen("unix", o.Control); err != nil {
		return s, err
	}
	s.fuse, err = fs.Mount(o.Mount, &root{image: s.image}, &fs.Options{MountOptions: fuse.MountOptions{
		FsName: o.Source(s.instance), Name: mapper.FuseType, DirectMountStrict: true, MaxWrite: 1 << 20, DisableXAttrs: true,
	}})
	if err != nil {
		return s, fmt.Errorf("mount at %s: %w", o.Mount, err)
	}
	go s.answerAll()
	return s, nil
}

// close gives back the image, with its lock. The control socket stays open until the process ends, which is how others
// see that it has.
func (s *server) close() error {
	var err error
	if s.image != nil {
		if err = s.image.Close(); err != nil {
			err = fmt.Errorf("close the image: %w", err)
		}
	}
	if s.io != nil {
		s.io.Destroy()
	}
	if s.rados != nil {
		s.rados.Shutdown()
	}
	return err
}

// answerAll answers on the control socket.
func (s *server) answerAll() {
	for {
		c, err := s.control.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if err := s.answerOne(c); err != nil && !errors.Is(err, io.EOF) { // EOF: somebody has looked for the process
				_ = answer(c, mapper.FuseAnswer{Instance: s.instance, Error: err.Error()}) // if it is gone, nobody minds
			}
		}()
	}
}

func (s *server) answerOne(c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(controlWithin)); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil {
		return err
	}
	var asked mapper.FuseControl
	if err := json.Unmarshal(line, &asked); err != nil {
		return fmt.Errorf("the question can't be read: %w", err)
	}
	if asked.Verb != "reach" {
		return fmt.Errorf("no verb %q", asked.Verb)
	}
	if err := ceph.Reach(s.rados, asked.Epoch); err != nil {
		return err
	}
	return answer(c, mapper.FuseAnswer{Instance: s.instance})
}
