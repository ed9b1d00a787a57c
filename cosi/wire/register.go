package wire

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1alpha1 "sigs.k8s.io/container-object-storage-interface/proto"

	"github.com/custody-storage/custody/cosi/wire/recovery"
	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

// Services says in which of the interfaces a Driver is served.
type Services struct {
	V1alpha1, V1alpha2 bool
	// TwoPhase: the generate calls and DriverGetBucket are answered too, and what stands in field 1 of
	// create and grant is read as the id (BucketRequest.ID), not as the name. It cannot be told from the
	// message, so a server serves one phase or two, never both. Needs V1alpha2.
	TwoPhase bool
	// Recovery: the Recovery service is served, with what Info says of it.
	Recovery bool
}

// Register serves a Driver over gRPC: the other side of Client. It maps messages and errors and does
// nothing else; a driver author wants package driver, which does.
func Register(s grpc.ServiceRegistrar, d Driver, which Services) error {
	if which.TwoPhase && !which.V1alpha2 {
		return errors.New("wire: TwoPhase is part of V1alpha2 and needs it")
	}
	if !which.V1alpha1 && !which.V1alpha2 {
		return errors.New("wire: a driver serves V1alpha1, V1alpha2 or both; neither was asked for")
	}
	if which.V1alpha1 {
		v1alpha1.RegisterIdentityServer(s, &identity1{d: d})
		v1alpha1.RegisterProvisionerServer(s, &server1{d: d})
	}
	if which.V1alpha2 {
		v1alpha2.RegisterIdentityServer(s, &identity2{d: d})
		v1alpha2.RegisterProvisionerServer(s, &server2{d: d, twoPhase: which.TwoPhase})
	}
	if which.Recovery {
		recovery.RegisterRecoveryServer(s, &serverRecovery{d: d})
	}
	return nil
}

// reply turns a driver's error into a status, with the id that was made, if there is one.
func reply(err error, made string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrNotOffered) {
		return status.Error(codes.Unimplemented, err.Error())
	}
	s := status.New(Code(err), Message(err))
	if made == "" {
		made = MadeID(err)
	}
	return WithMadeID(s.Err(), made)
}

type identity1 struct {
	v1alpha1.UnimplementedIdentityServer
	d Driver
}

func (s *identity1) DriverGetInfo(context.Context, *v1alpha1.DriverGetInfoRequest) (*v1alpha1.DriverGetInfoResponse, error) {
	return &v1alpha1.DriverGetInfoResponse{Name: s.d.Info().Name}, nil
}

// server1 serves v1alpha1.
type server1 struct {
	v1alpha1.UnimplementedProvisionerServer
	d Driver
}

// protocols: a v1alpha1 request names no protocol; the driver's first is meant.
func (s *server1) protocols() []Protocol {
	if p := s.d.Info().Protocols; len(p) > 0 {
		return p[:1]
	}
	return nil
}

func (s *server1) DriverCreateBucket(ctx context.Context, r *v1alpha1.DriverCreateBucketRequest) (*v1alpha1.DriverCreateBucketResponse, error) {
	b, err := s.d.CreateBucket(ctx, BucketRequest{Name: r.GetName(), Protocols: s.protocols(), Parameters: r.GetParameters()})
	if err != nil {
		return nil, reply(err, b.ID)
	}
	return &v1alpha1.DriverCreateBucketResponse{BucketId: b.ID, BucketInfo: bucketInfoTo1(b.Info)}, nil
}

func (s *server1) DriverDeleteBucket(ctx context.Context, r *v1alpha1.DriverDeleteBucketRequest) (*v1alpha1.DriverDeleteBucketResponse, error) {
	err := s.d.DeleteBucket(ctx, DeleteBucketRequest{ID: r.GetBucketId(), Parameters: r.GetDeleteContext()})
	return &v1alpha1.DriverDeleteBucketResponse{}, reply(err, "")
}

func (s *server1) DriverGrantBucketAccess(ctx context.Context, r *v1alpha1.DriverGrantBucketAccessRequest) (*v1alpha1.DriverGrantBucketAccessResponse, error) {
	req := GrantRequest{
		Name:           r.GetName(),
		Authentication: authenticationFrom1(r.GetAuthenticationType()),
		Parameters:     r.GetParameters(),
		Buckets:        []AccessedBucket{{ID: r.GetBucketId(), Mode: ReadWrite}},
	}
	if p := s.protocols(); len(p) > 0 {
		req.Protocol = p[0]
	}
	g, err := s.d.GrantAccess(ctx, req)
	if err != nil {
		return nil, reply(err, g.AccountID)
	}
	return &v1alpha1.DriverGrantBucketAccessResponse{AccountId: g.AccountID, Credentials: credentialsTo1(g)}, nil
}

func (s *server1) DriverRevokeBucketAccess(ctx context.Context, r *v1alpha1.DriverRevokeBucketAccessRequest) (*v1alpha1.DriverRevokeBucketAccessResponse, error) {
	req := RevokeRequest{AccountID: r.GetAccountId(), Parameters: r.GetRevokeAccessContext()}
	if id := r.GetBucketId(); id != "" {
		req.BucketIDs = []string{id}
	}
	return &v1alpha1.DriverRevokeBucketAccessResponse{}, reply(s.d.RevokeAccess(ctx, req), "")
}

type identity2 struct {
	v1alpha2.UnimplementedIdentityServer
	d Driver
}

func (s *identity2) DriverGetInfo(context.Context, *v1alpha2.DriverGetInfoRequest) (*v1alpha2.DriverGetInfoResponse, error) {
	info := s.d.Info()
	return &v1alpha2.DriverGetInfoResponse{Name: info.Name, SupportedProtocols: protocolsTo2(info.Protocols)}, nil
}

// server2 serves v1alpha2 in one phase or two.
type server2 struct {
	v1alpha2.UnimplementedProvisionerServer
	d        Driver
	twoPhase bool
}

// nameOrID puts field 1 of a create or grant where the phase has it.
func (s *server2) nameOrID(field string) (name, id string) {
	if s.twoPhase {
		return "", field
	}
	return field, ""
}

func (s *server2) onlyTwoPhase(call string) error {
	if s.twoPhase {
		return nil
	}
	return status.Error(codes.Unimplemented, "this driver creates in one phase and has no "+call)
}

func (s *server2) DriverGenerateBucketId(ctx context.Context, r *v1alpha2.DriverGenerateBucketIdRequest) (*v1alpha2.DriverGenerateBucketIdResponse, error) {
	if err := s.onlyTwoPhase("DriverGenerateBucketId"); err != nil {
		return nil, err
	}
	id, err := s.d.GenerateBucketID(ctx, BucketRequest{Name: r.GetName(), Protocols: protocolsFrom2(r.GetProtocols()), Parameters: r.GetParameters()})
	return &v1alpha2.DriverGenerateBucketIdResponse{BucketId: id}, reply(err, "")
}

func (s *server2) DriverCreateBucket(ctx context.Context, r *v1alpha2.DriverCreateBucketRequest) (*v1alpha2.DriverCreateBucketResponse, error) {
	req := BucketRequest{Protocols: protocolsFrom2(r.GetProtocols()), Parameters: r.GetParameters()}
	req.Name, req.ID = s.nameOrID(r.GetName())
	b, err := s.d.CreateBucket(ctx, req)
	if err != nil {
		return nil, reply(err, b.ID)
	}
	return &v1alpha2.DriverCreateBucketResponse{BucketId: b.ID, Protocols: bucketInfoTo2(b.Info)}, nil
}

func (s *server2) DriverGetExistingBucket(ctx context.Context, r *v1alpha2.DriverGetExistingBucketRequest) (*v1alpha2.DriverGetExistingBucketResponse, error) {
	if s.twoPhase {
		return nil, status.Error(codes.Unimplemented, "this driver creates in two phases and has DriverGetBucket instead")
	}
	b, err := s.d.GetBucket(ctx, GetBucketRequest{ID: r.GetExistingBucketId(), Protocols: protocolsFrom2(r.GetProtocols()), Parameters: r.GetParameters()})
	return &v1alpha2.DriverGetExistingBucketResponse{BucketId: b.ID, Protocols: bucketInfoTo2(b.Info)}, reply(err, "")
}

func (s *server2) DriverGetBucket(ctx context.Context, r *v1alpha2.DriverGetBucketRequest) (*v1alpha2.DriverGetBucketResponse, error) {
	if err := s.onlyTwoPhase("DriverGetBucket"); err != nil {
		return nil, err
	}
	b, err := s.d.GetBucket(ctx, GetBucketRequest{ID: r.GetBucketId(), Protocols: protocolsFrom2(r.GetProtocols()), Parameters: r.GetParameters()})
	return &v1alpha2.DriverGetBucketResponse{BucketId: b.ID, Protocols: bucketInfoTo2(b.Info)}, reply(err, "")
}

func (s *server2) DriverDeleteBucket(ctx context.Context, r *v1alpha2.DriverDeleteBucketRequest) (*v1alpha2.DriverDeleteBucketResponse, error) {
	err := s.d.DeleteBucket(ctx, DeleteBucketRequest{ID: r.GetBucketId(), Parameters: r.GetParameters()})
	return &v1alpha2.DriverDeleteBucketResponse{}, reply(err, "")
}

func (s *server2) DriverGenerateBucketAccessId(ctx context.Context, r *v1alpha2.DriverGenerateBucketAccessIdRequest) (*v1alpha2.DriverGenerateBucketAccessIdResponse, error) {
	if err := s.onlyTwoPhase("DriverGenerateBucketAccessId"); err != nil {
		return nil, err
	}
	id, err := s.d.GenerateAccountID(ctx, GrantRequest{
		Name:               r.GetAccountName(),
		Protocol:           protocolFrom2(r.GetProtocol()),
		Authentication:     authenticationFrom2(r.GetAuthenticationType()),
		ServiceAccountName: r.GetServiceAccountName(),
		Parameters:         r.GetParameters(),
		Buckets:            accessedFrom2(r.GetBuckets()),
	})
	return &v1alpha2.DriverGenerateBucketAccessIdResponse{AccountId: id}, reply(err, "")
}

func (s *server2) DriverGrantBucketAccess(ctx context.Context, r *v1alpha2.DriverGrantBucketAccessRequest) (*v1alpha2.DriverGrantBucketAccessResponse, error) {
	req := GrantRequest{
		Protocol:           protocolFrom2(r.GetProtocol()),
		Authentication:     authenticationFrom2(r.GetAuthenticationType()),
		ServiceAccountName: r.GetServiceAccountName(),
		Parameters:         r.GetParameters(),
		Buckets:            accessedFrom2(r.GetBuckets()),
	}
	req.Name, req.ID = s.nameOrID(r.GetAccountName())
	g, err := s.d.GrantAccess(ctx, req)
	if err != nil {
		return nil, reply(err, g.AccountID)
	}
	resp := &v1alpha2.DriverGrantBucketAccessResponse{AccountId: g.AccountID, Credentials: credentialsTo2(g.Credentials)}
	for _, b := range g.Buckets {
		resp.Buckets = append(resp.Buckets, &v1alpha2.DriverGrantBucketAccessResponse_BucketInfo{BucketId: b.ID, BucketInfo: bucketInfoTo2(b.Info)})
	}
	return resp, nil
}

func (s *server2) DriverRevokeBucketAccess(ctx context.Context, r *v1alpha2.DriverRevokeBucketAccessRequest) (*v1alpha2.DriverRevokeBucketAccessResponse, error) {
	req := RevokeRequest{
		AccountID:          r.GetAccountId(),
		Protocol:           protocolFrom2(r.GetProtocol()),
		Authentication:     authenticationFrom2(r.GetAuthenticationType()),
		ServiceAccountName: r.GetServiceAccountName(),
		Parameters:         r.GetParameters(),
	}
	for _, b := range r.GetBuckets() {
		req.BucketIDs = append(req.BucketIDs, b.GetBucketId())
	}
	return &v1alpha2.DriverRevokeBucketAccessResponse{}, reply(s.d.RevokeAccess(ctx, req), "")
}

// serverRecovery serves the Recovery service.
type serverRecovery struct {
	recovery.UnimplementedRecoveryServer
	d Driver
}

func (s *serverRecovery) GetCapabilities(context.Context, *recovery.GetCapabilitiesRequest) (*recovery.GetCapabilitiesResponse, error) {
	r := s.d.Info().Recovery
	return &recovery.GetCapabilitiesResponse{Buckets: capabilitiesTo(r.Buckets), Accounts: capabilitiesTo(r.Accounts)}, nil
}

func (s *serverRecovery) deleteByName(ctx context.Context, kind Kind, r *recovery.DeleteByNameRequest) (*recovery.DeleteByNameResponse, error) {
	err := s.d.DeleteByName(ctx, kind, NameRequest{Name: r.GetName(), Parameters: r.GetParameters()})
	return &recovery.DeleteByNameResponse{}, reply(err, "")
}

func (s *serverRecovery) findByName(ctx context.Context, kind Kind, r *recovery.FindByNameRequest) (*recovery.FindByNameResponse, error) {
	items, err := s.d.FindByName(ctx, kind, NameRequest{Name: r.GetName(), Parameters: r.GetParameters()})
	return &recovery.FindByNameResponse{Items: itemsTo(items)}, reply(err, "")
}

func (s *serverRecovery) list(ctx context.Context, kind Kind, r *recovery.ListRequest) (*recovery.ListResponse, error) {
	if r.GetPageSize() < 0 {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("page_size is %d; it is 0 or more", r.GetPageSize()))
	}
	p, err := s.d.List(ctx, kind, ListRequest{PageSize: r.GetPageSize(), PageToken: r.GetPageToken(), Parameters: r.GetParameters()})
	return &recovery.ListResponse{Items: itemsTo(p.Items), NextPageToken: p.NextPageToken}, reply(err, "")
}

func (s *serverRecovery) DeleteBucketByName(ctx context.Context, r *recovery.DeleteByNameRequest) (*recovery.DeleteByNameResponse, error) {
	return s.deleteByName(ctx, KindBucket, r)
}

func (s *serverRecovery) DeleteAccountByName(ctx context.Context, r *recovery.DeleteByNameRequest) (*recovery.DeleteByNameResponse, error) {
	return s.deleteByName(ctx, KindAccount, r)
}

func (s *serverRecovery) FindBucketByName(ctx context.Context, r *recovery.FindByNameRequest) (*recovery.FindByNameResponse, error) {
	return s.findByName(ctx, KindBucket, r)
}

func (s *serverRecovery) FindAccountByName(ctx context.Context, r *recovery.FindByNameRequest) (*recovery.FindByNameResponse, error) {
	return s.findByName(ctx, KindAccount, r)
}

func (s *serverRecovery) ListBuckets(ctx context.Context, r *recovery.ListRequest) (*recovery.ListResponse, error) {
	return s.list(ctx, KindBucket, r)
}

func (s *serverRecovery) ListAccounts(ctx context.Context, r *recovery.ListRequest) (*recovery.ListResponse, error) {
	return s.list(ctx, KindAccount, r)
}
