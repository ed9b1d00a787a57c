package v1alpha2_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/custody-storage/custody/api/apitest"
	"github.com/custody-storage/custody/cosi/api/crds"
)

// Parts of the API server's own refusals.
const (
	tooShort    = "should be at least 1 chars long"
	tooLong     = "may not be more than"
	tooFew      = "should have at least 1 items"
	tooMany     = "must have at most"
	required    = "Required value"
	unsupported = "Unsupported value"
	duplicate   = "Duplicate value"
	mismatch    = "should match"
)

const notSubdomain = "must be a DNS subdomain: lower-case letters, digits, - and ."

// cases are the cases of one kind.
type cases = []apitest.Case

// check runs the cases of one kind and sees that each limit of its definition has one.
func check(t *testing.T, plural string, cases []apitest.Case) {
	t.Helper()
	definition, err := fs.ReadFile(crds.Files(), "objectstorage.k8s.io_"+plural+".yaml")
	if err != nil {
		t.Fatal(err)
	}
	server.Check(t, definition, cases)
}

// entries is a JSON object with n members, one of them the "tier" that the objects
// of the cases have already.
func entries(n int) string {
	members := []string{`"tier":"hot"`}
	for i := range n - 1 {
		members = append(members, fmt.Sprintf("%q:%q", fmt.Sprintf("key%d", i), "value"))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// list is a JSON array of n members made by a format in which # is the number.
func list(n int, format string) string {
	var members []string
	for i := range n {
		members = append(members, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return "[" + strings.Join(members, ",") + "]"
}

// long is a text of n letters.
func long(n int) string { return strings.Repeat("a", n) }

// set makes a JSON merge patch of one field. Dots part the path; value is JSON.
func set(path, value string) string {
	names := strings.Split(path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		value = fmt.Sprintf("{%q:%s}", names[i], value)
	}
	return value
}

// text is a JSON string.
func text(s string) string { return fmt.Sprintf("%q", s) }

// create, update and status make cases of one object; refused "" means accepted.
func create(object, name, patch, refused string) apitest.Case {
	return apitest.Case{Name: name, On: apitest.Create, Object: object, Patch: patch, Refused: refused}
}

func update(object, name, patch, refused string) apitest.Case {
	return apitest.Case{Name: name, On: apitest.Update, Object: object, Patch: patch, Refused: refused}
}

func status(object, before, name, patch, refused string) apitest.Case {
	return apitest.Case{Name: name, On: apitest.UpdateStatus, Object: object, Before: before, Patch: patch, Refused: refused}
}

// subdomainCases are what every required or optional DNS subdomain field at a path
// must take and refuse when the object is made.
func subdomainCases(object, path string) []apitest.Case {
	return []apitest.Case{
		create(object, path+" with dots", set(path, text("a.b-c.1")), ""),
		create(object, path+" of 253", set(path, text(long(253))), ""),
		create(object, path+" of 254", set(path, text(long(254))), tooLong),
		create(object, path+" empty", set(path, text("")), tooShort),
		create(object, path+" in capitals", set(path, text("Gold")), notSubdomain),
		create(object, path+" with a slash", set(path, text("a/b")), notSubdomain),
	}
}

// driverCases are what every driver name at a path must take and refuse when the
// object is made.
func driverCases(object, path string) []apitest.Case {
	return []apitest.Case{
		create(object, path+" of 63", set(path, text(long(63))), ""),
		create(object, path+" in capitals with dots", set(path, text("S3.Example.COM-1")), ""),
		create(object, path+" of one letter", set(path, text("a")), ""),
		create(object, path+" of 64", set(path, text(long(64))), tooLong),
		create(object, path+" empty", set(path, text("")), tooShort),
		create(object, path+" missing", set(path, "null"), required),
		create(object, path+" with a slash", set(path, text("a/b")), mismatch),
		create(object, path+" that ends with a dash", set(path, text("a-")), mismatch),
	}
}

// parameterCases are what every map of parameters at a path must take and refuse
// when the object is made.
func parameterCases(object, path string) []apitest.Case {
	return []apitest.Case{
		create(object, path+" absent", set(path, "null"), ""),
		create(object, path+" 512", set(path, entries(512)), ""),
		create(object, path+" 513", set(path, entries(513)), tooMany),
		create(object, path+" with a number", set(path, `{"size":1}`), "must be of type string"),
	}
}

// protocolCases are what every set of protocols at a path must take and refuse when
// the object is made.
func protocolCases(object, path string) []apitest.Case {
	return []apitest.Case{
		create(object, path+" absent", set(path, "null"), ""),
		create(object, path+" all", set(path, `["S3","Azure","GCS"]`), ""),
		create(object, path+" none", set(path, `[]`), tooFew),
		create(object, path+" twice the same", set(path, `["S3","S3"]`), duplicate),
		create(object, path+" unknown", set(path, `["S3","NFS"]`), unsupported),
		create(object, path+" in lower case", set(path, `["s3"]`), unsupported),
		create(object, path+" four", set(path, `["S3","Azure","GCS","S3"]`), tooMany),
	}
}

// protocolStatusCases are what the protocols of a status must take and refuse.
func protocolStatusCases(object string) []apitest.Case {
	at := func(value string) string { return `{"status":{"readyToUse":false,"protocols":` + value + `}}` }
	return []apitest.Case{
		status(object, "", "protocols all", at(`["S3","Azure","GCS"]`), ""),
		status(object, "", "protocols none", at(`[]`), tooFew),
		status(object, "", "protocols twice the same", at(`["S3","S3"]`), duplicate),
		status(object, "", "protocols unknown", at(`["NFS"]`), unsupported),
		status(object, "", "protocols four", at(`["S3","Azure","GCS","S3"]`), tooMany),
		status(object, at(`["S3"]`), "protocols changed", at(`["S3","GCS"]`), ""),
		status(object, at(`["S3"]`), "protocols removed", at("null"), "protocols cannot be removed once set"),
	}
}

// idStatusCases are what a final id in the status must take and refuse.
func idStatusCases(object, field string) []apitest.Case {
	at := func(value string) string { return `{"status":{"readyToUse":false,"` + field + `":` + value + `}}` }
	return []apitest.Case{
		status(object, "", field+" with every sign", at(text("aZ09/._-")), ""),
		status(object, "", field+" of 2048", at(text(long(2048))), ""),
		status(object, "", field+" of 2049", at(text(long(2049))), tooLong),
		status(object, "", field+" empty", at(text("")), tooShort),
		status(object, "", field+" in base64", at(text("eyJhIjoxfQ==")), mismatch),
		status(object, "", field+" with a space", at(text("a b")), mismatch),
		status(object, at(text("one")), field+" the same again", at(text("one")), ""),
		status(object, at(text("one")), field+" changed", at(text("two")), field+" is immutable once set"),
		status(object, at(text("one")), field+" removed", at("null"), field+" cannot be removed once set"),
	}
}

// commonStatusCases are what every status must take and refuse.
func commonStatusCases(object string) []apitest.Case {
	return []apitest.Case{
		status(object, "", "readyToUse false", `{"status":{"readyToUse":false}}`, ""),
		status(object, `{"status":{"readyToUse":true}}`, "readyToUse back to false", `{"status":{"readyToUse":false}}`, ""),
		status(object, "", "readyToUse missing", `{"status":{"error":{"message":"x"}}}`, required),
		status(object, "", "error", `{"status":{"readyToUse":false,"error":{"time":"2026-03-05T10:00:00Z","message":"WaitsForClass: no such class"}}}`, ""),
		status(object, `{"status":{"readyToUse":false,"error":{"message":"x"}}}`, "error cleared", `{"status":{"readyToUse":true,"error":null}}`, ""),
		status(object, "", "error of 1572865", `{"status":{"readyToUse":false,"error":{"message":`+text(long(1572865))+`}}}`, tooLong),
		status(object, "", "error time that is none", `{"status":{"readyToUse":false,"error":{"time":"yesterday"}}}`, "must be of type date-time"),
	}
}
