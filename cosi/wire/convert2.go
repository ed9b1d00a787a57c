package wire

import "github.com/custody-storage/custody/cosi/wire/v1alpha2"

// The v1alpha2 messages to this package's types and back. What this program does not know (an enum value
// of a later version) becomes an empty or unknown value, never an error: an id stands beside it.

func protocolTo2(p Protocol) *v1alpha2.ObjectProtocol {
	t := v1alpha2.ObjectProtocol_UNKNOWN
	switch p {
	case S3:
		t = v1alpha2.ObjectProtocol_S3
	case Azure:
		t = v1alpha2.ObjectProtocol_AZURE
	case GCS:
		t = v1alpha2.ObjectProtocol_GCS
	}
	return &v1alpha2.ObjectProtocol{Type: t}
}

func protocolsTo2(in []Protocol) []*v1alpha2.ObjectProtocol {
	var out []*v1alpha2.ObjectProtocol
	for _, p := range in {
		out = append(out, protocolTo2(p))
	}
	return out
}

func protocolFrom2(p *v1alpha2.ObjectProtocol) Protocol {
	switch p.GetType() {
	case v1alpha2.ObjectProtocol_S3:
		return S3
	case v1alpha2.ObjectProtocol_AZURE:
		return Azure
	case v1alpha2.ObjectProtocol_GCS:
		return GCS
	}
	return Protocol(p.GetType().String()) // of a later version: kept, so that it does not look like no answer
}

func protocolsFrom2(in []*v1alpha2.ObjectProtocol) []Protocol {
	var out []Protocol
	for _, p := range in {
		out = append(out, protocolFrom2(p))
	}
	return out
}

func authenticationTo2(a AuthenticationType) *v1alpha2.AuthenticationType {
	t := v1alpha2.AuthenticationType_UNKNOWN
	switch a {
	case Key:
		t = v1alpha2.AuthenticationType_KEY
	case ServiceAccount:
		t = v1alpha2.AuthenticationType_SERVICE_ACCOUNT
	}
	return &v1alpha2.AuthenticationType{Type: t}
}

func accessedTo2(in []AccessedBucket) []*v1alpha2.DriverGrantBucketAccessRequest_AccessedBucket {
	var out []*v1alpha2.DriverGrantBucketAccessRequest_AccessedBucket
	for _, b := range in {
		m := v1alpha2.AccessMode_UNKNOWN
		switch b.Mode {
		case ReadWrite:
			m = v1alpha2.AccessMode_READ_WRITE
		case ReadOnly:
			m = v1alpha2.AccessMode_READ_ONLY
		case WriteOnly:
			m = v1alpha2.AccessMode_WRITE_ONLY
		}
		out = append(out, &v1alpha2.DriverGrantBucketAccessRequest_AccessedBucket{BucketId: b.ID, AccessMode: &v1alpha2.AccessMode{Mode: m}})
	}
	return out
}

func bucketInfoFrom2(in *v1alpha2.ObjectProtocolAndBucketInfo) BucketInfo {
	var out BucketInfo
	if s := in.GetS3(); s != nil {
		out.S3 = &S3Bucket{BucketID: s.GetBucketId(), Endpoint: s.GetEndpoint(), Region: s.GetRegion()}
		switch s.GetAddressingStyle().GetStyle() {
		case v1alpha2.S3AddressingStyle_PATH:
			out.S3.AddressingStyle = PathStyle
		case v1alpha2.S3AddressingStyle_VIRTUAL:
			out.S3.AddressingStyle = VirtualStyle
		}
	}
	if a := in.GetAzure(); a != nil {
		out.Azure = &AzureBucket{StorageAccount: a.GetStorageAccount()}
	}
	if g := in.GetGcs(); g != nil {
		out.GCS = &GCSBucket{ProjectID: g.GetProjectId(), BucketName: g.GetBucketName()}
	}
	return out
}

func credentialsFrom2(in *v1alpha2.CredentialInfo) Credentials {
	var out Credentials
	if s := in.GetS3(); s != nil {
		out.S3 = &S3Credentials{AccessKeyID: Secret(s.GetAccessKeyId()), AccessSecretKey: Secret(s.GetAccessSecretKey())}
	}
	if a := in.GetAzure(); a != nil {
		out.Azure = &AzureCredentials{AccessToken: Secret(a.GetAccessToken()), Expiry: a.GetExpiryTimestamp()}
	}
	if g := in.GetGcs(); g != nil {
		out.GCS = &GCSCredentials{AccessID: Secret(g.GetAccessId()), AccessSecret: Secret(g.GetAccessSecret()), PrivateKeyName: g.GetPrivateKeyName(), ServiceAccount: g.GetServiceAccount()}
	}
	return out
}
