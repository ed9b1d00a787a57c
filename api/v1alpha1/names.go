package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// ProtectionFinalizer is Custody's finalizer on the API objects it serves. It only
// orders a deletion, it proves nothing. Upstream COSI's own,
// objectstorage.k8s.io/protection, is honoured on what was taken over.
const ProtectionFinalizer = "custody.dev/protection"

// FieldManager is the name under which Custody writes.
const FieldManager = "custody"

// Labels of an Intent, by which a program finds those of its driver and kind. Spec
// is the truth; where labels were tampered with, the selectable field spec.driver
// finds the same (Kubernetes 1.31 and later).
const (
	LabelDriver = "custody.dev/driver"
	LabelKind   = "custody.dev/kind"
)

// Labels returns the labels that an Intent carries. A driver's name has at most 63
// characters and only such as a label takes.
func Labels(kind Kind, driver string) map[string]string {
	return map[string]string{LabelDriver: driver, LabelKind: string(kind)}
}

// uidName matches a name that COSI derives from a UID: such a name can't be asked
// for twice, by whatever driver.
var uidName = regexp.MustCompile(`^(bc|ba)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IntentName is the name of the Intent for a thing that a driver was asked for by
// name. It is a DNS subdomain of at most 253 characters, and it never changes: it
// is how a record is found again after a restart or an upgrade.
//
// The name of a COSI bucket or account that was made for a claim or an access
// ("bc-" or "ba-" and a UID) is unique in the cluster as it is, so the Intent has
// the same name, which is what a person looks for. Every other name, such as that
// of a Bucket made by hand or of a CSI volume, may be in use with several drivers
// or kinds. Its Intent is named by kind, a hash of kind, driver and name, and as
// much of the name as helps a reader.
//
// A name that is used again with another driver finds the old record; that record's
// driver is immutable and says so.
func IntentName(kind Kind, driver, name string) string {
	if uidName.MatchString(name) && (kind == KindBucket) == strings.HasPrefix(name, "bc-") &&
		(kind == KindAccess) == strings.HasPrefix(name, "ba-") {
		return name
	}
	// The zero bytes keep ("a", "bc") and ("ab", "c") apart.
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + driver + "\x00" + name))
	hashed := strings.ToLower(string(kind)) + "-" + hex.EncodeToString(sum[:16])
	if readable := readablePart(name); readable != "" {
		return hashed + "-" + readable
	}
	return hashed
}

// maxReadable keeps an Intent's name within what a label value takes, dashes, kind
// and hash included, for kinds of up to eight letters.
const maxReadable = 21

// readablePart is the start of a name, as far as it fits into a DNS label.
func readablePart(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if b.Len() == maxReadable {
			break
		}
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			r = '-'
		}
		b.WriteRune(r)
	}
	return strings.Trim(b.String(), "-")
}
