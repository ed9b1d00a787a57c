package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// recordFormat is the version of a record. What has another one is left alone.
const recordFormat = 1

// ErrNoRecord says that nothing is written down of a volume.
var ErrNoRecord = errors.New("there is no record")

// Record is what this node has to know of a volume that it has, or may have, mapped. No secrets.
type Record struct {
	ID      string   `json:"id"`               // the CSI volume id
	Scope   string   `json:"scope"`            // the storage cluster
	Volume  string   `json:"volume"`           // as the registry of holds knows it
	Staging string   `json:"staging"`          // where it is exposed for the workloads of this node
	Block   bool     `json:"block,omitempty"`  // a device, and no file system
	FSType  string   `json:"fsType,omitempty"` //
	Options []string `json:"options,omitempty"`
	// Shared: without a hold, for volumes that many nodes use at once.
	Shared   bool `json:"shared,omitempty"`
	ReadOnly bool `json:"readOnly,omitempty"`
}

type storedRecord struct {
	Format int `json:"format"`
	Record
}

// Records is the folder of records. The caller has the volume's lock.
type Records struct{ dir string }

// OpenRecords makes the folder if it lacks.
func OpenRecords(dir string) (*Records, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of records: %w", err)
	}
	return &Records{dir}, nil
}

const recordSuffix = ".json"

// path is by a digest: an id may be long and hold anything.
func (r *Records) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:16])+recordSuffix)
}

// Put writes a record down. It is on disk when Put returns nil.
func (r *Records) Put(record Record) error {
	text, err := json.MarshalIndent(storedRecord{recordFormat, record}, "", "\t")
	if err != nil {
		return fmt.Errorf("write down the record of %s: %w", record.ID, err)
	}
	path := r.path(record.ID)
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
		return r.sync() // its name may not be on disk yet
	}
	if err := r.write(path, text); err != nil {
		return fmt.Errorf("write down the record of %s: %w", record.ID, err)
	}
	return r.sync()
}

func (r *Records) write(path string, text []byte) error {
	fresh := path + ".new" // one writer: the caller has the volume's lock
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// sync makes names durable.
func (r *Records) sync() error {
	f, err := os.Open(r.dir)
	if err != nil {
		return fmt.Errorf("sync the folder of records: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync the folder of records: %w", err)
	}
	return nil
}

// Get reads a record; ErrNoRecord if there is none.
func (r *Records) Get(id string) (Record, error) {
	record, err := read(r.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("volume %s: %w", id, ErrNoRecord)
	}
	if err == nil && record.ID != id {
		err = fmt.Errorf("record of volume %s: it speaks of volume %q", id, record.ID)
	}
	return record, err
}

func read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	var version struct{ Format int }
	if err := json.Unmarshal(text, &version); err != nil {
		return Record{}, fmt.Errorf("record %s can't be read: %w", path, err)
	}
	if version.Format != recordFormat {
		return Record{}, fmt.Errorf("record %s has format %d, and this version knows %d: run the version that wrote it", path, version.Format, recordFormat)
	}
	var stored storedRecord
	if err := json.Unmarshal(text, &stored); err != nil {
		return Record{}, fmt.Errorf("record %s can't be read: %w", path, err)
	}
	return stored.Record, nil
}

// Drop removes a record. Only after its unmap has succeeded.
func (r *Records) Drop(id string) error {
	if err := os.Remove(r.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of %s: %w", id, err)
	}
	return nil
}

// All gives every record that can be read, and an error for those that can't.
func (r *Records) All() ([]Record, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	all, errs := []Record{}, []error{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		record, err := read(filepath.Join(r.dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, record)
	}
	return all, errors.Join(errs...)
}
