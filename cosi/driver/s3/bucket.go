package s3

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// standing is what a bucket is to this driver.
type standing uint8

const (
	absent   standing = iota
	ours              // bears our mark for its name
	halfMade          // a create that the server did not finish; empty
	foreign           // everything else
)

// look asks the server what a bucket is. owner is what its mark says.
func (b *Backend) look(ctx context.Context, name string) (s standing, owner string, err error) {
	tags, err := b.s3.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &name})
	switch c := answered(err); {
	case err == nil:
		owner = b.bucketOwner(tags.TagSet)
	case c == errNoSuchBucket:
		return absent, "", nil
	case c == errNoTags:
	case httpStatus(err) == http.StatusForbidden:
		return foreign, "another account of the S3 server", nil
	default:
		return foreign, "", failed(err, "look at the tags of bucket", name)
	}
	switch owner {
	case name:
		return ours, owner, nil
	case "":
		half, err := b.isHalfMade(ctx, name)
		if half {
			return halfMade, name, err
		}
		return foreign, "", err
	}
	return foreign, owner, nil
}

// isHalfMade tells if the server was stopped in the middle of making the bucket: it has no ownership rule,
// which every finished bucket has, and no objects.
func (b *Backend) isHalfMade(ctx context.Context, name string) (bool, error) {
	_, err := b.s3.GetBucketOwnershipControls(ctx, &s3.GetBucketOwnershipControlsInput{Bucket: &name})
	if err == nil {
		return false, nil
	}
	if answered(err) != errNoOwnershipRule {
		return false, failed(err, "look at the ownership rule of bucket", name)
	}
	objects, err := b.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, MaxKeys: aws.Int32(1)})
	if err != nil {
		return false, failed(err, "look into bucket", name)
	}
	return len(objects.Contents)+len(objects.CommonPrefixes) == 0, nil
}

// CreateBucket implements driver.Backend.
func (b *Backend) CreateBucket(ctx context.Context, req wire.BucketRequest) (wire.Bucket, error) {
	if err := noParameters(req.Parameters); err != nil {
		return wire.Bucket{}, err
	}
	name := req.Name
	in := &s3.CreateBucketInput{Bucket: &name, CreateBucketConfiguration: &types.CreateBucketConfiguration{Tags: b.marks(name)}}
	if b.o.Region != DefaultRegion { // which S3 forbids to name
		in.CreateBucketConfiguration.LocationConstraint = types.BucketLocationConstraint(b.o.Region)
	}
	_, made := b.s3.CreateBucket(ctx, in)
	if made != nil {
		switch c := answered(made); {
		case c == errBucketExists, c == errBucketOwnedByYou:
		case httpStatus(made) >= 500: // what the server answers to a half-made one
		default:
			return wire.Bucket{}, failed(made, "create bucket", name)
		}
	}
	// Look even after success: there are servers that answer success for a bucket that was there, or do
	// not keep the tags.
	s, owner, err := b.look(ctx, name)
	if err != nil {
		if made == nil {
			return b.bucket(name), err
		}
		return wire.Bucket{}, err
	}
	switch {
	case s == ours:
		return b.bucket(name), nil
	case s == halfMade && made != nil:
		return b.bucket(name), b.finish(ctx, name)
	case s == absent && made != nil:
		return wire.Bucket{}, failed(made, "create bucket", name)
	case owner == "":
		owner = "somebody who left no mark"
	}
	return wire.Bucket{}, status.Errorf(codes.AlreadyExists, "bucket %q is there and was not made by this driver for this name, but by %s; it is left alone. If it is not in use, delete it by hand", name, owner)
}

// finish completes a half-made bucket. The mark goes before the ownership rule: a bucket with the rule and
// without mark would be taken for foreign.
func (b *Backend) finish(ctx context.Context, name string) error {
	if err := b.accounts.changeBucketOwner(ctx, name, b.o.AccessKey); err != nil {
		return failed(err, "set the owner of half-made bucket", name)
	}
	if _, err := b.s3.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &name, Tagging: &types.Tagging{TagSet: b.marks(name)}}); err != nil {
		return failed(err, "mark half-made bucket", name)
	}
	_, err := b.s3.PutBucketOwnershipControls(ctx, &s3.PutBucketOwnershipControlsInput{Bucket: &name, OwnershipControls: &types.OwnershipControls{
		Rules: []types.OwnershipControlsRule{{ObjectOwnership: types.ObjectOwnershipBucketOwnerEnforced}},
	}})
	return failed(err, "set the ownership rule of half-made bucket", name)
}

func (b *Backend) bucket(name string) wire.Bucket {
	return wire.Bucket{ID: name, Info: wire.BucketInfo{S3: &wire.S3Bucket{
		BucketID:        name,
		Endpoint:        b.o.PublicEndpoint,
		Region:          b.o.Region,
		AddressingStyle: wire.PathStyle,
	}}}
}

// GetBucket implements driver.Backend.
func (b *Backend) GetBucket(ctx context.Context, req wire.GetBucketRequest) (wire.Bucket, error) {
	if _, err := b.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &req.ID}); err != nil {
		return wire.Bucket{}, failed(err, "look at bucket", req.ID)
	}
	return b.bucket(req.ID), nil
}

// DeleteBucket implements driver.Backend.
func (b *Backend) DeleteBucket(ctx context.Context, req wire.DeleteBucketRequest) error {
	s, owner, err := b.look(ctx, req.ID)
	switch {
	case err != nil:
		return err
	case s == absent:
		return nil
	case s == foreign && owner != "":
		return status.Errorf(codes.FailedPrecondition, "bucket %q bears the mark of %s and is left alone; if it is to be deleted, take the tag %s off it, or delete it by hand", req.ID, owner, tagOwner)
	}
	return b.deleteBucket(ctx, req.ID)
}

func (b *Backend) deleteBucket(ctx context.Context, id string) error {
	unlock := b.lockPolicy(id) // a grant that is writing the policy must not meet the next bucket of this name
	defer unlock()
	_, err := b.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &id})
	switch answered(err) {
	case errNoSuchBucket:
		return nil
	case errBucketNotEmpty, errVersionsNotEmpty:
		return status.Errorf(codes.FailedPrecondition, "bucket %q holds objects and is not deleted; delete the objects (old versions too), or set the deletion policy to Retain", id)
	}
	return failed(err, "delete bucket", id)
}
