package wire

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that must not be seen: it prints as "[redacted]" through fmt, slog, logr, JSON and YAML.
// Take the text with Reveal, only where it is handed to its owner.
type Secret string

// Reveal is the text itself.
func (s Secret) Reveal() string { return string(s) }

// Format keeps every verb of fmt, %x, %q and %#v too, from the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// String is "[redacted]", or empty for an empty secret, so that a missing key can be told in a log.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// LogValue redacts in log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText redacts in encoders: JSON, YAML, and the loggers that use them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Credentials are what an account proves itself with, by protocol; nil where there is nothing.
type Credentials struct {
	S3    *S3Credentials
	Azure *AzureCredentials
	GCS   *GCSCredentials
}

// Empty tells that the driver gave nothing.
func (c Credentials) Empty() bool { return c.S3 == nil && c.Azure == nil && c.GCS == nil }

// The three formatters keep fmt from the fields: for a verb that does not fit a pointer, fmt prints what the
// pointer leads to without asking the fields how.

// Format redacts.
func (S3Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// Format redacts.
func (AzureCredentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// Format redacts.
func (GCSCredentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// S3Credentials is an access key.
type S3Credentials struct{ AccessKeyID, AccessSecretKey Secret }

// AzureCredentials is an access token; Expiry is a timestamp as the driver wrote it, empty for none.
type AzureCredentials struct {
	AccessToken Secret
	Expiry      string
}

// GCSCredentials is an HMAC key or the name of a private key.
type GCSCredentials struct {
	AccessID, AccessSecret         Secret
	PrivateKeyName, ServiceAccount string
}
