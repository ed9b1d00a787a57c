//go:build linux

package node

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The part of a device that writers write.
const (
	Blocks    = 256
	BlockSize = 4096
)

// Writing says who writes where. It ends after so many blocks; 0 is never.
type Writing struct {
	Device string
	Name   uint64
	Count  uint64
}

// Wrote is what a writer did until it ended: the last number that was acknowledged, by block, and why it ended.
type Wrote struct {
	Acked [Blocks]uint64
	Error string
}

type writers struct {
	mu  sync.Mutex
	all map[string]*writer
}

type writer struct {
	mu    sync.Mutex
	acked [Blocks]uint64
	stop  chan struct{}
	done  chan error
}

// Begin starts a writer: blocks with its name and a number that grows, past the page cache.
func (n *Node) Begin(w Writing, _ *struct{}) error {
	f, err := os.OpenFile(w.Device, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	one := &writer{stop: make(chan struct{}), done: make(chan error, 1)}
	n.writers.mu.Lock()
	defer n.writers.mu.Unlock()
	if n.writers.all == nil {
		n.writers.all = map[string]*writer{}
	}
	n.writers.all[w.Device] = one
	go func() {
		defer f.Close()
		one.done <- one.run(f, w)
	}()
	return nil
}

func (o *writer) run(f *os.File, w Writing) error {
	// O_DIRECT wants aligned memory.
	room := make([]byte, 2*BlockSize)
	block := room[BlockSize-int(uintptr(unsafe.Pointer(&room[0]))%BlockSize):][:BlockSize]
	for n := uint64(1); n <= w.Count || w.Count == 0; n++ {
		select {
		case <-o.stop:
			return nil
		default:
		}
		at := n % Blocks
		binary.LittleEndian.PutUint64(block, w.Name)
		binary.LittleEndian.PutUint64(block[8:], n)
		if _, err := f.WriteAt(block, int64(at*BlockSize)); err != nil {
			return err
		}
		o.mu.Lock()
		o.acked[at] = n
		o.mu.Unlock()
	}
	return nil
}

func (n *Node) writer(device string) (*writer, error) {
	n.writers.mu.Lock()
	defer n.writers.mu.Unlock()
	if o := n.writers.all[device]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("nobody writes to %s", device)
}

// Acked gives what a writer has had acknowledged so far.
func (n *Node) Acked(device string, w *Wrote) error {
	o, err := n.writer(device)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Acked = o.acked
	return nil
}

// End waits until a writer has ended by itself.
func (n *Node) End(device string, w *Wrote) error {
	o, err := n.writer(device)
	if err != nil {
		return err
	}
	if err := <-o.done; err != nil {
		w.Error = err.Error()
	}
	return n.Acked(device, w)
}

// Stop tells a writer to end, and waits.
func (n *Node) Stop(device string, w *Wrote) error {
	o, err := n.writer(device)
	if err != nil {
		return err
	}
	close(o.stop)
	return n.End(device, w)
}
