package double

import (
	"context"

	"github.com/custody-storage/custody/cosi/wire"
)

// endpoint is what a bucket's users are told; nobody listens there.
const endpoint = "http://double.invalid"

var _ wire.Driver = (*Driver)(nil)

// Info implements wire.Driver.
func (d *Driver) Info() wire.Info {
	return wire.Info{Name: d.config.Name, Protocols: []wire.Protocol{wire.S3}, Recovery: wire.Recovery{Buckets: d.config.Buckets.Offers, Accounts: d.config.Accounts.Offers}}
}

// GenerateBucketID implements wire.Driver.
func (d *Driver) GenerateBucketID(_ context.Context, r wire.BucketRequest) (string, error) {
	t, err := d.act(Request{Op: Generate, Kind: Bucket, Name: r.Name, Region: region(r.Parameters)})
	return t.ID, err
}

// CreateBucket implements wire.Driver.
func (d *Driver) CreateBucket(_ context.Context, r wire.BucketRequest) (wire.Bucket, error) {
	t, err := d.create(Request{Op: Create, Kind: Bucket, Name: r.Name, ID: r.ID, Region: region(r.Parameters)})
	return bucket(t.ID, r.Parameters), err
}

// GetBucket implements wire.Driver.
func (d *Driver) GetBucket(_ context.Context, r wire.GetBucketRequest) (wire.Bucket, error) {
	t, err := d.act(Request{Op: Get, Kind: Bucket, ID: r.ID})
	return bucket(t.ID, r.Parameters), err
}

// DeleteBucket implements wire.Driver.
func (d *Driver) DeleteBucket(_ context.Context, r wire.DeleteBucketRequest) error {
	_, err := d.act(Request{Op: Delete, Kind: Bucket, ID: r.ID})
	return err
}

// GenerateAccountID implements wire.Driver.
func (d *Driver) GenerateAccountID(_ context.Context, r wire.GrantRequest) (string, error) {
	t, err := d.act(Request{Op: Generate, Kind: Account, Name: r.Name, Region: region(r.Parameters)})
	return t.ID, err
}

// GrantAccess implements wire.Driver. The access key is the account's id, the
// secret one of its keys.
func (d *Driver) GrantAccess(_ context.Context, r wire.GrantRequest) (wire.Grant, error) {
	t, err := d.create(Request{Op: Create, Kind: Account, Name: r.Name, ID: r.ID, Region: region(r.Parameters)})
	if err != nil || len(t.Keys) == 0 {
		return wire.Grant{}, err
	}
	g := wire.Grant{AccountID: t.ID, Credentials: wire.Credentials{S3: &wire.S3Credentials{
		AccessKeyID: wire.Secret(t.ID), AccessSecretKey: wire.Secret(t.Keys[len(t.Keys)-1]),
	}}}
	for _, b := range r.Buckets {
		g.Buckets = append(g.Buckets, bucket(b.ID, r.Parameters))
	}
	return g, nil
}

// RevokeAccess implements wire.Driver.
func (d *Driver) RevokeAccess(_ context.Context, r wire.RevokeRequest) error {
	_, err := d.act(Request{Op: Delete, Kind: Account, ID: r.AccountID})
	return err
}

// DeleteByName implements wire.Driver.
func (d *Driver) DeleteByName(_ context.Context, kind wire.Kind, r wire.NameRequest) error {
	k := kindOf(kind)
	if !d.config.trait(k).Offers.DeleteByName {
		return wire.ErrNotOffered
	}
	if err := d.busy(k, r.Name); err != nil {
		return err
	}
	if _, err := d.act(Request{Op: DeleteByName, Kind: k, Name: r.Name}); err != nil {
		return err
	}
	return d.busy(k, r.Name) // one may have begun meanwhile
}

// FindByName implements wire.Driver.
func (d *Driver) FindByName(_ context.Context, kind wire.Kind, r wire.NameRequest) ([]wire.Item, error) {
	k := kindOf(kind)
	if !d.config.trait(k).Offers.FindByName {
		return nil, wire.ErrNotOffered
	}
	if err := d.busy(k, r.Name); err != nil {
		return nil, err
	}
	things, err := d.all(Request{Op: Find, Kind: k, Name: r.Name})
	return d.items(things), err
}

// List implements wire.Driver, in one page.
func (d *Driver) List(_ context.Context, kind wire.Kind, _ wire.ListRequest) (wire.Page, error) {
	k := kindOf(kind)
	if !d.config.trait(k).Offers.List {
		return wire.Page{}, wire.ErrNotOffered
	}
	things, err := d.all(Request{Op: List, Kind: k})
	return wire.Page{Items: d.items(things)}, err
}

func (d *Driver) items(things []Thing) []wire.Item {
	var items []wire.Item
	for _, t := range things {
		i := wire.Item{ID: t.ID, Name: t.Name}
		switch {
		case !d.config.trait(t.Kind).Offers.OwnerMark:
		case t.Driver == d.config.Name:
			i.Owner = t.Name
		default:
			i.Owner = "made by " + t.Driver
		}
		items = append(items, i)
	}
	return items
}

func kindOf(k wire.Kind) Kind {
	if k == wire.KindAccount {
		return Account
	}
	return Bucket
}

func bucket(id string, parameters map[string]string) wire.Bucket {
	if id == "" {
		return wire.Bucket{}
	}
	return wire.Bucket{ID: id, Info: wire.BucketInfo{S3: &wire.S3Bucket{
		BucketID: id, Endpoint: endpoint, Region: region(parameters), AddressingStyle: wire.PathStyle,
	}}}
}
