package double

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

type identity2 struct {
	v1alpha2.UnimplementedIdentityServer
	name string
}

func (i *identity2) DriverGetInfo(context.Context, *v1alpha2.DriverGetInfoRequest) (*v1alpha2.DriverGetInfoResponse, error) {
	return &v1alpha2.DriverGetInfoResponse{Name: i.name, SupportedProtocols: []*v1alpha2.ObjectProtocol{{Type: v1alpha2.ObjectProtocol_S3}}}, nil
}

// provisioner2 is v1alpha2 with one phase or two: the calls that the driver has
// not answer UNIMPLEMENTED.
type provisioner2 struct {
	v1alpha2.UnimplementedProvisionerServer
	d *Driver
}

func (p *provisioner2) DriverGenerateBucketId(ctx context.Context, r *v1alpha2.DriverGenerateBucketIdRequest) (*v1alpha2.DriverGenerateBucketIdResponse, error) {
	if p.d.config.Dialect != TwoPhase {
		return p.UnimplementedProvisionerServer.DriverGenerateBucketId(ctx, r)
	}
	t, err := p.d.act(Request{Op: Generate, Kind: Bucket, Name: r.GetName(), Region: region(r.GetParameters())})
	return &v1alpha2.DriverGenerateBucketIdResponse{BucketId: t.ID}, err
}

func (p *provisioner2) DriverCreateBucket(_ context.Context, r *v1alpha2.DriverCreateBucketRequest) (*v1alpha2.DriverCreateBucketResponse, error) {
	t, err := p.d.create(Bucket, r.GetName(), r.GetParameters())
	if err != nil {
		return nil, err
	}
	return &v1alpha2.DriverCreateBucketResponse{BucketId: t.ID, Protocols: info(t.ID, r.GetParameters())}, nil
}

func (p *provisioner2) DriverGetExistingBucket(ctx context.Context, r *v1alpha2.DriverGetExistingBucketRequest) (*v1alpha2.DriverGetExistingBucketResponse, error) {
	if p.d.config.Dialect == TwoPhase {
		return p.UnimplementedProvisionerServer.DriverGetExistingBucket(ctx, r)
	}
	t, err := p.d.act(Request{Op: Get, Kind: Bucket, ID: r.GetExistingBucketId()})
	return &v1alpha2.DriverGetExistingBucketResponse{BucketId: t.ID, Protocols: info(t.ID, r.GetParameters())}, err
}

func (p *provisioner2) DriverGetBucket(ctx context.Context, r *v1alpha2.DriverGetBucketRequest) (*v1alpha2.DriverGetBucketResponse, error) {
	if p.d.config.Dialect != TwoPhase {
		return p.UnimplementedProvisionerServer.DriverGetBucket(ctx, r)
	}
	t, err := p.d.act(Request{Op: Get, Kind: Bucket, ID: r.GetBucketId()})
	return &v1alpha2.DriverGetBucketResponse{BucketId: t.ID, Protocols: info(t.ID, r.GetParameters())}, err
}

func (p *provisioner2) DriverDeleteBucket(_ context.Context, r *v1alpha2.DriverDeleteBucketRequest) (*v1alpha2.DriverDeleteBucketResponse, error) {
	_, err := p.d.act(Request{Op: Delete, Kind: Bucket, ID: r.GetBucketId()})
	return &v1alpha2.DriverDeleteBucketResponse{}, err
}

func (p *provisioner2) DriverGenerateBucketAccessId(ctx context.Context, r *v1alpha2.DriverGenerateBucketAccessIdRequest) (*v1alpha2.DriverGenerateBucketAccessIdResponse, error) {
	if p.d.config.Dialect != TwoPhase {
		return p.UnimplementedProvisionerServer.DriverGenerateBucketAccessId(ctx, r)
	}
	t, err := p.d.act(Request{Op: Generate, Kind: Account, Name: r.GetAccountName(), Region: region(r.GetParameters())})
	return &v1alpha2.DriverGenerateBucketAccessIdResponse{AccountId: t.ID}, err
}

func (p *provisioner2) DriverGrantBucketAccess(_ context.Context, r *v1alpha2.DriverGrantBucketAccessRequest) (*v1alpha2.DriverGrantBucketAccessResponse, error) {
	t, err := p.d.create(Account, r.GetAccountName(), r.GetParameters())
	if err != nil {
		return nil, err
	}
	granted := &v1alpha2.DriverGrantBucketAccessResponse{AccountId: t.ID,
		Credentials: &v1alpha2.CredentialInfo{S3: &v1alpha2.S3CredentialInfo{AccessKeyId: t.ID, AccessSecretKey: t.newest()}}}
	for _, b := range r.GetBuckets() {
		granted.Buckets = append(granted.Buckets, &v1alpha2.DriverGrantBucketAccessResponse_BucketInfo{BucketId: b.GetBucketId(), BucketInfo: info(b.GetBucketId(), r.GetParameters())})
	}
	return granted, nil
}

func (p *provisioner2) DriverRevokeBucketAccess(_ context.Context, r *v1alpha2.DriverRevokeBucketAccessRequest) (*v1alpha2.DriverRevokeBucketAccessResponse, error) {
	if r.GetAccountId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no account id")
	}
	_, err := p.d.act(Request{Op: Delete, Kind: Account, ID: r.GetAccountId()})
	return &v1alpha2.DriverRevokeBucketAccessResponse{}, err
}

func info(id string, parameters map[string]string) *v1alpha2.ObjectProtocolAndBucketInfo {
	return &v1alpha2.ObjectProtocolAndBucketInfo{S3: &v1alpha2.S3BucketInfo{
		BucketId: id, Endpoint: endpoint, Region: region(parameters), AddressingStyle: &v1alpha2.S3AddressingStyle{Style: v1alpha2.S3AddressingStyle_PATH},
	}}
}
