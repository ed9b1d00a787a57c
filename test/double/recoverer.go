package double

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire/recovery"
)

// recoverer is the Recovery service, as much of it as the config offers.
type recoverer struct {
	recovery.UnimplementedRecoveryServer
	d *Driver
}

func (r *recoverer) GetCapabilities(context.Context, *recovery.GetCapabilitiesRequest) (*recovery.GetCapabilitiesResponse, error) {
	return &recovery.GetCapabilitiesResponse{Buckets: r.d.config.Buckets.Offers.wire(), Accounts: r.d.config.Accounts.Offers.wire()}, nil
}

func (o Offers) wire() *recovery.Capabilities {
	return &recovery.Capabilities{DeleteByName: o.DeleteByName, FindByName: o.FindByName, List: o.List, CreateRepeatSafe: o.RepeatSafe, OwnerMark: o.OwnerMark}
}

func (r *recoverer) DeleteBucketByName(_ context.Context, q *recovery.DeleteByNameRequest) (*recovery.DeleteByNameResponse, error) {
	return r.delete(Bucket, q)
}

func (r *recoverer) DeleteAccountByName(_ context.Context, q *recovery.DeleteByNameRequest) (*recovery.DeleteByNameResponse, error) {
	return r.delete(Account, q)
}

func (r *recoverer) delete(kind Kind, q *recovery.DeleteByNameRequest) (*recovery.DeleteByNameResponse, error) {
	if !r.d.config.trait(kind).Offers.DeleteByName {
		return nil, status.Error(codes.Unimplemented, "no delete by name here")
	}
	if err := r.d.busy(kind, q.GetName()); err != nil {
		return nil, err
	}
	_, err := r.d.act(Request{Op: DeleteByName, Kind: kind, Name: q.GetName()})
	if err == nil {
		err = r.d.busy(kind, q.GetName()) // one may have begun meanwhile
	}
	return &recovery.DeleteByNameResponse{}, err
}

func (r *recoverer) FindBucketByName(_ context.Context, q *recovery.FindByNameRequest) (*recovery.FindByNameResponse, error) {
	return r.find(Bucket, q)
}

func (r *recoverer) FindAccountByName(_ context.Context, q *recovery.FindByNameRequest) (*recovery.FindByNameResponse, error) {
	return r.find(Account, q)
}

func (r *recoverer) find(kind Kind, q *recovery.FindByNameRequest) (*recovery.FindByNameResponse, error) {
	if !r.d.config.trait(kind).Offers.FindByName {
		return nil, status.Error(codes.Unimplemented, "no find by name here")
	}
	if err := r.d.busy(kind, q.GetName()); err != nil {
		return nil, err
	}
	things, err := r.d.all(Request{Op: Find, Kind: kind, Name: q.GetName()})
	if err != nil {
		return nil, err
	}
	return &recovery.FindByNameResponse{Items: r.d.items(things)}, nil
}

func (r *recoverer) ListBuckets(_ context.Context, q *recovery.ListRequest) (*recovery.ListResponse, error) {
	return r.list(Bucket)
}

func (r *recoverer) ListAccounts(_ context.Context, q *recovery.ListRequest) (*recovery.ListResponse, error) {
	return r.list(Account)
}

func (r *recoverer) list(kind Kind) (*recovery.ListResponse, error) {
	if !r.d.config.trait(kind).Offers.List {
		return nil, status.Error(codes.Unimplemented, "no list here")
	}
	things, err := r.d.all(Request{Op: List, Kind: kind})
	if err != nil {
		return nil, err
	}
	return &recovery.ListResponse{Items: r.d.items(things)}, nil
}

func (d *Driver) items(things []Thing) []*recovery.Item {
	var items []*recovery.Item
	for _, t := range things {
		item := &recovery.Item{Id: t.ID, Name: t.Name}
		switch {
		case !d.config.trait(t.Kind).Offers.OwnerMark:
		case t.Driver == d.config.Name:
			item.OwnerMark = t.Name
		default:
			item.OwnerMark = "made by " + t.Driver
		}
		items = append(items, item)
	}
	return items
}
