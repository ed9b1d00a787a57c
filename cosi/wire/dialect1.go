package wire

import (
	"context"

	"google.golang.org/grpc/codes"
	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"
)

// dialect1 is v1alpha1.
type dialect1 struct {
	who caller
	p   v1alpha1.ProvisionerClient
}

func (d *dialect1) generateBucketID(context.Context, BucketRequest) (string, error) {
	return "", ErrNotOffered
}

func (d *dialect1) generateAccountID(context.Context, GrantRequest) (string, error) {
	return "", ErrNotOffered
}

func (d *dialect1) getBucket(context.Context, GetBucketRequest) (Bucket, error) {
	return Bucket{}, ErrNotOffered
}

func (d *dialect1) createBucket(ctx context.Context, req BucketRequest) (Bucket, error) {
	const op = "DriverCreateBucket"
	got, err := call(ctx, d.who, op, req.Name, d.p.DriverCreateBucket, &v1alpha1.DriverCreateBucketRequest{Name: req.Name, Parameters: req.Parameters})
	if err != nil {
		return Bucket{}, err
	}
	b := Bucket{ID: got.GetBucketId(), Info: bucketInfoFrom1(got.GetBucketId(), got.GetBucketInfo())}
	if b.ID == "" {
		return b, &NoIDError{op, req.Name, d.who.driver}
	}
	return b, nil
}

func (d *dialect1) deleteBucket(ctx context.Context, req DeleteBucketRequest) error {
	_, err := call(ctx, d.who, "DriverDeleteBucket", req.ID, d.p.DriverDeleteBucket, &v1alpha1.DriverDeleteBucketRequest{BucketId: req.ID, DeleteContext: req.Parameters})
	return err
}

func (d *dialect1) grantAccess(ctx context.Context, req GrantRequest) (Grant, error) {
	const op = "DriverGrantBucketAccess"
	if len(req.Buckets) != 1 {
		return Grant{}, refuse(d.who, op, req.Name, codes.OutOfRange, "a v1alpha1 driver grants access to exactly one bucket per account; use one BucketAccess for each bucket, or a newer driver")
	}
	// v1alpha1 cannot say read-only. Full access in its place would be more than was asked for.
	if m := req.Buckets[0].Mode; m != ReadWrite && m != "" {
		return Grant{}, refuse(d.who, op, req.Name, codes.InvalidArgument, "a v1alpha1 driver knows no access mode but ReadWrite, not "+string(m)+"; ask for ReadWrite, or use a newer driver")
	}
	bucket := req.Buckets[0].ID
	got, err := call(ctx, d.who, op, req.Name, d.p.DriverGrantBucketAccess, &v1alpha1.DriverGrantBucketAccessRequest{
		BucketId:           bucket,
		Name:               req.Name,
		AuthenticationType: authenticationTo1(req.Authentication),
		Parameters:         req.Parameters,
	})
	if err != nil {
		return Grant{}, err
	}
	info, cred := credentialsFrom1(bucket, got.GetCredentials())
	g := Grant{AccountID: got.GetAccountId(), Buckets: []Bucket{{ID: bucket, Info: info}}, Credentials: cred}
	if g.AccountID == "" {
		return g, &NoIDError{op, req.Name, d.who.driver}
	}
	return g, nil
}

func (d *dialect1) revokeAccess(ctx context.Context, req RevokeRequest) error {
	var bucket string // one bucket per account in this dialect
	if len(req.BucketIDs) > 0 {
		bucket = req.BucketIDs[0]
	}
	_, err := call(ctx, d.who, "DriverRevokeBucketAccess", req.AccountID, d.p.DriverRevokeBucketAccess,
		&v1alpha1.DriverRevokeBucketAccessRequest{BucketId: bucket, AccountId: req.AccountID, RevokeAccessContext: req.Parameters})
	return err
}
