//go:build ceph

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// questionWithin is how long a question on the socket may take to arrive.
const questionWithin = 10 * time.Second

// front is how the kernel gets at the image.
type front interface {
	device() string
	refresh(size uint64) error
	stop() error // the kernel has no use for it any more
	wait()       // until the kernel has let go of it
}

// Serve takes an order, serves, and returns when the device is gone. See [mapper.Order].
func Serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	var order mapper.Order
	if err := json.Unmarshal(line, &order); err != nil {
		return errors.New("the order can't be read") // it has a key: not quoted
	}
	s, err := start(order)
	if err != nil {
		return errors.Join(err, answer(out, mapper.Answer{Error: err.Error()}))
	}
	err = answer(out, mapper.Answer{Instance: s.instance, Device: s.front.device()})
	if err == nil && !mapper.Keep(lines) {
		err = errors.New("whoever wanted the device is gone")
	}
	if err != nil {
		err = errors.Join(err, s.front.stop())
	}
	s.front.wait()
	return errors.Join(err, s.close())
}

func answer(w io.Writer, a mapper.Answer) error {
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
	front    front
}

func start(o mapper.Order) (_ *server, err error) {
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
		// A hole must read as zeros, however small: the kernel writes zeros that way.
		"rbd_skip_partial_discard": "false",
	})
	if err != nil {
		return s, err
	}
	if s.io, err = s.rados.OpenIOContext(i.Pool); err != nil {
		return s, fmt.Errorf("open pool %q: %w", i.Pool, err)
	}
	s.io.SetNamespace(i.Namespace)
	open := rbd.OpenImageById
	if o.ReadOnly {
		open = rbd.OpenImageByIdReadOnly
	}
	if s.image, err = open(s.io, i.ID, rbd.NoSnapshot); err != nil {
		return s, fmt.Errorf("open image %s: %w", i.Spec(), err)
	}
	if err = o.NoteClient(s.instance); err != nil {
		return s, fmt.Errorf("note its client: %w", err)
	}
	if s.control, err = (&net.ListenConfig{}).Listen(context.Background(), "unix", o.Socket()); err != nil {
		return s, err
	}
	disk := &disk{image: s.image}
	switch o.Front {
	case mapper.ServeFuse:
		s.front, err = mount(o.Point(), o.Source(s.instance), disk)
	case mapper.ServeNBD:
		s.front, err = connect("/dev", disk, o.ReadOnly)
	default:
		err = fmt.Errorf("no front %q", o.Front)
	}
	if err != nil {
		return s, err
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
			err := s.answerOne(c)
			if errors.Is(err, io.EOF) {
				return // somebody has looked for the process
			}
			a := mapper.Answer{Instance: s.instance}
			if err != nil {
				a.Error = err.Error()
			}
			_ = answer(c, a) // if it is gone, nobody minds
		}()
	}
}

func (s *server) answerOne(c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(questionWithin)); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil {
		return err
	}
	var q mapper.Question
	if err := json.Unmarshal(line, &q); err != nil {
		return fmt.Errorf("the question can't be read: %w", err)
	}
	switch q.Verb {
	case "reach":
		return ceph.Reach(s.rados, q.Epoch)
	case "refresh":
		size, err := s.image.GetSize()
		if err != nil {
			return err
		}
		return s.front.refresh(size)
	case "stop":
		return s.front.stop()
	}
	return fmt.Errorf("no verb %q", q.Verb)
}
