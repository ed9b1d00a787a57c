package sidecar

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/manager"
	"github.com/custody-storage/custody/provision"
)

// EnvEndpoint names the driver's socket where no flag does, as COSI's own programs have it.
const EnvEndpoint = "COSI_ENDPOINT"

// Options are the flags of `custody cosi sidecar`.
type Options struct {
	manager.Options

	// Endpoint is the driver's socket.
	Endpoint string
	// CallTimeout is the deadline of each call to the driver.
	CallTimeout time.Duration
	// Settle is how long a create may still land after it was last heard of. 0: twice CallTimeout. Never less than
	// CallTimeout.
	Settle time.Duration
	// Tombstone is how long a released name is watched for what may arrive late.
	Tombstone time.Duration
	// Overdue is after what time an Intent that has not come to rest is reported.
	Overdue time.Duration
	// RetryFirst, RetryMax and SweepEvery pace what is done again.
	RetryFirst, RetryMax, SweepEvery time.Duration
	// RequestTimeout is the deadline of each request to the API server.
	RequestTimeout time.Duration
	// BucketIDTemplate and AccountIDTemplate give the driver's id from .Name and .Parameters, for drivers whose ids
	// follow from them. "" where they don't.
	BucketIDTemplate, AccountIDTemplate string
	// RepeatSafe lists the kinds, bucket and access, of which the admin declares that the driver answers the same id
	// and credentials when a create is repeated.
	RepeatSafe []string
	// CAFile holds PEM certificates that are handed to workloads in their Secrets.
	CAFile string

	// RESTConfig says where the API server is and who we are, in place of Kubeconfig. For tests.
	RESTConfig *rest.Config
	// WrapStore and WrapBackend put decorators on the two doors of the protocol: failpoints, and the control that
	// works without Intents. For tests; the shipped command leaves them nil.
	WrapStore   func(provision.Store) provision.Store
	WrapBackend func(provision.Backend) provision.Backend
	// Driver is called in place of the one at Endpoint. For tests.
	Driver wire.Driver
}

// Defaults are the options without flags.
func Defaults() Options {
	o := Options{
		Options:        manager.Defaults(),
		Endpoint:       os.Getenv(EnvEndpoint),
		CallTimeout:    time.Minute,
		Tombstone:      7 * 24 * time.Hour,
		Overdue:        10 * time.Minute,
		RetryFirst:     time.Second,
		RetryMax:       5 * time.Minute,
		SweepEvery:     10 * time.Minute,
		RequestTimeout: 30 * time.Second,
	}
	// A driver's call may take CallTimeout, and a worker is busy all the while: with few of them, some buckets that
	// hang would hold up the others.
	o.Workers = 64
	if o.Endpoint == "" {
		o.Endpoint = wire.DefaultEndpoint
	}
	return o
}

// AddFlags adds a flag for each option, with its value at this moment as default.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	o.Options.AddFlags(f)
	f.StringVar(&o.Endpoint, "driver-endpoint", o.Endpoint, "`socket` of the COSI driver (default: $"+EnvEndpoint+")")
	f.DurationVar(&o.CallTimeout, "call-timeout", o.CallTimeout, "deadline of each call to the driver")
	f.DurationVar(&o.Settle, "settle", o.Settle, "how long a create that was not answered may still land; deletion waits for it (default: twice --call-timeout)")
	f.DurationVar(&o.Tombstone, "tombstone", o.Tombstone, "how long a released name is watched for what may arrive late")
	f.DurationVar(&o.Overdue, "overdue", o.Overdue, "after what time an intent that has not come to rest is reported")
	f.DurationVar(&o.RetryFirst, "retry-interval-start", o.RetryFirst, "wait after the first failure; it doubles with each")
	f.DurationVar(&o.RetryMax, "retry-interval-max", o.RetryMax, "longest wait after a failure, and the pace of what only a person can mend")
	f.DurationVar(&o.SweepEvery, "sweep-interval", o.SweepEvery, "pace of the looks under a released name")
	f.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "deadline of each request to the API server")
	f.StringVar(&o.BucketIDTemplate, "bucket-id-template", o.BucketIDTemplate, "`template` that gives a bucket's id from .Name and .Parameters.KEY, such as '{{.Name}}' or '{{.Parameters.region}}/{{.Name}}', for a driver whose ids follow from them")
	f.StringVar(&o.AccountIDTemplate, "account-id-template", o.AccountIDTemplate, "the same for an account's id")
	f.StringSliceVar(&o.RepeatSafe, "repeat-safe", o.RepeatSafe, "bucket, access or both: declares that a create which is repeated answers the same id (for an access: the same credentials) and makes nothing more")
	f.StringVar(&o.CAFile, "ca-file", o.CAFile, "`file` with PEM certificates that workloads need to trust the object store; put into each Secret as COSI_CERTIFICATE_AUTHORITY")
}

// Kinds as --repeat-safe has them.
const (
	repeatBucket = "bucket"
	repeatAccess = "access"
)

// Validate says what is wrong with the options, all of it at once.
func (o *Options) Validate() error {
	errs := []error{o.Options.Validate()}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"call-timeout", o.CallTimeout}, {"tombstone", o.Tombstone}, {"overdue", o.Overdue}, {"request-timeout", o.RequestTimeout},
		{"retry-interval-start", o.RetryFirst}, {"retry-interval-max", o.RetryMax}, {"sweep-interval", o.SweepEvery},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("--%s is %v; give more than 0", d.flag, d.value))
		}
	}
	if o.Settle != 0 && o.Settle < o.CallTimeout {
		errs = append(errs, fmt.Errorf("--settle is %v, less than --call-timeout %v: a call may be at work that long; give at least that, or leave it out for twice", o.Settle, o.CallTimeout))
	}
	if o.RetryMax < o.RetryFirst {
		errs = append(errs, fmt.Errorf("--retry-interval-max %v is less than --retry-interval-start %v", o.RetryMax, o.RetryFirst))
	}
	for _, kind := range o.RepeatSafe {
		if kind != repeatBucket && kind != repeatAccess {
			errs = append(errs, fmt.Errorf("--repeat-safe names %q; it takes %s, %s or both, with a comma between", kind, repeatBucket, repeatAccess))
		}
	}
	if o.Driver == nil {
		if _, _, err := wire.ParseEndpoint(o.Endpoint); err != nil {
			errs = append(errs, fmt.Errorf("--driver-endpoint: %w", err))
		}
	}
	for flag, text := range map[string]string{"bucket-id-template": o.BucketIDTemplate, "account-id-template": o.AccountIDTemplate} {
		if _, err := parseTemplate(flag, text); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := o.certificates(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *Options) settle() time.Duration {
	if o.Settle == 0 {
		return 2 * o.CallTimeout
	}
	return o.Settle
}

func (o *Options) repeatSafe(kind string) bool { return slices.Contains(o.RepeatSafe, kind) }

// certificates reads the CA file.
func (o *Options) certificates() (string, error) {
	if o.CAFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(o.CAFile)
	if err != nil {
		return "", fmt.Errorf("--ca-file: %w", err)
	}
	if err := checkCertificates(string(text)); err != nil {
		return "", fmt.Errorf("--ca-file %s: %w", o.CAFile, err)
	}
	return string(text), nil
}

// checkCertificates tells whether a text is certificates in PEM, and nothing else: it ends up in Secrets of tenants.
func checkCertificates(text string) error {
	rest := []byte(text)
	for n := 0; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if n == 0 {
				return errors.New("no PEM certificate in it")
			}
			return nil
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("it holds a %s; only CERTIFICATE blocks may be in it, since every workload reads it", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d: %w", n+1, err)
		}
	}
}
