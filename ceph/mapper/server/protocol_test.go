package server

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
)

// memory is a disk that can fail.
type memory struct {
	mu      sync.Mutex
	data    []byte
	flushed int
	errno   syscall.Errno
}

func (m *memory) read(into []byte, at int64) (int, syscall.Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(into, m.data[at:]), m.errno
}

func (m *memory) write(from []byte, at int64) (int, syscall.Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.errno != 0 {
		return 0, m.errno
	}
	return copy(m.data[at:], from), 0
}

func (m *memory) flush() syscall.Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed++
	return m.errno
}

func (m *memory) zero(at, length uint64) syscall.Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.data[at : at+length])
	return m.errno
}

// kernel asks over a connection.
type kernel struct {
	t    *testing.T
	conn net.Conn
}

func (k kernel) send(command uint32, handle, at uint64, length uint32, data []byte) {
	k.t.Helper()
	var b bytes.Buffer
	for _, v := range []any{uint32(requestMagic), command, handle, at, length, data} {
		if err := binary.Write(&b, binary.BigEndian, v); err != nil {
			k.t.Fatal(err)
		}
	}
	if _, err := k.conn.Write(b.Bytes()); err != nil {
		k.t.Fatal(err)
	}
}

func (k kernel) reply(data []byte) (handle uint64, errno uint32) {
	k.t.Helper()
	var head [replySize]byte
	if _, err := io.ReadFull(k.conn, head[:]); err != nil {
		k.t.Fatal(err)
	}
	if magic := binary.BigEndian.Uint32(head[:]); magic != replyMagic {
		k.t.Fatalf("reply begins with %#x", magic)
	}
	errno = binary.BigEndian.Uint32(head[4:])
	if errno == 0 {
		if _, err := io.ReadFull(k.conn, data); err != nil {
			k.t.Fatal(err)
		}
	}
	return binary.BigEndian.Uint64(head[8:]), errno
}

func TestTransmit(t *testing.T) {
	disk := &memory{data: make([]byte, 1<<16)}
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- transmit(ours, disk) }()
	k := kernel{t, theirs}
	expect := func(handle uint64, errno syscall.Errno, data []byte) {
		t.Helper()
		if h, e := k.reply(data); h != handle || e != uint32(errno) {
			t.Errorf("reply to %d with %d; wanted %d with %d", h, e, handle, errno)
		}
	}
	text := bytes.Repeat([]byte("custody!"), 512)
	k.send(cmdWrite|1<<16, 1, 4096, uint32(len(text)), text) // with the flag for forced unit access
	expect(1, 0, nil)
	got := make([]byte, len(text))
	k.send(cmdRead, 2, 4096, uint32(len(got)), nil)
	expect(2, 0, got)
	if !bytes.Equal(got, text) {
		t.Error("read something else than was written")
	}
	k.send(cmdTrim, 3, 4096, 8, nil)
	expect(3, 0, nil)
	k.send(cmdRead, 4, 4096, 16, nil)
	expect(4, 0, got[:16])
	if want := "\x00\x00\x00\x00\x00\x00\x00\x00custody!"; string(got[:16]) != want {
		t.Errorf("after a hole: %q", got[:16])
	}
	k.send(cmdFlush, 5, 0, 0, nil)
	expect(5, 0, nil)
	if disk.flushed != 1 {
		t.Errorf("flushed %d times", disk.flushed)
	}
	k.send(99, 6, 0, 0, nil)
	expect(6, syscall.EINVAL, nil)

	disk.mu.Lock()
	disk.errno = syscall.EIO // fenced
	disk.mu.Unlock()
	k.send(cmdWrite, 7, 0, 4, []byte("late"))
	expect(7, syscall.EIO, nil)
	k.send(cmdRead, 8, 0, 4, nil)
	expect(8, syscall.EIO, nil) // no data follow
	k.send(cmdFlush, 9, 0, 0, nil)
	expect(9, syscall.EIO, nil)

	k.send(cmdDisconnect, 10, 0, 0, nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTransmitGarbage(t *testing.T) {
	for _, garbage := range [][]byte{bytes.Repeat([]byte{1}, requestSize), append([]byte{0x25, 0x60, 0x95, 0x13, 0, 0, 0, cmdWrite}, bytes.Repeat([]byte{255}, 20)...)} {
		ours, theirs := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- transmit(ours, &memory{}) }()
		if _, err := theirs.Write(garbage); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("garbage was served")
		}
	}
}
