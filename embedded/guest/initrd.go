package guest

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/custody-storage/custody/embedded/guest/agent"
)

// tree is what a guest finds in its root: where each file comes from, by its path there.
type tree map[string]string

// programs are busybox's that a guest uses. What a test runs otherwise is this machine's own.
const busyboxAt = "/bin/busybox"

// build lays out a guest's root and gives the list of modules in the order of loading.
func (s *System) build(ctx context.Context, o Options) (tree, []string, error) {
	t := tree{agent.Init: o.Init, busyboxAt: s.busybox}
	files, err := s.load(append(slices.Clone(lineModules), o.Modules...)...)
	if err != nil {
		return nil, nil, err
	}
	load := []string{}
	for _, f := range files {
		at := filepath.Join("/modules", filepath.Base(f))
		t[at] = f
		load = append(load, at)
	}
	for at, from := range o.Files {
		if err := t.add(ctx, at, from); err != nil {
			return nil, nil, err
		}
	}
	return t, load, nil
}

// add puts a file into the tree and, if it is a program, the shared libraries that it needs.
func (t tree) add(ctx context.Context, at, from string) error {
	t[at] = from
	f, err := elf.Open(from)
	if err != nil {
		return nil //nolint:nilerr // a script or a setting
	}
	defer f.Close()
	if !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil
	}
	said, err := output(ctx, "/", "ldd", from)
	if err != nil {
		return err
	}
	for _, path := range library.FindAllString(said, -1) {
		t[path] = path
	}
	if strings.Contains(said, "not found") {
		return fmt.Errorf("%s lacks libraries on this machine: %s", from, said)
	}
	return nil
}

// library matches a path in what ldd(1) says: "name => /path (0x...)", or "/path (0x...)" for the loader.
var library = regexp.MustCompile(`/\S+`)

// lines are texts that a guest finds as files.
type lines map[string][]string

// write writes the archive that the kernel unpacks into memory (Documentation/driver-api/early-userspace: "newc").
func (t tree) write(path string, texts lines) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a := archive{w: bufio.NewWriter(f), dirs: map[string]bool{"/": true}}
	for _, at := range slices.Sorted(maps.Keys(t)) {
		if err := a.copy(at, t[at]); err != nil {
			return fmt.Errorf("put %s into a guest: %w", t[at], err)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		text := strings.Join(texts[at], "\n")
		if err := a.file(at, int64(len(text)), strings.NewReader(text)); err != nil {
			return err
		}
	}
	if err := a.entry("TRAILER!!!", 0, 0, strings.NewReader("")); err != nil {
		return err
	}
	return a.w.Flush()
}

// archive is a cpio archive that is being written.
type archive struct {
	w    *bufio.Writer
	dirs map[string]bool
	next uint32 // inode
}

const (
	isDir  = 0o040755
	isFile = 0o100755
)

func (a *archive) copy(at, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.file(at, info.Size(), f)
}

func (a *archive) file(at string, size int64, r io.Reader) error {
	if err := a.dir(filepath.Dir(at)); err != nil {
		return err
	}
	return a.entry(at[1:], isFile, size, r)
}

func (a *archive) dir(at string) error {
	if a.dirs[at] {
		return nil
	}
	if err := a.dir(filepath.Dir(at)); err != nil {
		return err
	}
	a.dirs[at] = true
	return a.entry(at[1:], isDir, 0, strings.NewReader(""))
}

// entry writes a header of 6 + 13 * 8 characters, the name and the content, name and content padded to 4 bytes.
func (a *archive) entry(name string, mode uint32, size int64, r io.Reader) error {
	a.next++
	header := []any{a.next, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name) + 1, 0}
	fmt.Fprintf(a.w, "070701"+strings.Repeat("%08x", len(header)), header...) // a failed write shows in Flush
	_, _ = a.w.WriteString(name + "\x00")
	a.pad(int64(6 + 13*8 + len(name) + 1))
	n, err := io.Copy(a.w, r)
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("it has %d bytes, and had %d", n, size)
	}
	a.pad(n)
	return nil
}

func (a *archive) pad(n int64) { _, _ = a.w.Write(make([]byte, (4-n%4)%4)) }
