package s3

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/custody-storage/custody/cosi/wire"
)

const (
	defaultPage = 100
	maxPage     = 1000
	// lookers is how many buckets are looked at together.
	lookers = 8
)

// DeleteByName implements driver.Recoverer.
func (b *Backend) DeleteByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) error {
	if kind == wire.KindAccount {
		return b.deleteAccountByName(ctx, req.Name)
	}
	s, _, err := b.look(ctx, req.Name)
	if err != nil || s == absent || s == foreign {
		return err
	}
	return b.deleteBucket(ctx, req.Name)
}

// deleteAccountByName deletes the account, if it is ours, and takes it out of every policy that names it.
// Which these are, nobody says here, so all buckets are looked at; only if there is an account, though: a
// sweep calls this again and again for names that are long gone.
func (b *Backend) deleteAccountByName(ctx context.Context, name string) error {
	acc, found, err := b.accounts.get(ctx, name)
	if err != nil {
		return failed(err, "look at account", name)
	}
	if !found || !b.made(acc) {
		return nil
	}
	return errors.Join(b.leaveAllPolicies(ctx, name), b.deleteAccount(ctx, name))
}

func (b *Backend) leaveAllPolicies(ctx context.Context, account string) error {
	page := &s3.ListBucketsInput{MaxBuckets: aws.Int32(maxPage)}
	for {
		got, err := b.s3.ListBuckets(ctx, page)
		if err != nil {
			return failed(err, "list buckets for account", account)
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(lookers)
		for _, bucket := range got.Buckets {
			g.Go(func() error { return b.leavePolicies(gctx, account, []string{aws.ToString(bucket.Name)}) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if page.ContinuationToken = got.ContinuationToken; aws.ToString(page.ContinuationToken) == "" {
			return nil
		}
	}
}

// FindByName implements driver.Recoverer.
func (b *Backend) FindByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) ([]wire.Item, error) {
	if kind == wire.KindAccount {
		acc, found, err := b.accounts.get(ctx, req.Name)
		if err != nil || !found {
			return nil, failed(err, "look at account", req.Name)
		}
		return []wire.Item{b.accountItem(acc)}, nil
	}
	s, owner, err := b.look(ctx, req.Name)
	if err != nil || s == absent {
		return nil, err
	}
	return []wire.Item{{ID: req.Name, Name: req.Name, Owner: owner}}, nil
}

func (b *Backend) accountItem(acc account) wire.Item {
	i := wire.Item{ID: acc.Access, Name: acc.Access}
	if b.made(acc) {
		i.Owner = acc.Access
	} else {
		i.Owner = "another maker (role " + acc.Role + ")"
	}
	return i
}

// List implements driver.Recoverer.
func (b *Backend) List(ctx context.Context, kind wire.Kind, req wire.ListRequest) (wire.Page, error) {
	size := int(req.PageSize)
	if size <= 0 {
		size = defaultPage
	}
	size = min(size, maxPage)
	if kind == wire.KindAccount {
		return b.listAccounts(ctx, size, req.PageToken)
	}
	return b.listBuckets(ctx, size, req.PageToken)
}

// listAccounts cuts the page out of the whole list; the token is the last id of the page before.
func (b *Backend) listAccounts(ctx context.Context, size int, after string) (wire.Page, error) {
	all, err := b.accounts.list(ctx)
	if err != nil {
		return wire.Page{}, failed(err, "list accounts after", after)
	}
	slices.SortFunc(all, func(x, y account) int { return strings.Compare(x.Access, y.Access) })
	var p wire.Page
	for _, acc := range all {
		if acc.Access <= after {
			continue
		}
		if len(p.Items) == size {
			p.NextPageToken = p.Items[size-1].ID
			break
		}
		p.Items = append(p.Items, b.accountItem(acc))
	}
	return p, nil
}

// listBuckets passes the server's token on.
func (b *Backend) listBuckets(ctx context.Context, size int, token string) (wire.Page, error) {
	in := &s3.ListBucketsInput{MaxBuckets: aws.Int32(int32(size))}
	if token != "" {
		in.ContinuationToken = &token
	}
	got, err := b.s3.ListBuckets(ctx, in)
	if err != nil {
		return wire.Page{}, failed(err, "list buckets after", token)
	}
	// One of them may go while its mark is read; then it is not in the answer.
	items := make([]*wire.Item, len(got.Buckets))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for i, bucket := range got.Buckets {
		g.Go(func() error {
			name := aws.ToString(bucket.Name)
			s, owner, err := b.look(gctx, name)
			if err == nil && s != absent {
				items[i] = &wire.Item{ID: name, Name: name, Owner: owner}
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return wire.Page{}, err
	}
	p := wire.Page{NextPageToken: aws.ToString(got.ContinuationToken)}
	for _, i := range items {
		if i != nil {
			p.Items = append(p.Items, *i)
		}
	}
	return p, nil
}
