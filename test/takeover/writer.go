//go:build ceph

package takeover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// Blocks is how many blocks a writer writes, over several objects of the image.
	Blocks = 32

	blockSize  = 4096
	headSize   = 16
	stride     = 1 << 20
	readWithin = 30 * time.Second
)

// Block is what is in a block: who wrote it, and its number.
type Block struct{ Name, Number uint64 }

// aligned gives memory that O_DIRECT takes.
func aligned() []byte {
	b := make([]byte, 2*blockSize)
	skip := blockSize - int(uintptr(unsafe.Pointer(&b[0]))%blockSize)
	return b[skip : skip+blockSize]
}

func (b Block) fill(into []byte) {
	for at := 0; at < len(into); at += headSize {
		binary.LittleEndian.PutUint64(into[at:], b.Name)
		binary.LittleEndian.PutUint64(into[at+8:], b.Number)
	}
}

// runWriter is the process of a [Writer]. It says each number that was acknowledged, and ends at the first error.
func runWriter(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("it takes a path and a name, not %q", args)
	}
	name, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(args[0], os.O_RDWR|os.O_CREATE|unix.O_DIRECT|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	block := aligned()
	for n := uint64(1); ; n++ {
		Block{name, n}.fill(block)
		if _, err := f.WriteAt(block, int64(n%Blocks)*stride); err != nil {
			return err
		}
		if _, err := out.Write(binary.LittleEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
}

// WriteOnce writes one block with O_DIRECT and O_SYNC: it is in the cluster when this returns.
func WriteOnce(path string, b Block) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_DIRECT|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	block := aligned()
	b.fill(block)
	_, err = f.WriteAt(block, int64(b.Number%Blocks)*stride)
	return errors.Join(err, f.Close())
}

// ReadBlocks reads all blocks from the cluster, past every cache. A block of two halves is an error.
func ReadBlocks(path string) (all [Blocks]Block, err error) {
	done := make(chan error, 1)
	var read [Blocks]Block
	go func() { done <- readBlocks(path, &read) }()
	select {
	case err := <-done:
		return read, err
	case <-time.After(readWithin):
		return all, fmt.Errorf("%s was not read within %s", path, readWithin)
	}
}

func readBlocks(path string, into *[Blocks]Block) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	block, whole := aligned(), make([]byte, blockSize)
	for n := range Blocks {
		if _, err := f.ReadAt(block, int64(n)*stride); err != nil {
			return err
		}
		b := Block{binary.LittleEndian.Uint64(block), binary.LittleEndian.Uint64(block[8:])}
		if b.fill(whole); !bytes.Equal(whole, block) {
			return fmt.Errorf("block %d of %s has parts of two writes", n, path)
		}
		into[n] = b
	}
	return nil
}

// Writer is a workload: a process that writes without pause until it fails.
type Writer struct {
	Name uint64
	Path string

	cmd  *exec.Cmd
	said bytes.Buffer
	done chan struct{}
	err  error // how it ended

	mu     sync.Mutex
	acked  [Blocks]uint64
	count  int
	moved  chan struct{} // closed at the next acknowledged write
	lastAt time.Time
}

// StartWriter starts a workload on a device or file.
func StartWriter(path string, name uint64) (*Writer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &Writer{Name: name, Path: path, done: make(chan struct{}), moved: make(chan struct{})}
	w.cmd = exec.Command(self, path, strconv.FormatUint(name, 10)) //nolint:noctx // it ends by itself, or by Kill
	w.cmd.Env = append(os.Environ(), envRole+"="+roleWrite)
	w.cmd.Stderr = &w.said
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a writer: %w", err)
	}
	go w.note(out)
	return w, nil
}

func (w *Writer) note(out io.Reader) {
	defer close(w.done)
	var text [8]byte
	for {
		if _, err := io.ReadFull(out, text[:]); err != nil {
			break
		}
		n := binary.LittleEndian.Uint64(text[:])
		w.mu.Lock()
		w.acked[n%Blocks], w.lastAt = n, time.Now()
		w.count++
		close(w.moved)
		w.moved = make(chan struct{})
		w.mu.Unlock()
	}
	if err := w.cmd.Wait(); err != nil {
		w.err = fmt.Errorf("writer %d: %w: %s", w.Name, err, bytes.TrimSpace(w.said.Bytes()))
	}
}

// Acked gives the last number that was acknowledged of each block, and how many were in all.
func (w *Writer) Acked() ([Blocks]uint64, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked, w.count
}

// Await returns when so many writes more were acknowledged.
func (w *Writer) Await(ctx context.Context, more int) error {
	_, from := w.Acked()
	for {
		w.mu.Lock()
		count, moved := w.count, w.moved
		w.mu.Unlock()
		if count >= from+more {
			return nil
		}
		select {
		case <-moved:
		case <-w.done:
			if w.err != nil {
				return w.err
			}
			return fmt.Errorf("writer %d has ended", w.Name)
		case <-ctx.Done():
			return fmt.Errorf("writer %d has %d of %d writes: %w", w.Name, count-from, more, context.Cause(ctx))
		}
	}
}

// Ended returns when the writer has ended, with how.
func (w *Writer) Ended(ctx context.Context) (how error, err error) {
	select {
	case <-w.done:
		return w.err, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("writer %d still writes: %w", w.Name, context.Cause(ctx))
	}
}

// Kill ends the writer. One that the kernel holds in a write goes when that does.
func (w *Writer) Kill() { _ = w.cmd.Process.Kill() }
