package wire

import (
	"context"

	"github.com/custody-storage/custody/cosi/wire/v1alpha2"
)

// dialect2 is v1alpha2, of one phase or two. What is remembered of the two lies in the client, for as long
// as the connection.
type dialect2 struct {
	c   *Client
	who caller
	p   v1alpha2.ProvisionerClient
}

// generate runs a generate call, unless the driver was seen not to have it.
func generate[Req, Resp any](ctx context.Context, d *dialect2, kind Kind, op, name string, f rpc[Req, Resp], req Req, id func(Resp) string) (string, error) {
	d.c.mu.Lock()
	none, on := d.c.noGenerate[kind], d.c.answeredOn
	d.c.mu.Unlock()
	if none {
		return "", ErrNotOffered
	}
	got, err := call(ctx, d.who, op, name, f, req)
	d.remember(on, func(c *Client) {
		c.noGenerate[kind] = unimplemented(err)
		c.hasGenerate = c.hasGenerate || err == nil
	})
	switch {
	case unimplemented(err):
		return "", ErrNotOffered
	case err != nil:
		return "", err
	case id(got) == "":
		return "", &NoIDError{op, name, d.who.driver}
	}
	return id(got), nil
}

// remember changes what is known of the driver, if it is still the connection that showed it.
func (d *dialect2) remember(on uint64, change func(*Client)) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if d.c.answeredOn == on {
		change(d.c)
	}
}

func (d *dialect2) generateBucketID(ctx context.Context, req BucketRequest) (string, error) {
	return generate(ctx, d, KindBucket, "DriverGenerateBucketId", req.Name, d.p.DriverGenerateBucketId,
		&v1alpha2.DriverGenerateBucketIdRequest{Name: req.Name, Protocols: protocolsTo2(req.Protocols), Parameters: req.Parameters},
		(*v1alpha2.DriverGenerateBucketIdResponse).GetBucketId)
}

func (d *dialect2) generateAccountID(ctx context.Context, req GrantRequest) (string, error) {
	return generate(ctx, d, KindAccount, "DriverGenerateBucketAccessId", req.Name, d.p.DriverGenerateBucketAccessId,
		&v1alpha2.DriverGenerateBucketAccessIdRequest{
			AccountName:        req.Name,
			Protocol:           protocolTo2(req.Protocol),
			AuthenticationType: authenticationTo2(req.Authentication),
			ServiceAccountName: req.ServiceAccountName,
			Parameters:         req.Parameters,
			Buckets:            accessedTo2(req.Buckets),
		}, (*v1alpha2.DriverGenerateBucketAccessIdResponse).GetAccountId)
}

func (d *dialect2) createBucket(ctx context.Context, req BucketRequest) (Bucket, error) {
	const op = "DriverCreateBucket"
	key := orElse(req.ID, req.Name)
	got, err := call(ctx, d.who, op, key, d.p.DriverCreateBucket, &v1alpha2.DriverCreateBucketRequest{Name: key, Protocols: protocolsTo2(req.Protocols), Parameters: req.Parameters})
	if err != nil {
		return Bucket{}, err
	}
	// Whoever creates under a generated id need not be told it again.
	b := Bucket{ID: orElse(got.GetBucketId(), req.ID), Info: bucketInfoFrom2(got.GetProtocols())}
	if b.ID == "" {
		return b, &NoIDError{op, key, d.who.driver}
	}
	return b, nil
}

// getBucket tries the look of both phases: a driver that has one of them has not the other.
func (d *dialect2) getBucket(ctx context.Context, req GetBucketRequest) (Bucket, error) {
	d.c.mu.Lock()
	second, on := d.c.getBucketIsSecond || d.c.hasGenerate, d.c.answeredOn
	d.c.mu.Unlock()
	b, err := d.look(ctx, req, second)
	if unimplemented(err) {
		if b, err = d.look(ctx, req, !second); err == nil {
			d.remember(on, func(c *Client) { c.getBucketIsSecond = !second })
		}
	}
	if unimplemented(err) {
		return Bucket{}, ErrNotOffered
	}
	return b, err
}

func (d *dialect2) look(ctx context.Context, req GetBucketRequest, twoPhase bool) (Bucket, error) {
	var got interface {
		GetBucketId() string
		GetProtocols() *v1alpha2.ObjectProtocolAndBucketInfo
	}
	var err error
	if twoPhase {
		got, err = call(ctx, d.who, "DriverGetBucket", req.ID, d.p.DriverGetBucket,
			&v1alpha2.DriverGetBucketRequest{BucketId: req.ID, Protocols: protocolsTo2(req.Protocols), Parameters: req.Parameters})
	} else {
		got, err = call(ctx, d.who, "DriverGetExistingBucket", req.ID, d.p.DriverGetExistingBucket,
			&v1alpha2.DriverGetExistingBucketRequest{ExistingBucketId: req.ID, Protocols: protocolsTo2(req.Protocols), Parameters: req.Parameters})
	}
	if err != nil {
		return Bucket{}, err
	}
	return Bucket{ID: orElse(got.GetBucketId(), req.ID), Info: bucketInfoFrom2(got.GetProtocols())}, nil
}

func (d *dialect2) deleteBucket(ctx context.Context, req DeleteBucketRequest) error {
	_, err := call(ctx, d.who, "DriverDeleteBucket", req.ID, d.p.DriverDeleteBucket, &v1alpha2.DriverDeleteBucketRequest{BucketId: req.ID, Parameters: req.Parameters})
	return err
}

func (d *dialect2) grantAccess(ctx context.Context, req GrantRequest) (Grant, error) {
	const op = "DriverGrantBucketAccess"
	key := orElse(req.ID, req.Name)
	got, err := call(ctx, d.who, op, key, d.p.DriverGrantBucketAccess, &v1alpha2.DriverGrantBucketAccessRequest{
		AccountName:        key,
		Protocol:           protocolTo2(req.Protocol),
		AuthenticationType: authenticationTo2(req.Authentication),
		ServiceAccountName: req.ServiceAccountName,
		Parameters:         req.Parameters,
		Buckets:            accessedTo2(req.Buckets),
	})
	if err != nil {
		return Grant{}, err
	}
	g := Grant{AccountID: orElse(got.GetAccountId(), req.ID), Credentials: credentialsFrom2(got.GetCredentials())}
	for _, b := range got.GetBuckets() {
		g.Buckets = append(g.Buckets, Bucket{ID: b.GetBucketId(), Info: bucketInfoFrom2(b.GetBucketInfo())})
	}
	if g.AccountID == "" {
		return g, &NoIDError{op, key, d.who.driver}
	}
	return g, nil
}

func (d *dialect2) revokeAccess(ctx context.Context, req RevokeRequest) error {
	r := &v1alpha2.DriverRevokeBucketAccessRequest{
		AccountId:          req.AccountID,
		Protocol:           protocolTo2(req.Protocol),
		AuthenticationType: authenticationTo2(req.Authentication),
		ServiceAccountName: req.ServiceAccountName,
		Parameters:         req.Parameters,
	}
	for _, id := range req.BucketIDs {
		r.Buckets = append(r.Buckets, &v1alpha2.DriverRevokeBucketAccessRequest_AccessedBucket{BucketId: id})
	}
	_, err := call(ctx, d.who, "DriverRevokeBucketAccess", req.AccountID, d.p.DriverRevokeBucketAccess, r)
	return err
}

func orElse(first, second string) string {
	if first != "" {
		return first
	}
	return second
}
