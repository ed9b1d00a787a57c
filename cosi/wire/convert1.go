package wire

import (
	"strings"

	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"
)

// The v1alpha1 messages to this package's types and back.

func authenticationTo1(a AuthenticationType) v1alpha1.AuthenticationType {
	switch a {
	case Key:
		return v1alpha1.AuthenticationType_Key
	case ServiceAccount:
		return v1alpha1.AuthenticationType_IAM
	}
	return v1alpha1.AuthenticationType_UnknownAuthenticationType
}

func authenticationFrom1(a v1alpha1.AuthenticationType) AuthenticationType {
	switch a {
	case v1alpha1.AuthenticationType_Key:
		return Key
	case v1alpha1.AuthenticationType_IAM:
		return ServiceAccount
	}
	return ""
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

func bucketInfoTo1(b BucketInfo) *v1alpha1.Protocol {
	switch {
	case b.S3 != nil:
		return &v1alpha1.Protocol{Type: &v1alpha1.Protocol_S3{S3: &v1alpha1.S3{Region: b.S3.Region, SignatureVersion: v1alpha1.S3SignatureVersion_S3V4}}}
	case b.Azure != nil:
		return &v1alpha1.Protocol{Type: &v1alpha1.Protocol_AzureBlob{AzureBlob: &v1alpha1.AzureBlob{StorageAccount: b.Azure.StorageAccount}}}
	case b.GCS != nil:
		return &v1alpha1.Protocol{Type: &v1alpha1.Protocol_Gcs{Gcs: &v1alpha1.GCS{ProjectId: b.GCS.ProjectID}}}
	}
	return nil
}

// Keys of the free-form map of a v1alpha1 grant, as upstream's v1alpha1 sidecar reads them: a protocol,
// then a field. No released driver gives credentials of Google Cloud Storage, so no keys are known.
const (
	key1S3, key1Azure = "s3", "azure"

	key1AccessKeyID, key1AccessSecretKey = "accessKeyID", "accessSecretKey"
	key1Endpoint, key1Region             = "endpoint", "region"
	key1AccessToken, key1Expiry          = "accessToken", "expiryTimeStamp"
	key1StorageAccount                   = "storageAccount"
)

// credentialsFrom1 reads the map. Letter case does not matter: drivers differ.
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
		case key1S3:
			info.S3 = &S3Bucket{BucketID: bucket, Endpoint: field(key1Endpoint), Region: field(key1Region)}
			cred.S3 = &S3Credentials{AccessKeyID: Secret(field(key1AccessKeyID)), AccessSecretKey: Secret(field(key1AccessSecretKey))}
		case key1Azure:
			info.Azure = &AzureBucket{StorageAccount: field(key1StorageAccount)}
			cred.Azure = &AzureCredentials{AccessToken: Secret(field(key1AccessToken)), Expiry: field(key1Expiry)}
		}
	}
	return info, cred
}

func credentialsTo1(g Grant) map[string]*v1alpha1.CredentialDetails {
	out := map[string]*v1alpha1.CredentialDetails{}
	var info BucketInfo
	if len(g.Buckets) > 0 {
		info = g.Buckets[0].Info
	}
	if c := g.Credentials.S3; c != nil {
		m := map[string]string{key1AccessKeyID: c.AccessKeyID.Reveal(), key1AccessSecretKey: c.AccessSecretKey.Reveal()}
		if info.S3 != nil {
			m[key1Endpoint], m[key1Region] = info.S3.Endpoint, info.S3.Region
		}
		out[key1S3] = &v1alpha1.CredentialDetails{Secrets: m}
	}
	if c := g.Credentials.Azure; c != nil {
		m := map[string]string{key1AccessToken: c.AccessToken.Reveal(), key1Expiry: c.Expiry}
		if info.Azure != nil {
			m[key1StorageAccount] = info.Azure.StorageAccount
		}
		out[key1Azure] = &v1alpha1.CredentialDetails{Secrets: m}
	}
	return out
}
