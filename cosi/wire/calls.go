package wire

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire/recovery"
)

// dialect is one of COSI's interfaces. Its methods map requests and answers; each makes at most one call,
// but for the looks that have two names.
type dialect interface {
	generateBucketID(context.Context, BucketRequest) (string, error)
	createBucket(context.Context, BucketRequest) (Bucket, error)
	getBucket(context.Context, GetBucketRequest) (Bucket, error)
	deleteBucket(context.Context, DeleteBucketRequest) error
	generateAccountID(context.Context, GrantRequest) (string, error)
	grantAccess(context.Context, GrantRequest) (Grant, error)
	revokeAccess(context.Context, RevokeRequest) error
}

// through runs f with a deadline on the dialect that the present connection speaks.
func through[Req, Resp any](ctx context.Context, c *Client, f func(dialect, context.Context, Req) (Resp, error), req Req) (resp Resp, err error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	a, err := c.ready(ctx)
	if err != nil {
		return resp, err
	}
	return f(a.dialect, ctx, req)
}

// GenerateBucketID implements Driver.
func (c *Client) GenerateBucketID(ctx context.Context, req BucketRequest) (string, error) {
	return through(ctx, c, dialect.generateBucketID, req)
}

// CreateBucket implements Driver.
func (c *Client) CreateBucket(ctx context.Context, req BucketRequest) (Bucket, error) {
	b, err := through(ctx, c, dialect.createBucket, req)
	if b.ID == "" {
		b.ID = MadeID(err)
	}
	return b, err
}

// GetBucket implements Driver.
func (c *Client) GetBucket(ctx context.Context, req GetBucketRequest) (Bucket, error) {
	return through(ctx, c, dialect.getBucket, req)
}

// DeleteBucket implements Driver.
func (c *Client) DeleteBucket(ctx context.Context, req DeleteBucketRequest) error {
	_, err := through(ctx, c, func(d dialect, ctx context.Context, req DeleteBucketRequest) (struct{}, error) {
		return struct{}{}, d.deleteBucket(ctx, req)
	}, req)
	return err
}

// GenerateAccountID implements Driver.
func (c *Client) GenerateAccountID(ctx context.Context, req GrantRequest) (string, error) {
	return through(ctx, c, dialect.generateAccountID, req)
}

// GrantAccess implements Driver.
func (c *Client) GrantAccess(ctx context.Context, req GrantRequest) (Grant, error) {
	g, err := through(ctx, c, dialect.grantAccess, req)
	if g.AccountID == "" {
		g.AccountID = MadeID(err)
	}
	return g, err
}

// RevokeAccess implements Driver.
func (c *Client) RevokeAccess(ctx context.Context, req RevokeRequest) error {
	_, err := through(ctx, c, func(d dialect, ctx context.Context, req RevokeRequest) (struct{}, error) {
		return struct{}{}, d.revokeAccess(ctx, req)
	}, req)
	return err
}

// byKind picks a Recovery call by kind, if the driver has it.
func byKind[Req, Resp any](ctx context.Context, c *Client, kind Kind, has func(Capabilities) bool, op, subject string, bucket, account rpc[Req, Resp], req Req) (resp Resp, err error) {
	a, err := c.ready(ctx)
	if err != nil {
		return resp, err
	}
	if !has(a.info.Recovery.Of(kind)) {
		return resp, ErrNotOffered
	}
	f := bucket
	if kind == KindAccount {
		f = account
	}
	resp, err = call(ctx, caller{a.info.Name, c.endpoint}, "Recovery."+op+" ("+kind.String()+")", subject, f, req)
	if unimplemented(err) { // whatever it said of its capabilities
		return resp, ErrNotOffered
	}
	return resp, err
}

// DeleteByName implements Driver.
func (c *Client) DeleteByName(ctx context.Context, kind Kind, req NameRequest) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	rc := recovery.NewRecoveryClient(c.conn)
	_, err := byKind(ctx, c, kind, func(c Capabilities) bool { return c.DeleteByName }, "DeleteByName", req.Name,
		rc.DeleteBucketByName, rc.DeleteAccountByName, &recovery.DeleteByNameRequest{Name: req.Name, Parameters: req.Parameters})
	return err
}

// FindByName implements Driver.
func (c *Client) FindByName(ctx context.Context, kind Kind, req NameRequest) ([]Item, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	rc := recovery.NewRecoveryClient(c.conn)
	resp, err := byKind(ctx, c, kind, func(c Capabilities) bool { return c.FindByName }, "FindByName", req.Name,
		rc.FindBucketByName, rc.FindAccountByName, &recovery.FindByNameRequest{Name: req.Name, Parameters: req.Parameters})
	return itemsFrom(resp.GetItems()), err
}

// List implements Driver.
func (c *Client) List(ctx context.Context, kind Kind, req ListRequest) (Page, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	rc := recovery.NewRecoveryClient(c.conn)
	resp, err := byKind(ctx, c, kind, func(c Capabilities) bool { return c.List }, "List", req.PageToken,
		rc.ListBuckets, rc.ListAccounts, &recovery.ListRequest{PageSize: req.PageSize, PageToken: req.PageToken, Parameters: req.Parameters})
	return Page{Items: itemsFrom(resp.GetItems()), NextPageToken: resp.GetNextPageToken()}, err
}

// refuse is an error of this package's own, before any call.
func refuse(who caller, op, subject string, code codes.Code, message string) error {
	return &notSentError{&CallError{Op: op, Subject: subject, Driver: who.driver, Endpoint: who.endpoint, Err: status.Error(code, message)}}
}
