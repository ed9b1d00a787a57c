package s3

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/wire"
)

const (
	// DefaultName is the driver's name.
	DefaultName = "s3.custody.dev"
	// DefaultRegion is versitygw's default.
	DefaultRegion = "us-east-1"
	// DefaultRequestTimeout is the deadline of one request to the S3 server.
	DefaultRequestTimeout = 8 * time.Second
)

// Names of the environment variables that LoadKeys reads. Each may be given as NAME_FILE instead, the path
// of a file that holds the value.
const (
	EnvAccessKey = "CUSTODY_S3_ACCESS_KEY"
	EnvSecretKey = "CUSTODY_S3_SECRET_KEY"
	EnvSeed      = "CUSTODY_S3_SEED"
)

// Options of the driver. Endpoint, AccessKey and SecretKey are needed.
type Options struct {
	// Name is the driver's name, that which classes name in driverName. Empty: DefaultName.
	Name string
	// Owner is who this driver is in owner marks: one value per cluster, the same for ever, for instance
	// the cluster's UID. Two clusters on one S3 server need two. Empty: Name.
	Owner string
	// Endpoint is the URL of the S3 server, as the driver reaches it.
	Endpoint string
	// AdminEndpoint is the URL of versitygw's admin API, if it has a port of its own. Empty: Endpoint.
	AdminEndpoint string
	// PublicEndpoint is the URL that workloads are told. Empty: Endpoint.
	PublicEndpoint string
	// Region that the server checks signatures for. Empty: DefaultRegion.
	Region string
	// RequestTimeout is the deadline of one request to the server; a call makes several. 0:
	// DefaultRequestTimeout.
	RequestTimeout time.Duration

	// AccessKey and SecretKey of an account that may do everything: versitygw's root, or one with the role
	// admin. Buckets made belong to it.
	AccessKey string
	SecretKey wire.Secret
	// Seed is what secret keys of accounts are derived from. Empty: derived from SecretKey.
	Seed wire.Secret

	// Kit and Serve are passed on to package driver.
	Kit   driver.Options
	Serve driver.ServeOptions
	// Log is used for both, where they have none.
	Log logr.Logger
}

// Bind adds a flag for everything but the keys.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Name, "driver-name", DefaultName, "name of the driver, as classes name it")
	fs.StringVar(&o.Owner, "owner", "", "who this driver is in owner marks: one value per cluster, never changed (default: the driver's name)")
	fs.StringVar(&o.Endpoint, "s3-endpoint", "", "URL of the S3 server")
	fs.StringVar(&o.AdminEndpoint, "s3-admin-endpoint", "", "URL of versitygw's admin API, if not that of the S3 server")
	fs.StringVar(&o.PublicEndpoint, "s3-public-endpoint", "", "URL that workloads are told, if not that of the S3 server")
	fs.StringVar(&o.Region, "s3-region", DefaultRegion, "region that the server checks signatures for")
	fs.DurationVar(&o.RequestTimeout, "request-timeout", DefaultRequestTimeout, "deadline of one request to the S3 server")
	fs.DurationVar(&o.Kit.CallTimeout, "call-timeout", driver.DefaultCallTimeout, "deadline of one call, which may need several requests")
	fs.DurationVar(&o.Kit.Settle, "settle", 0, "how long a create without an answer may still take effect (default: twice --call-timeout)")
	fs.StringVar(&o.Serve.Endpoint, "endpoint", "", "where to serve COSI (default: $COSI_ENDPOINT or "+wire.DefaultEndpoint+")")
}

// LoadKeys reads the keys from environment variables or the files that they name. getenv is os.Getenv, or a
// stand-in.
func (o *Options) LoadKeys(getenv func(string) string) error {
	access, err := load(getenv, EnvAccessKey)
	if err != nil {
		return err
	}
	secret, err := load(getenv, EnvSecretKey)
	if err != nil {
		return err
	}
	seed, err := load(getenv, EnvSeed)
	if err != nil {
		return err
	}
	o.AccessKey, o.SecretKey, o.Seed = access, wire.Secret(secret), wire.Secret(seed)
	return nil
}

func load(getenv func(string) string, name string) (string, error) {
	value, path := getenv(name), getenv(name+"_FILE")
	switch {
	case value != "" && path != "":
		return "", fmt.Errorf("%s and %s_FILE are both set: unset one", name, name)
	case path == "":
		return value, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	if value = strings.TrimSpace(string(b)); value == "" {
		return "", fmt.Errorf("%s_FILE: %s is empty", name, path)
	}
	return value, nil
}

// ownerPattern is what S3 takes in a tag's value, less spaces.
var ownerPattern = regexp.MustCompile(`^[A-Za-z0-9_.:/=+@-]{1,128}$`)

func (o Options) withDefaults() Options {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	set(&o.Name, DefaultName)
	set(&o.Owner, o.Name)
	set(&o.AdminEndpoint, o.Endpoint)
	set(&o.PublicEndpoint, o.Endpoint)
	set(&o.Region, DefaultRegion)
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	if o.Kit.Log.GetSink() == nil {
		o.Kit.Log = o.Log
	}
	if o.Serve.Log.GetSink() == nil {
		o.Serve.Log = o.Log
	}
	return o
}

func (o Options) check() error {
	var errs []error
	for name, v := range map[string]string{"--s3-endpoint": o.Endpoint, "--s3-admin-endpoint": o.AdminEndpoint, "--s3-public-endpoint": o.PublicEndpoint} {
		if u, err := url.Parse(v); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			errs = append(errs, fmt.Errorf("%s is %q: it is a URL like http://s3.example:7070", name, v))
		}
	}
	if o.AccessKey == "" || o.SecretKey == "" {
		errs = append(errs, fmt.Errorf("no keys of the S3 server: set %s and %s, or %s_FILE and %s_FILE", EnvAccessKey, EnvSecretKey, EnvAccessKey, EnvSecretKey))
	}
	if !ownerPattern.MatchString(o.Owner) {
		errs = append(errs, fmt.Errorf("--owner is %q: it has 1 to 128 letters, digits and _ . : / = + @ -", o.Owner))
	}
	return errors.Join(errs...)
}
