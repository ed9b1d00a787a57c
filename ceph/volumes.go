//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"
)

// What [Volumes] may answer beside Ceph's own errors.
var (
	// ErrExists: there is an image, or a snapshot of the image, of that name. Nothing says who has made it.
	ErrExists = errors.New("the name is taken")
	// ErrCarcass: the name is in the pool's directory, and the image's header is gone or not there yet: a create or a
	// removal has died.
	ErrCarcass = errors.New("the image has no header")
	// ErrBusy: the image has watchers, snapshots or children, so it can't be removed now.
	ErrBusy = errors.New("the image is in use")
	// ErrMaker: the connection is not the one that was noted as the maker any more. Note the new one.
	ErrMaker = errors.New("the connection has changed since it was noted")
)

// Volumes makes and removes images. What is to be made of a change that was cut off is the caller's business; each
// method makes one call of librbd that changes something.
type Volumes struct {
	cluster *Cluster
	jobs    jobs
}

// Volumes gives the cluster's images. Keep it: it knows the long operations that are under way.
func (c *Cluster) Volumes() *Volumes { return &Volumes{cluster: c} }

// Facts is what an image says of itself.
type Facts struct {
	Size     uint64
	Metadata map[string]string
	Parent   *Image // nil if it has none
	// Snapshots by name, those that a removal has left for their children (RBD's snapshot trash) apart.
	Snapshots []string
	Trashed   []uint64
	// Children are the images that are clones of it.
	Children int
	// Watchers are the addresses of the clients that have it open to write.
	Watchers []string
}

// Facts opens the image by its id, for reading only: that makes no watcher, and asks nothing of an owner that hangs.
func (v *Volumes) Facts(ctx context.Context, i Image) (Facts, error) {
	return inPool(ctx, v.cluster, "look at image "+i.Spec(), i.Pool, i.Namespace, func(io *rados.IOContext) (f Facts, err error) {
		image, err := rbd.OpenImageByIdReadOnly(io, i.ID, rbd.NoSnapshot)
		if errno(err) == syscall.ENOENT {
			return f, fmt.Errorf("%w (%w)", ErrCarcass, err)
		}
		if err != nil {
			return f, err
		}
		defer closed(image, &err)
		return facts(image)
	})
}

func facts(image *rbd.Image) (f Facts, err error) {
	if f.Size, err = image.GetSize(); err != nil {
		return f, err
	}
	if f.Metadata, err = image.ListMetadata(); err != nil {
		return f, err
	}
	parent, err := image.GetParent()
	if err != nil && errno(err) != syscall.ENOENT {
		return f, err
	}
	if err == nil {
		p := parent.Image
		f.Parent = &Image{Pool: p.PoolName, Namespace: p.PoolNamespace, Name: p.ImageName, ID: p.ImageID}
	}
	snapshots, err := image.GetSnapshotNames()
	if err != nil {
		return f, err
	}
	for _, s := range snapshots {
		kind, err := image.GetSnapNamespaceType(s.Id)
		if err != nil {
			return f, err
		}
		if kind == rbd.SnapNamespaceTypeTrash {
			f.Trashed = append(f.Trashed, s.Id)
		} else {
			f.Snapshots = append(f.Snapshots, s.Name)
		}
	}
	children, err := image.ListChildrenAttributes()
	if err != nil {
		return f, err
	}
	f.Children = len(children)
	watchers, err := image.ListWatchers()
	if err != nil {
		return f, err
	}
	for _, w := range watchers {
		f.Watchers = append(f.Watchers, w.Addr)
	}
	return f, nil
}

// New is what an image is made with.
type New struct {
	Pool, Namespace, Name string
	// Maker is what [Volumes.Maker] gave. If the connection is another one by now nothing is made: [ErrMaker].
	Maker    Maker
	Size     uint64 // bytes; a clone has its parent's
	Features uint64 // RBD's feature bits
	DataPool string // "" for none
}

// Create makes an empty image.
func (v *Volumes) Create(ctx context.Context, n New) error {
	return v.make(ctx, n, fmt.Sprintf("create image %s", n.spec()), func(io *rados.IOContext, o *rbd.ImageOptions) error {
		return rbd.CreateImage(io, n.Name, n.Size, o)
	})
}

// Clone makes an image that shares what the parent's snapshot has, in RBD's second clone format: the snapshot need not
// be protected, and may be removed before the clone is.
func (v *Volumes) Clone(ctx context.Context, parent Image, snapshot string, n New) error {
	what := fmt.Sprintf("clone image %s from %s@%s", n.spec(), parent.Spec(), snapshot)
	return v.make(ctx, n, what, func(to *rados.IOContext, o *rbd.ImageOptions) error {
		if err := o.SetUint64(rbd.ImageOptionCloneFormat, 2); err != nil {
			return err
		}
		_, err := inPool(ctx, v.cluster, "open the parent's pool", parent.Pool, parent.Namespace, func(from *rados.IOContext) (none, error) {
			return none{}, rbd.CloneImage(from, parent.Name, snapshot, to, n.Name, o)
		})
		return err
	})
}

func (v *Volumes) make(ctx context.Context, n New, what string, f func(*rados.IOContext, *rbd.ImageOptions) error) error {
	_, err := inConn(ctx, v.cluster, what, n.Pool, n.Namespace, func(r *rados.Conn, io *rados.IOContext) (none, error) {
		if makerOf(r) != n.Maker {
			return none{}, ErrMaker
		}
		o := rbd.NewRbdImageOptions()
		defer o.Destroy()
		if err := o.SetUint64(rbd.ImageOptionFeatures, n.Features); err != nil {
			return none{}, err
		}
		if n.DataPool != "" {
			if err := o.SetString(rbd.ImageOptionDataPool, n.DataPool); err != nil {
				return none{}, err
			}
		}
		return none{}, as(f(io, o), syscall.EEXIST, ErrExists)
	})
	return err
}

func (n New) spec() string { return Image{Pool: n.Pool, Namespace: n.Namespace, Name: n.Name}.Spec() }

// Label sets one key of the image's metadata.
func (v *Volumes) Label(ctx context.Context, i Image, key, value string) error {
	return v.change(ctx, "label image "+i.Spec(), i, func(image *rbd.Image) error { return image.SetMetadata(key, value) })
}

// Resize sets the image's size in bytes. With a live owner it is the owner that does it.
func (v *Volumes) Resize(ctx context.Context, i Image, size uint64) error {
	what := fmt.Sprintf("resize image %s to %d bytes", i.Spec(), size)
	return v.change(ctx, what, i, func(image *rbd.Image) error { return image.Resize(size) })
}

// Snapshot makes a snapshot of the image. With a live owner it is the owner that does it.
func (v *Volumes) Snapshot(ctx context.Context, i Image, name string) error {
	return v.change(ctx, fmt.Sprintf("make snapshot %s@%s", i.Spec(), name), i, func(image *rbd.Image) error {
		_, err := image.CreateSnapshot(name)
		return as(err, syscall.EEXIST, ErrExists)
	})
}

// RemoveSnapshot removes a snapshot. Where it has clones, RBD keeps it out of sight until they are gone. Idempotent.
func (v *Volumes) RemoveSnapshot(ctx context.Context, i Image, name string) error {
	return v.change(ctx, fmt.Sprintf("remove snapshot %s@%s", i.Spec(), name), i, func(image *rbd.Image) error {
		return as(image.GetSnapshot(name).Remove(), syscall.ENOENT, nil)
	})
}

// RemoveTrashed removes a snapshot that was kept for clones that are gone. Idempotent.
func (v *Volumes) RemoveTrashed(ctx context.Context, i Image, id uint64) error {
	return v.change(ctx, fmt.Sprintf("remove what is left of snapshot %d of image %s", id, i.Spec()), i, func(image *rbd.Image) error {
		return as(as(image.RemoveSnapByID(id), syscall.ENOENT, nil), syscall.EBUSY, ErrBusy)
	})
}

// change opens the image by its id to write.
func (v *Volumes) change(ctx context.Context, what string, i Image, f func(*rbd.Image) error) error {
	_, err := inPool(ctx, v.cluster, what, i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
		return none{}, opened(io, i, f)
	})
	return err
}

func opened(io *rados.IOContext, i Image, f func(*rbd.Image) error) (err error) {
	image, err := rbd.OpenImageById(io, i.ID, rbd.NoSnapshot)
	if errno(err) == syscall.ENOENT {
		return fmt.Errorf("%w (%w)", ErrCarcass, err)
	}
	if err != nil {
		return err
	}
	defer closed(image, &err)
	return f(image)
}

func closed(image *rbd.Image, err *error) {
	if e := image.Close(); *err == nil {
		*err = e
	}
}

// as gives an answer of Ceph a name; to nil means that it is as good as success.
func as(err error, code syscall.Errno, to error) error {
	switch {
	case err == nil || errno(err) != code:
		return err
	case to == nil:
		return nil
	}
	return fmt.Errorf("%w (%w)", to, err)
}

// Maker is a client of the cluster as the ids of the images that it makes begin with it (librbd, generate_image_id).
type Maker string

// maxImageID is the longest id that librbd gives; a longer one loses its beginning.
const maxImageID = 14

// Maker is the connection as it is now. To be noted before [Volumes.Create], so that an image without any mark can be
// told from a foreign one.
func (v *Volumes) Maker(ctx context.Context) (Maker, error) {
	return call(ctx, v.cluster, "ask for its own id", func(r *rados.Conn) (Maker, error) { return makerOf(r), nil })
}

func makerOf(r *rados.Conn) Maker { return Maker(strconv.FormatUint(r.GetInstanceID(), 16)) }

// Made tells whether an image with that id was made by this client.
func (m Maker) Made(id string) bool {
	const random = 8 // hex digits at most, after the client's
	cut := 0
	if len(id) == maxImageID {
		cut = max(0, min(len(m)-1, len(m)+random-maxImageID))
	}
	for k := range cut + 1 {
		rest, ok := strings.CutPrefix(id, string(m[k:]))
		if ok && len(rest) > 0 && len(rest) <= random {
			return true
		}
	}
	return false
}

// inConn is inPool for what needs the connection too.
func inConn[T any](ctx context.Context, c *Cluster, what, pool, namespace string, f func(*rados.Conn, *rados.IOContext) (T, error)) (T, error) {
	return call(ctx, c, what, func(r *rados.Conn) (T, error) { return withPool(r, pool, namespace, f) })
}
