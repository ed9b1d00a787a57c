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

func authenticationFrom2(a *v1alpha2.AuthenticationType) AuthenticationType {
	switch a.GetType() {
	case v1alpha2.AuthenticationType_KEY:
		return Key
	case v1alpha2.AuthenticationType_SERVICE_ACCOUNT:
		return ServiceAccount
	}
	return AuthenticationType(a.GetType().String())
}

func accessedFrom2(in []*v1alpha2.DriverGrantBucketAccessRequest_AccessedBucket) []AccessedBucket {
	var out []AccessedBucket
	for _, b := range in {
		mode := AccessMode(b.GetAccessMode().GetMode().String())
		switch b.GetAccessMode().GetMode() {
		case v1alpha2.AccessMode_READ_WRITE:
			mode = ReadWrite
		case v1alpha2.AccessMode_READ_ONLY:
			mode = ReadOnly
		case v1alpha2.AccessMode_WRITE_ONLY:
			mode = WriteOnly
		}
		out = append(out, AccessedBucket{ID: b.GetBucketId(), Mode: mode})
	}
	return out
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

func bucketInfoTo2(in BucketInfo) *v1alpha2.ObjectProtocolAndBucketInfo {
	out := &v1alpha2.ObjectProtocolAndBucketInfo{}
	if s := in.S3; s != nil {
		style := v1alpha2.S3AddressingStyle_UNKNOWN
		switch s.AddressingStyle {
		case PathStyle:
			style = v1alpha2.S3AddressingStyle_PATH
		case VirtualStyle:
			style = v1alpha2.S3AddressingStyle_VIRTUAL
		}
		out.S3 = &v1alpha2.S3BucketInfo{BucketId: s.BucketID, Endpoint: s.Endpoint, Region: s.Region, AddressingStyle: &v1alpha2.S3AddressingStyle{Style: style}}
	}
	if a := in.Azure; a != nil {
		out.Azure = &v1alpha2.AzureBucketInfo{StorageAccount: a.StorageAccount}
	}
	if g := in.GCS; g != nil {
		out.Gcs = &v1alpha2.GcsBucketInfo{ProjectId: g.ProjectID, BucketName: g.BucketName}
	}
	return out
}

func credentialsTo2(in Credentials) *v1alpha2.CredentialInfo {
	out := &v1alpha2.CredentialInfo{}
	if s := in.S3; s != nil {
		out.S3 = &v1alpha2.S3CredentialInfo{AccessKeyId: s.AccessKeyID.Reveal(), AccessSecretKey: s.AccessSecretKey.Reveal()}
	}
	if a := in.Azure; a != nil {
		out.Azure = &v1alpha2.AzureCredentialInfo{AccessToken: a.AccessToken.Reveal(), ExpiryTimestamp: a.Expiry}
	}
	if g := in.GCS; g != nil {
		out.Gcs = &v1alpha2.GcsCredentialInfo{AccessId: g.AccessID.Reveal(), AccessSecret: g.AccessSecret.Reveal(), PrivateKeyName: g.PrivateKeyName, ServiceAccount: g.ServiceAccount}
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
