package wire

import (
	"context"
	"strings"

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

func authenticationTo1(a AuthenticationType) v1alpha1.AuthenticationType {
	switch a {
	case Key:
		return v1alpha1.AuthenticationType_Key
	case ServiceAccount:
		return v1alpha1.AuthenticationType_IAM
	}
	return v1alpha1.AuthenticationType_UnknownAuthenticationType
}

// bucketInfoFrom1: in v1alpha1 the bucket's name in the protocol is its id; the endpoint comes only with
// credentials.
func bucketInfoFrom1(id string, p *v1alpha1.Protocol) BucketInfo {
	switch t := p.GetType().(type) {
	case *v1alpha1.Protocol_S3:
		return BucketInfo{S3: &S3Bucket{BucketID: id, Region: t.S3.GetRegion()}}
	case *v1alpha1.Protocol_AzureBlob:
		return BucketInfo{Azure: &AzureBucket{StorageAccount: t.AzureBlob.GetStorageAccount()}}
	case *v1alpha1.Protocol_Gcs:
		return BucketInfo{GCS: &GCSBucket{ProjectID: t.Gcs.GetProjectId(), BucketName: id}}
	}
	return BucketInfo{}
}

// credentialsFrom1 reads the free-form map of a v1alpha1 grant, by the keys that upstream's v1alpha1
// sidecar reads: protocol "s3" or "azure", then the fields below. Letter case does not matter: drivers
// differ. No released driver gives credentials of Google Cloud Storage.
func credentialsFrom1(bucket string, in map[string]*v1alpha1.CredentialDetails) (BucketInfo, Credentials) {
	var info BucketInfo
	var cred Credentials
	for protocol, details := range in {
		field := func(name string) string {
			for k, v := range details.GetSecrets() {
				if strings.EqualFold(k, name) {
					return v
				}
			}
			return ""
		}
		switch strings.ToLower(protocol) {
		case "s3":
			info.S3 = &S3Bucket{BucketID: bucket, Endpoint: field("endpoint"), Region: field("region")}
			cred.S3 = &S3Credentials{AccessKeyID: Secret(field("accessKeyID")), AccessSecretKey: Secret(field("accessSecretKey"))}
		case "azure":
			info.Azure = &AzureBucket{StorageAccount: field("storageAccount")}
			cred.Azure = &AzureCredentials{AccessToken: Secret(field("accessToken")), Expiry: field("expiryTimeStamp")}
		}
	}
	return info, cred
}
