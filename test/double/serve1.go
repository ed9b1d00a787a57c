package double

import (
	"context"

	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"
)

type identity1 struct {
	v1alpha1.UnimplementedIdentityServer
	name string
}

func (i *identity1) DriverGetInfo(context.Context, *v1alpha1.DriverGetInfoRequest) (*v1alpha1.DriverGetInfoResponse, error) {
	return &v1alpha1.DriverGetInfoResponse{Name: i.name}, nil
}

type provisioner1 struct {
	v1alpha1.UnimplementedProvisionerServer
	d *Driver
}

func (p *provisioner1) DriverCreateBucket(_ context.Context, r *v1alpha1.DriverCreateBucketRequest) (*v1alpha1.DriverCreateBucketResponse, error) {
	t, err := p.d.create(Bucket, r.GetName(), r.GetParameters())
	if err != nil {
		return nil, err
	}
	return &v1alpha1.DriverCreateBucketResponse{BucketId: t.ID,
		BucketInfo: &v1alpha1.Protocol{Type: &v1alpha1.Protocol_S3{S3: &v1alpha1.S3{Region: region(r.GetParameters())}}}}, nil
}

func (p *provisioner1) DriverDeleteBucket(_ context.Context, r *v1alpha1.DriverDeleteBucketRequest) (*v1alpha1.DriverDeleteBucketResponse, error) {
	_, err := p.d.act(Request{Op: Delete, Kind: Bucket, ID: r.GetBucketId()})
	return &v1alpha1.DriverDeleteBucketResponse{}, err
}

func (p *provisioner1) DriverGrantBucketAccess(_ context.Context, r *v1alpha1.DriverGrantBucketAccessRequest) (*v1alpha1.DriverGrantBucketAccessResponse, error) {
	t, err := p.d.create(Account, r.GetName(), r.GetParameters())
	if err != nil {
		return nil, err
	}
	return &v1alpha1.DriverGrantBucketAccessResponse{AccountId: t.ID, Credentials: map[string]*v1alpha1.CredentialDetails{
		"s3": {Secrets: map[string]string{
			"accessKeyID": t.ID, "accessSecretKey": t.newest(), "endpoint": endpoint, "region": region(r.GetParameters()),
		}},
	}}, nil
}

func (p *provisioner1) DriverRevokeBucketAccess(_ context.Context, r *v1alpha1.DriverRevokeBucketAccessRequest) (*v1alpha1.DriverRevokeBucketAccessResponse, error) {
	_, err := p.d.act(Request{Op: Delete, Kind: Account, ID: r.GetAccountId()})
	return &v1alpha1.DriverRevokeBucketAccessResponse{}, err
}

// endpoint is what a bucket's users are told; nobody listens there.
const endpoint = "http://double.invalid"

func (t Thing) newest() string {
	if len(t.Keys) == 0 {
		return ""
	}
	return t.Keys[len(t.Keys)-1]
}
