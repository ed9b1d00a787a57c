package wire

import "context"

// Driver is a COSI driver as the rest of the project sees it. [Client] implements it over gRPC; tests may
// implement it directly.
//
// Errors keep the gRPC code and message of the driver ([Code]). Each call needs a deadline in ctx. All
// methods may be called from many goroutines at once; keeping calls of one name apart is the caller's duty.
//
// Contract of an id that comes with an error: when a method that returns an id (in a Bucket or Grant)
// also returns an error, a non-empty id is real: something exists, or may, under it.
type Driver interface {
	// Info is what the driver answered when it was last asked. It makes no call.
	Info() Info

	// GenerateBucketID asks for the id that CreateBucket will use, before anything is made. It answers
	// ErrNotOffered where the driver is not of the two-phase dialect: go on without an id.
	GenerateBucketID(ctx context.Context, req BucketRequest) (id string, err error)
	// CreateBucket makes the bucket of req.Name; with req.ID, a bucket of that generated id.
	CreateBucket(ctx context.Context, req BucketRequest) (Bucket, error)
	// GetBucket looks at a bucket whose id is known. ErrNotOffered in v1alpha1, which has no such call.
	GetBucket(ctx context.Context, req GetBucketRequest) (Bucket, error)
	// DeleteBucket deletes by id; absent is OK. FAILED_PRECONDITION usually means: it holds objects.
	DeleteBucket(ctx context.Context, req DeleteBucketRequest) error

	// GenerateAccountID is to GrantAccess what GenerateBucketID is to CreateBucket.
	GenerateAccountID(ctx context.Context, req GrantRequest) (id string, err error)
	// GrantAccess makes the account of req.Name (or of req.ID) with access to the buckets. A driver that
	// takes one bucket per account answers OUT_OF_RANGE to several; for v1alpha1 this package does, before
	// any call.
	GrantAccess(ctx context.Context, req GrantRequest) (Grant, error)
	// RevokeAccess deletes an account by id; absent is OK.
	RevokeAccess(ctx context.Context, req RevokeRequest) error

	// DeleteByName, FindByName and List are the Recovery service: ErrNotOffered where Info.Recovery says
	// that the driver has not the call for the kind. The contract is in recovery/recovery.proto.
	DeleteByName(ctx context.Context, kind Kind, req NameRequest) error
	FindByName(ctx context.Context, kind Kind, req NameRequest) ([]Item, error)
	List(ctx context.Context, kind Kind, req ListRequest) (Page, error)
}
