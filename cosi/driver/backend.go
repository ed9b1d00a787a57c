package driver

import (
	"context"

	"github.com/custody-storage/custody/cosi/wire"
)

// Backend is what a driver author writes. Every call comes with a deadline and has been checked: names are
// DNS subdomains, ids fit COSI's pattern, protocols and modes are known ones. Calls of one name never
// overlap; calls of different names do.
//
// An id returned together with an error is passed on: return it whenever something exists under it.
type Backend interface {
	// Info is the driver's name, its protocols and what holds of its recovery. It makes no call and never
	// changes. Info.Dialect is not used.
	Info() wire.Info

	// CreateBucket makes the bucket of req.Name, or answers the one that was made for that name before. A
	// thing of that name made by another is ALREADY_EXISTS. In the two-phase dialect req.ID is set too,
	// and is what IDs.IDOf answered.
	CreateBucket(ctx context.Context, req wire.BucketRequest) (wire.Bucket, error)
	// GetBucket looks at a bucket that an administrator named by its id; whoever made it. NOT_FOUND is
	// tried again later.
	GetBucket(ctx context.Context, req wire.GetBucketRequest) (wire.Bucket, error)
	// DeleteBucket deletes the bucket of an id, and what the driver keeps about it. Absent is success.
	DeleteBucket(ctx context.Context, req wire.DeleteBucketRequest) error

	// GrantAccess makes the account of req.Name with access to each bucket in its mode, and answers its
	// credentials; or answers those of the account that was made before, bringing its access up to the
	// request. OUT_OF_RANGE: more than one bucket is not possible here.
	GrantAccess(ctx context.Context, req wire.GrantRequest) (wire.Grant, error)
	// RevokeAccess takes away all access of an account and the account itself. Once it answers success, no
	// credential of the account works. Absent is success. req.BucketIDs may be empty.
	RevokeAccess(ctx context.Context, req wire.RevokeRequest) error
}

// Recoverer is what a Backend adds if it can work from names. Each method is called only if
// Info().Recovery claims it for the kind; the contracts are in wire/recovery/recovery.proto. The kit adds
// what they say of creates that run or may still land.
type Recoverer interface {
	// DeleteByName deletes what this driver made for the name, and nothing else.
	DeleteByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) error
	// FindByName answers all that exists under the name, whoever made it, by a look at the storage system.
	FindByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) ([]wire.Item, error)
	// List answers a page of all that exists, whoever made it.
	List(ctx context.Context, kind wire.Kind, req wire.ListRequest) (wire.Page, error)
}

// IDs is what a Backend adds if its ids follow from names, and names from ids. It allows the two-phase
// dialect, and lets calls by id and by name keep apart.
type IDs interface {
	// IDOf is the id of what is, or would be, made for a name.
	IDOf(kind wire.Kind, name string) string
	// NameOf is the reverse, empty for an id that no name has.
	NameOf(kind wire.Kind, id string) string
}
