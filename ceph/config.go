package ceph

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// DefaultTimeout is the deadline of each call, unless the configuration says otherwise. Ceph's own answer in tens of
// milliseconds; a monitor that changes takes a few seconds.
const DefaultTimeout = 15 * time.Second

// Secret is a key. It prints as asterisks, in JSON and logs too.
type Secret string

func (Secret) String() string               { return "***" }
func (Secret) GoString() string             { return "***" }
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }
func (Secret) LogValue() slog.Value         { return slog.StringValue("***") }

// Config says how to reach a cluster, and as whom.
type Config struct {
	// ID is the cluster's name in this configuration, for messages.
	ID string
	// Monitors in the form of Ceph's setting mon_host: addresses separated by commas.
	Monitors string
	// User without the leading "client.".
	User string
	// KeyFile has the user's key: the key alone, or a keyring. It is read anew on each call, so that a key can be
	// rotated in place.
	KeyFile string
	// Key is used if KeyFile is empty. See also [Cluster.SetKey].
	Key Secret
	// Timeout of each call; 0 is DefaultTimeout. Whole seconds.
	Timeout time.Duration
	// Settings of Ceph's client beside these.
	Settings map[string]string
}

// Validate tells what lacks.
func (c Config) Validate() error {
	var errs []error
	if c.Monitors == "" {
		errs = append(errs, errors.New("no monitors"))
	}
	if c.User == "" || strings.HasPrefix(c.User, "client.") {
		errs = append(errs, fmt.Errorf("user %q: give the name without \"client.\"", c.User))
	}
	if c.KeyFile == "" && c.Key == "" {
		errs = append(errs, errors.New("neither a key nor a key file"))
	}
	if c.Timeout != 0 && c.Timeout < time.Second {
		errs = append(errs, fmt.Errorf("timeout %s: at least a second", c.Timeout))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("configuration of Ceph cluster %q: %w", c.ID, err)
	}
	return nil
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return DefaultTimeout
	}
	return c.Timeout
}

// key reads the key as it is now.
func (c Config) key() (Secret, error) {
	if c.KeyFile == "" {
		return c.Key, wellFormed(c.Key, c.User)
	}
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return "", fmt.Errorf("read the key of Ceph user %s of cluster %q: %w", c.User, c.ID, err)
	}
	key := keyIn(string(text), c.User)
	if key == "" {
		return "", fmt.Errorf("key file %s has no key of Ceph user client.%s", c.KeyFile, c.User)
	}
	return key, wellFormed(key, c.User)
}

// wellFormed refuses what is no cephx key: type 1, time, length, secret (CryptoKey::encode). Ceph's library would print
// it on standard error.
func wellFormed(key Secret, user string) error {
	const head = 2 + 4 + 4 + 2
	b, err := base64.StdEncoding.DecodeString(string(key))
	if err != nil || len(b) <= head || b[0] != 1 || b[1] != 0 || int(binary.LittleEndian.Uint16(b[head-2:])) != len(b)-head {
		return fmt.Errorf("the key of Ceph user client.%s does not have the form of a key", user)
	}
	return nil
}

// keyIn finds a user's key in a text that is the key alone or a keyring with sections.
func keyIn(text, user string) Secret {
	if !strings.Contains(text, "[") {
		return Secret(strings.TrimSpace(text))
	}
	ours := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			ours = line == "[client."+user+"]"
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if ours && ok && strings.TrimSpace(name) == "key" {
			return Secret(strings.TrimSpace(value))
		}
	}
	return ""
}
