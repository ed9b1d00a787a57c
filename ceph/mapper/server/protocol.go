package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// The transmission phase of the NBD protocol, as the kernel speaks it (linux/nbd.h and the protocol's proto.md).
const (
	requestMagic = 0x25609513
	replyMagic   = 0x67446698
	requestSize  = 28
	replySize    = 16

	cmdRead       = 0
	cmdWrite      = 1
	cmdDisconnect = 2
	cmdFlush      = 3
	cmdTrim       = 4

	// maxRequest is more than the kernel ever asks for at once.
	maxRequest = 32 << 20
	// atOnce is how many requests are worked on at a time; the kernel's queue has 128.
	atOnce = 64
)

// blocks is a disk.
type blocks interface {
	read(into []byte, at int64) (int, syscall.Errno)
	write(from []byte, at int64) (int, syscall.Errno)
	flush() syscall.Errno
	zero(at, length uint64) syscall.Errno
}

// request is what the kernel asks.
type request struct {
	command uint16
	handle  [8]byte
	at      uint64
	length  uint32
	data    []byte // of a write
}

func readRequest(from io.Reader) (request, error) {
	var head [requestSize]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return request{}, err
	}
	if magic := binary.BigEndian.Uint32(head[:]); magic != requestMagic {
		return request{}, fmt.Errorf("a request begins with %#x", magic)
	}
	r := request{
		command: binary.BigEndian.Uint16(head[6:]), // flags are before it; a write is durable with and without
		handle:  [8]byte(head[8:16]),
		at:      binary.BigEndian.Uint64(head[16:]),
		length:  binary.BigEndian.Uint32(head[24:]),
	}
	if (r.command == cmdRead || r.command == cmdWrite) && r.length > maxRequest {
		return request{}, fmt.Errorf("a request for %d bytes", r.length)
	}
	if r.command == cmdWrite {
		r.data = make([]byte, r.length)
		if _, err := io.ReadFull(from, r.data); err != nil {
			return request{}, err
		}
	}
	return r, nil
}

// transmit answers requests until the kernel ends the connection, and returns when all are answered.
func transmit(conn io.ReadWriter, disk blocks) error {
	var mu sync.Mutex // of replies
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, atOnce)
	for {
		r, err := readRequest(conn)
		if errors.Is(err, io.EOF) || err == nil && r.command == cmdDisconnect {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			reply := perform(disk, r)
			mu.Lock()
			defer mu.Unlock()
			_, _ = conn.Write(reply) // if it fails, so does the next read
		}()
	}
}

// perform does what is asked and gives the reply.
func perform(disk blocks, r request) []byte {
	reply := make([]byte, replySize)
	var errno syscall.Errno
	switch r.command {
	case cmdRead:
		reply = make([]byte, replySize+int(r.length))
		_, errno = disk.read(reply[replySize:], int64(r.at)) // what is beyond the end reads as zeros
	case cmdWrite:
		var n int
		if n, errno = disk.write(r.data, int64(r.at)); errno == 0 && n != len(r.data) {
			errno = syscall.EIO
		}
	case cmdFlush:
		errno = disk.flush()
	case cmdTrim:
		errno = disk.zero(r.at, uint64(r.length))
	default:
		errno = syscall.EINVAL
	}
	if errno != 0 {
		reply = reply[:replySize]
	}
	binary.BigEndian.PutUint32(reply, replyMagic)
	binary.BigEndian.PutUint32(reply[4:], uint32(errno))
	copy(reply[8:], r.handle[:])
	return reply
}
