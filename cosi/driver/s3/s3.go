package s3

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/wire"
)

// Backend is the driver behind the kit. Make it with New.
type Backend struct {
	o        Options
	s3       *s3.Client
	accounts *admin
	// policies guards the read, change and write of bucket policies, one stripe of buckets each.
	policies [64]sync.Mutex
}

var (
	_ driver.Backend   = (*Backend)(nil)
	_ driver.Recoverer = (*Backend)(nil)
	_ driver.IDs       = (*Backend)(nil)
)

// New checks the options. It makes no request: the server may come later.
func New(o Options) (*Backend, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("S3 driver: %w", err)
	}
	// One try per request: a repeat hides whether the first one landed.
	client := &http.Client{
		Timeout: o.RequestTimeout,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
			TLSHandshakeTimeout:   3 * time.Second,
			ResponseHeaderTimeout: o.RequestTimeout,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	keys := credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey.Reveal(), "")
	return &Backend{
		o: o,
		s3: s3.New(s3.Options{
			BaseEndpoint: aws.String(o.Endpoint),
			Region:       o.Region,
			Credentials:  keys,
			UsePathStyle: true,
			HTTPClient:   client,
			Retryer:      aws.NopRetryer{},
		}),
		accounts: &admin{endpoint: o.AdminEndpoint, region: o.Region, keys: keys, http: client},
	}, nil
}

// Run serves the driver until ctx ends.
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	b, err := New(o)
	if err != nil {
		return err
	}
	d, err := driver.New(b, o.Kit)
	if err != nil {
		return err
	}
	go b.greet(ctx)
	return driver.Run(ctx, d, o.Serve)
}

// greet tells early, in the log, of a server that cannot be reached or keys that it refuses. The driver
// runs all the same: the server may come later.
func (b *Backend) greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, b.o.RequestTimeout)
	defer cancel()
	if _, err := b.accounts.list(ctx); err != nil && ctx.Err() == nil {
		b.o.Log.Error(err, "the S3 server does not serve this driver yet", "endpoint", b.o.AdminEndpoint)
	}
}

// Info implements driver.Backend.
func (b *Backend) Info() wire.Info {
	all := wire.Capabilities{DeleteByName: true, FindByName: true, List: true, CreateRepeatSafe: true, OwnerMark: true}
	return wire.Info{Name: b.o.Name, Protocols: []wire.Protocol{wire.S3}, Recovery: wire.Recovery{Buckets: all, Accounts: all}}
}

// IDOf implements driver.IDs: an id is the name.
func (b *Backend) IDOf(_ wire.Kind, name string) string { return name }

// NameOf implements driver.IDs.
func (b *Backend) NameOf(_ wire.Kind, id string) string { return id }

// lockPolicy takes the turn for a bucket's policy.
func (b *Backend) lockPolicy(bucket string) (unlock func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(bucket))
	m := &b.policies[h.Sum32()%uint32(len(b.policies))]
	m.Lock()
	return m.Unlock
}

// noParameters: a parameter that is not known is a typing error more often than a wish to be ignored.
func noParameters(p map[string]string) error {
	for k := range p {
		return status.Errorf(codes.InvalidArgument, "parameter %q is not known; this driver takes none", k)
	}
	return nil
}
