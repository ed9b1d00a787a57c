package wire

import "slices"

// Kind is what a call of the Recovery service is about.
type Kind uint8

const (
	KindBucket Kind = iota + 1
	KindAccount
)

// String is "bucket" or "account", for messages.
func (k Kind) String() string {
	switch k {
	case KindBucket:
		return "bucket"
	case KindAccount:
		return "account"
	}
	return "unknown kind"
}

// Dialect is which of COSI's interfaces a driver speaks.
type Dialect string

const (
	V1alpha1 Dialect = "v1alpha1"
	V1alpha2 Dialect = "v1alpha2" // one phase or two: see Driver.GenerateBucketID
)

// Protocol is an object storage protocol, spelled as in the API group objectstorage.k8s.io.
type Protocol string

const (
	S3    Protocol = "S3"
	Azure Protocol = "Azure"
	GCS   Protocol = "GCS"
)

// AccessMode is what an account may do with a bucket, spelled as in the API group.
type AccessMode string

const (
	ReadWrite AccessMode = "ReadWrite"
	ReadOnly  AccessMode = "ReadOnly"
	WriteOnly AccessMode = "WriteOnly"
)

// AuthenticationType is how a workload proves who it is, spelled as in the API group.
type AuthenticationType string

const (
	Key            AuthenticationType = "Key"
	ServiceAccount AuthenticationType = "ServiceAccount"
)

// AddressingStyle is where an S3 client puts the bucket's name, spelled as S3 clients do. Empty: not said.
type AddressingStyle string

const (
	PathStyle    AddressingStyle = "path"
	VirtualStyle AddressingStyle = "virtual"
)

// Info is what a driver says of itself.
type Info struct {
	// Name is the driver's name, that which objects name in driverName.
	Name string
	// Dialect is the interface it answered on.
	Dialect Dialect
	// Protocols are those the driver supports; nil if it did not say (v1alpha1 has no way to).
	Protocols []Protocol
	// Recovery is what the driver can do from a name alone; all false without the Recovery service.
	Recovery Recovery
}

// Supports tells if the driver may serve a protocol: it named it, or named none.
func (i Info) Supports(p Protocol) bool {
	return len(i.Protocols) == 0 || slices.Contains(i.Protocols, p)
}

// Recovery is the answer of the Recovery service's GetCapabilities.
type Recovery struct {
	Buckets, Accounts Capabilities
}

// Of is the part that speaks of one kind.
func (r Recovery) Of(kind Kind) Capabilities {
	switch kind {
	case KindBucket:
		return r.Buckets
	case KindAccount:
		return r.Accounts
	}
	return Capabilities{}
}

// Capabilities is what a driver can do from a name alone, for one kind.
type Capabilities struct {
	DeleteByName, FindByName, List bool
	// CreateRepeatSafe: a repeat of a create with the same name and inputs answers the same id and makes
	// nothing more.
	CreateRepeatSafe bool
	// OwnerMark: Item.Owner tells who made a thing.
	OwnerMark bool
}

// BucketRequest asks for a bucket, or for the id that it will have.
type BucketRequest struct {
	// Name is the idempotency key. A two-phase driver sees it only when the id is generated.
	Name string
	// ID is the generated id, empty in the one-phase dialects.
	ID         string
	Protocols  []Protocol
	Parameters map[string]string
}

// GetBucketRequest asks about a bucket whose id is known.
type GetBucketRequest struct {
	ID         string
	Protocols  []Protocol
	Parameters map[string]string
}

// DeleteBucketRequest asks to delete a bucket by id.
type DeleteBucketRequest struct {
	ID         string
	Parameters map[string]string
}

// Bucket is a bucket as the driver answered it.
type Bucket struct {
	ID   string
	Info BucketInfo
}

// BucketInfo tells how to reach a bucket, by protocol; nil where the driver said nothing of a protocol.
// Nothing in it is secret.
type BucketInfo struct {
	S3    *S3Bucket
	Azure *AzureBucket
	GCS   *GCSBucket
}

// Protocols are those that the info speaks of.
func (b BucketInfo) Protocols() []Protocol {
	var p []Protocol
	if b.S3 != nil {
		p = append(p, S3)
	}
	if b.Azure != nil {
		p = append(p, Azure)
	}
	if b.GCS != nil {
		p = append(p, GCS)
	}
	return p
}

// S3Bucket tells an S3 client how to reach a bucket. BucketID is the bucket's name in S3.
type S3Bucket struct {
	BucketID, Endpoint, Region string
	AddressingStyle            AddressingStyle
}

// AzureBucket tells an Azure client how to reach a container.
type AzureBucket struct{ StorageAccount string }

// GCSBucket tells a client of Google Cloud Storage how to reach a bucket.
type GCSBucket struct{ ProjectID, BucketName string }

// AccessedBucket is a bucket that an account gets access to.
type AccessedBucket struct {
	ID   string
	Mode AccessMode // v1alpha1 has no modes: not sent
}

// GrantRequest asks for an account, or for the id that it will have.
type GrantRequest struct {
	// Name is the idempotency key. A two-phase driver sees it only when the id is generated.
	Name string
	// ID is the generated id, empty in the one-phase dialects.
	ID                 string
	Protocol           Protocol
	Authentication     AuthenticationType
	ServiceAccountName string
	Parameters         map[string]string
	Buckets            []AccessedBucket
}

// Grant is an account as the driver answered it. It holds secrets; they print redacted.
type Grant struct {
	AccountID   string
	Buckets     []Bucket
	Credentials Credentials
}

// RevokeRequest asks to delete an account by id. The driver finds its grants by the buckets.
type RevokeRequest struct {
	AccountID          string
	Protocol           Protocol
	Authentication     AuthenticationType
	ServiceAccountName string
	Parameters         map[string]string
	BucketIDs          []string
}

// NameRequest names what was asked for by an earlier create or grant.
type NameRequest struct {
	Name string
	// Parameters are those of the create or grant.
	Parameters map[string]string
}

// Item is one thing that exists in the backend.
type Item struct {
	ID string
	// Name is what it was created under, where the driver knows.
	Name string
	// Owner is the driver's mark of who made it. See MadeFor.
	Owner string
}

// MadeFor tells if this driver made the item for the create call of that name, by the driver's own mark.
// False says nothing where the driver reports no marks (Capabilities.OwnerMark).
func (i Item) MadeFor(name string) bool { return name != "" && i.Owner == name }

// ListRequest asks for one page of all that exists.
type ListRequest struct {
	PageSize   int32 // 0: as the driver likes
	PageToken  string
	Parameters map[string]string
}

// Page is one page of a list; NextPageToken is empty on the last.
type Page struct {
	Items         []Item
	NextPageToken string
}
