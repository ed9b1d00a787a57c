package s3

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// GrantAccess implements driver.Backend.
func (b *Backend) GrantAccess(ctx context.Context, req wire.GrantRequest) (wire.Grant, error) {
	if err := noParameters(req.Parameters); err != nil {
		return wire.Grant{}, err
	}
	if req.Authentication != wire.Key {
		return wire.Grant{}, status.Errorf(codes.InvalidArgument, "authentication type %s is not possible with this driver; use Key", req.Authentication)
	}
	secret := b.secretOf(req.Name)
	if err := b.ensureAccount(ctx, req.Name, secret); err != nil {
		return wire.Grant{}, err
	}
	// From here on there is an account: its id goes with every error.
	g := wire.Grant{AccountID: req.Name}
	for _, bucket := range req.Buckets {
		err := b.changePolicy(ctx, bucket.ID, func(p *policy) bool { return p.grant(req.Name, bucket.Mode) })
		if err != nil {
			return g, err
		}
		g.Buckets = append(g.Buckets, b.bucket(bucket.ID))
	}
	g.Credentials.S3 = &wire.S3Credentials{AccessKeyID: wire.Secret(req.Name), AccessSecretKey: secret}
	return g, nil
}

// ensureAccount makes the account, or sees that the one there is ours and has the key that it should.
func (b *Backend) ensureAccount(ctx context.Context, name string, secret wire.Secret) error {
	err := b.accounts.create(ctx, account{Access: name, Secret: secret.Reveal(), Role: roleUser, ProjectID: b.projectMark(name)})
	if answered(err) != errUserExists {
		return failed(err, "create account", name)
	}
	acc, found, err := b.accounts.get(ctx, name)
	switch {
	case err != nil:
		return failed(err, "look at account", name)
	case !found: // root has that access key id, or somebody deleted the account just now
		return status.Errorf(codes.Aborted, "account %q was there and is gone; try again. If this stays, it is the name of the S3 server's root account", name)
	case !b.made(acc):
		return status.Errorf(codes.AlreadyExists, "account %q is there and was not made by this driver; it is left alone. If it is not in use, delete it by hand", name)
	case acc.Secret == secret.Reveal():
		return nil
	}
	return failed(b.accounts.setSecret(ctx, name, secret.Reveal()), "replace the key of account", name)
}

// RevokeAccess implements driver.Backend.
func (b *Backend) RevokeAccess(ctx context.Context, req wire.RevokeRequest) error {
	acc, found, err := b.accounts.get(ctx, req.AccountID)
	switch {
	case err != nil:
		return failed(err, "look at account", req.AccountID)
	case found && !b.made(acc):
		return status.Errorf(codes.FailedPrecondition, "account %q was not made by this driver as owner %q and is left alone; if it is to go, delete it by hand", acc.Access, b.o.Owner)
	}
	err = b.leavePolicies(ctx, req.AccountID, req.BucketIDs)
	if found {
		err = errors.Join(err, b.deleteAccount(ctx, req.AccountID))
	}
	return err
}

// made tells if the account bears our mark for its name.
func (b *Backend) made(acc account) bool { return acc.ProjectID == b.projectMark(acc.Access) }

// deleteAccount ends the credential. It comes after the policies, since the server refuses to write one
// that names an account which is gone, and another grant may be about to; but it comes even if a policy
// could not be written.
func (b *Backend) deleteAccount(ctx context.Context, id string) error {
	return failed(b.accounts.remove(ctx, id), "delete account", id)
}

// leavePolicies takes an account out of the policies of the buckets; one that is gone needs nothing. It
// tries them all.
func (b *Backend) leavePolicies(ctx context.Context, id string, buckets []string) error {
	var errs []error
	for _, bucket := range buckets {
		err := b.changePolicy(ctx, bucket, func(p *policy) bool { return p.revoke(id) })
		if wire.Code(err) != codes.NotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// changePolicy reads a bucket's policy, changes it, and writes it if change says that it did.
func (b *Backend) changePolicy(ctx context.Context, bucket string, change func(*policy) bool) error {
	unlock := b.lockPolicy(bucket)
	defer unlock()
	p, err := b.readPolicy(ctx, bucket)
	if err != nil || !change(p) {
		return err
	}
	err = b.writePolicy(ctx, bucket, p)
	for range 3 {
		if answered(err) != errMalformedPolicy {
			break
		}
		// It may be that our statements name an account which is gone, or goes while we look.
		all, lerr := b.accounts.list(ctx)
		if lerr != nil {
			return failed(lerr, "list accounts for the policy of bucket", bucket)
		}
		live := map[string]bool{}
		for _, acc := range all {
			live[acc.Access] = true
		}
		if !p.keepOnly(func(a string) bool { return live[a] }) {
			break // it is somebody else's statement
		}
		err = b.writePolicy(ctx, bucket, p)
	}
	return failed(err, "write the policy of bucket", bucket)
}

func (b *Backend) readPolicy(ctx context.Context, bucket string) (*policy, error) {
	got, err := b.s3.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &bucket})
	if err != nil && answered(err) != errNoPolicy {
		return nil, failed(err, "read the policy of bucket", bucket)
	}
	text := ""
	if err == nil {
		text = aws.ToString(got.Policy)
	}
	p, err := parsePolicy(bucket, text)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return p, nil
}

func (b *Backend) writePolicy(ctx context.Context, bucket string, p *policy) error {
	text, err := p.text()
	if err != nil {
		return err
	}
	if text == "" {
		_, err = b.s3.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: &bucket})
		return err
	}
	_, err = b.s3.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &text})
	return err
}
