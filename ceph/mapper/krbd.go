package mapper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// Krbd maps by the kernel's own client (Documentation/ABI/testing/sysfs-bus-rbd).
type Krbd struct {
	// Sys, Dev and Debug are /sys, /dev and /sys/kernel/debug, but in a test.
	Sys, Dev, Debug string
	// Dir holds a note for each device: the osdmap epoch that its client has seen at the least. It may be lost; then the
	// client's epoch is read under Debug.
	Dir string
	// FSID is the cluster's id: devices of other clusters are not looked at.
	FSID string
	// Options of the kernel's client beside these, such as ms_mode=prefer-crc.
	Options []string
	// Config gives the node's identity as it is now.
	Config func() (ceph.Config, error)
	// Epoch gives the newest osdmap epoch of the cluster, by the node's standing connection.
	Epoch func(context.Context) (uint64, error)
	// Timeout of each step; 0 is DefaultTimeout.
	Timeout time.Duration
}

func (k *Krbd) within() time.Duration {
	if k.Timeout == 0 {
		return DefaultTimeout
	}
	return k.Timeout
}

func (k *Krbd) bus(names ...string) string {
	return filepath.Join(append([]string{k.Sys, "bus", "rbd"}, names...)...)
}

// attr reads an attribute of a device; "" if it is gone, or if this kernel has no such attribute.
func (k *Krbd) attr(id, name string) (string, error) {
	text, err := os.ReadFile(k.bus("devices", id, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of rbd device %s: %w", name, id, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// List implements [Mapper].
func (k *Krbd) List(_ context.Context, volume string) ([]exclusive.Mapping, error) {
	i, err := ceph.ParseImage(volume)
	if err != nil {
		return nil, err
	}
	ids, err := k.ids()
	if err != nil {
		return nil, err
	}
	found := []exclusive.Mapping{}
	for _, id := range ids {
		ours, err := k.has(id, i)
		if err != nil {
			return nil, err
		}
		if !ours {
			continue
		}
		instance, err := k.client(id)
		if err != nil {
			return nil, err
		}
		if instance != "" {
			found = append(found, exclusive.Mapping{Device: k.device(id), Volume: volume, Instance: instance})
		}
	}
	return found, nil
}

// All implements [Mapper], for the devices of this cluster.
func (k *Krbd) All(context.Context) ([]exclusive.Mapping, error) {
	ids, err := k.ids()
	if err != nil {
		return nil, err
	}
	found := []exclusive.Mapping{}
	for _, id := range ids {
		i, err := k.image(id)
		if err != nil {
			return nil, err
		}
		ours, err := k.has(id, i)
		if err != nil {
			return nil, err
		}
		instance, err := k.client(id)
		if err != nil {
			return nil, err
		}
		if ours && instance != "" {
			found = append(found, exclusive.Mapping{Device: k.device(id), Volume: i.String(), Instance: instance})
		}
	}
	return found, nil
}

// image reads of which image a device is.
func (k *Krbd) image(id string) (i ceph.Image, err error) {
	for name, into := range map[string]*string{"pool": &i.Pool, "pool_ns": &i.Namespace, "name": &i.Name, "image_id": &i.ID} {
		if *into, err = k.attr(id, name); err != nil {
			return i, err
		}
	}
	return i, nil
}

func (k *Krbd) ids() ([]string, error) {
	entries, err := os.ReadDir(k.bus("devices"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this kernel has no rbd: load the module rbd, or use another mapper")
	}
	if err != nil {
		return nil, fmt.Errorf("list rbd devices: %w", err)
	}
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}

// has tells whether a device is of that image, by its id. Snapshots are devices of others.
func (k *Krbd) has(id string, i ceph.Image) (bool, error) {
	for name, want := range map[string]string{
		"image_id": i.ID, "pool": i.Pool, "pool_ns": i.Namespace, "current_snap": "-", "cluster_fsid": k.FSID,
	} {
		got, err := k.attr(id, name)
		if err != nil {
			return false, err
		}
		if got != want {
			return false, nil
		}
	}
	return true, nil
}

// client gives the address by which the cluster knows the device's client.
func (k *Krbd) client(id string) (exclusive.Instance, error) {
	address, err := k.attr(id, "client_addr")
	if err != nil || address == "" {
		return "", err
	}
	instance, err := ceph.ParseInstance(address)
	if err != nil {
		return "", fmt.Errorf("client_addr of rbd device %s: %w", id, err)
	}
	return instance, nil
}

func (k *Krbd) device(id string) string { return filepath.Join(k.Dev, "rbd"+id) }

func (k *Krbd) id(device string) string { return strings.TrimPrefix(filepath.Base(device), "rbd") }

// Map implements [Mapper]. The kernel is asked once and its answer is awaited; one that comes after the deadline leaves
// a device, which List finds.
func (k *Krbd) Map(ctx context.Context, volume string) (exclusive.Mapping, error) {
	ctx, cancel := context.WithTimeout(ctx, k.within())
	defer cancel()
	i, err := ceph.ParseImage(volume)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	before, err := k.List(ctx, volume)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	// A client that is made after this is asked begins with a map of at least that epoch.
	epoch, err := k.Epoch(ctx)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	config, err := k.Config()
	if err != nil {
		return exclusive.Mapping{}, err
	}
	monitors, err := kernelMonitors(config.Monitors, k.Options)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	if err := k.write(ctx, "add", k.order(monitors, config, i)); err != nil {
		return exclusive.Mapping{}, fmt.Errorf("map image %s as client.%s of %s by the kernel: %w (see dmesg)", i.Spec(), config.User, config.Monitors, err)
	}
	after, err := k.List(ctx, volume)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	for _, m := range after {
		if slices.Contains(before, m) {
			continue
		}
		if err := k.note(m, epoch); err != nil {
			return exclusive.Mapping{}, errors.Join(err, k.Unmap(ctx, m))
		}
		return m, nil
	}
	return exclusive.Mapping{}, errors.New("the kernel says that it is mapped, and has no new device of that image")
}

// order is what the kernel wants to read: monitors, options, pool, image, snapshot. It has the key, and goes to the
// kernel only.
func (k *Krbd) order(monitors string, config ceph.Config, i ceph.Image) string {
	options := []string{
		"name=" + config.User, "secret=" + string(config.Key),
		// A client for this image alone.
		"noshare",
		"mount_timeout=" + strconv.Itoa(max(1, int(k.within().Seconds()/2))),
	}
	if i.Namespace != "" {
		options = append(options, "_pool_ns="+i.Namespace)
	}
	options = append(options, k.Options...)
	return strings.Join([]string{monitors, strings.Join(options, ","), i.Pool, i.Name, "-"}, " ")
}

// write hands an order to the kernel's bus.
func (k *Krbd) write(ctx context.Context, order, text string) error {
	path := k.bus(order + "_single_major")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = k.bus(order)
	}
	return bounded(ctx, func() error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	})
}

// Unmap implements [Mapper]. The kernel refuses while the device is open, so that one that has taken the number since
// it was looked at is safe once it is in use.
func (k *Krbd) Unmap(ctx context.Context, m exclusive.Mapping) error {
	ctx, cancel := context.WithTimeout(ctx, k.within())
	defer cancel()
	id := k.id(m.Device)
	now, err := k.client(id)
	if err != nil || now != m.Instance {
		return err
	}
	err = k.write(ctx, "remove", id)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENODEV):
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: some process still uses it", err)
	case err != nil:
		return err
	}
	return gone(os.Remove(k.noteFile(m.Instance)))
}

// Refresh implements [Mapper]: the kernel watches the image itself, and this makes it look now.
func (k *Krbd) Refresh(ctx context.Context, m exclusive.Mapping) error {
	ctx, cancel := context.WithTimeout(ctx, k.within())
	defer cancel()
	return bounded(ctx, func() error {
		return os.WriteFile(k.bus("devices", k.id(m.Device), "refresh"), []byte("1"), 0)
	})
}

// Reach implements [Mapper]. A kernel client can't be told to fetch a map. What can be known: the epoch that it has now,
// where debugfs is there to read, or that it was made after that epoch, since a client begins with the newest map that
// the monitors have.
func (k *Krbd) Reach(_ context.Context, m exclusive.Mapping, epoch uint64) error {
	noted, err := k.noted(m.Instance)
	if err != nil {
		return err
	}
	if noted >= epoch {
		return nil
	}
	now, err := k.debugEpoch(k.id(m.Device))
	if err != nil {
		return fmt.Errorf("not known what the kernel's client has seen (its note says %d): %w; unstage, and stage anew", noted, err)
	}
	if now < epoch {
		return fmt.Errorf("the kernel's client has seen epoch %d so far", now)
	}
	return nil
}

// debugEpoch reads the osdmap epoch of a device's client.
func (k *Krbd) debugEpoch(id string) (uint64, error) {
	client, err := k.attr(id, "client_id")
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(k.Debug, "ceph", k.FSID+"."+client, "osdmap"))
	if err != nil {
		return 0, err
	}
	// epoch 12 barrier 0 flags 0x188000
	fields := strings.Fields(string(text))
	if len(fields) < 2 || fields[0] != "epoch" {
		return 0, fmt.Errorf("debugfs gives an osdmap of another form: %.40q", text)
	}
	return strconv.ParseUint(fields[1], 10, 64)
}

func (k *Krbd) noteFile(i exclusive.Instance) string {
	sum := sha256.Sum256([]byte(i))
	return filepath.Join(k.Dir, "epoch-"+hex.EncodeToString(sum[:8]))
}

// note writes down, before the device is used, which epoch its client has seen at the least. The addresses of two
// clients are never the same, so an old note speaks of nobody else.
func (k *Krbd) note(m exclusive.Mapping, epoch uint64) error {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(k.noteFile(m.Instance), fmt.Appendf(nil, "%s %d\n", m.Instance, epoch), 0o600)
}

// noted reads a note, 0 if there is none; one that is half written is as good as none.
func (k *Krbd) noted(i exclusive.Instance) (uint64, error) {
	text, err := os.ReadFile(k.noteFile(i))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var whose string
	var epoch uint64
	if n, _ := fmt.Sscanf(string(text), "%s %d\n", &whose, &epoch); n != 2 || whose != string(i) {
		return 0, nil
	}
	return epoch, nil
}
