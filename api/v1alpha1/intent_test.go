package v1alpha1_test

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/custody-storage/custody/api/apitest"
	"github.com/custody-storage/custody/api/crds"
	custody "github.com/custody-storage/custody/api/v1alpha1"
)

// server serves the Intent to all tests of the package.
var server *apitest.Server

func TestMain(m *testing.M) {
	os.Exit(apitest.Run(m, func(s *apitest.Server) { server = s }, crds.Files()))
}

const accessIntent = `
apiVersion: custody.dev/v1alpha1
kind: Intent
metadata:
  labels: {custody.dev/driver: s3.example.com, custody.dev/kind: Access}
spec:
  formatVersion: 1
  clusterUID: 6f7c2c0e-1111-4222-8333-444455556666
  owner:
    apiVersion: objectstorage.k8s.io/v1alpha2
    kind: BucketAccess
    namespace: web
    name: pictures
    uid: 0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a
  kind: Access
  driver: s3.example.com
  name: ba-0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a
  phase: Live
  origin: Created
  id: account-1
  strayIDs: [account-2, account-3]
  attempt: 9f2b
  doubt: true
  proven: true
  inputs:
    parameters: {tier: hot}
    protocol: S3
    authenticationType: Key
    serviceAccountName: web
    buckets:
    - {bucketID: b1, accessMode: ReadWrite}
    secretRefs:
    - {namespace: storage, name: backend-admin, role: grant}
  info: {COSI_S3_ENDPOINT: "https://s3.example.com"}
`

const newIntent = `
apiVersion: custody.dev/v1alpha1
kind: Intent
spec:
  formatVersion: 1
  clusterUID: 6f7c2c0e-1111-4222-8333-444455556666
  owner: {kind: Bucket}
  kind: Bucket
  driver: s3.example.com
  name: bc-1
  phase: Making
  origin: Created
`

const (
	tooShort  = "should be at least 1 chars long"
	tooLong   = "may not be more than"
	tooMany   = "must have at most"
	required  = "Required value"
	duplicate = "Duplicate value"
	mismatch  = "should match"

	badPhase  = "phase must be one of Making, Live, Deleting, Released, Sweeping, Retained"
	badOrigin = "origin must be one of Created, Static, Adopted"
	badKind   = "kind must be one of Bucket, Access, Volume, Snapshot"
	badWord   = "word must be one of Delete, Release, Retry"
	noTime    = "releasedAt must be set in the phases Released and Sweeping"
	noID      = "id must be set in the phase Live"
	noClear   = "doubt cannot be cleared"
	backwards = "formatVersion cannot go back"
)

// spec makes a JSON merge patch of the spec.
func spec(members string) string { return `{"spec":{` + members + `}}` }

func quoted(n int) string { return `"` + strings.Repeat("a", n) + `"` }

// list is a JSON array of n members, made by a format in which # is the number.
func list(n int, format string) string {
	var members []string
	for i := range n {
		members = append(members, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return "[" + strings.Join(members, ",") + "]"
}

// entries is a JSON object of n members.
func entries(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"key%d":"value"`, i))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestIntentRules(t *testing.T) {
	var cases []apitest.Case
	on := func(step apitest.Step, object string) func(name, patch, refused string) {
		return func(name, patch, refused string) {
			cases = append(cases, apitest.Case{Name: name, On: step, Object: object, Patch: patch, Refused: refused})
		}
	}

	create := on(apitest.Create, newIntent)
	create("the least there can be", `{}`, "")
	create("no spec", `{"spec":null}`, required)
	create("format missing", spec(`"formatVersion":null`), required)
	create("format 0", spec(`"formatVersion":0`), "should be greater than or equal to 1")
	create("format that is text", spec(`"formatVersion":"1"`), "must be of type integer")
	for _, field := range []string{"clusterUID", "driver", "name", "kind", "owner"} {
		create(field+" missing", spec(`"`+field+`":null`), required)
	}
	for _, field := range []string{"clusterUID", "driver", "name", "kind"} {
		create(field+" empty", spec(`"`+field+`":""`), tooShort)
	}
	create("owner's kind missing", spec(`"owner":{"kind":null}`), required)
	create("owner's kind empty", spec(`"owner":{"kind":""}`), tooShort)
	create("driver with a slash", spec(`"driver":"a/b"`), mismatch)
	create("driver of 64", spec(`"driver":`+quoted(64)), tooLong)
	create("name of 1024", spec(`"name":`+quoted(1024)), "")
	create("name of 1025", spec(`"name":`+quoted(1025)), tooLong)
	for _, phase := range []string{"Deleting", "Retained"} {
		create("phase "+phase, spec(`"phase":"`+phase+`"`), "")
	}
	create("phase unknown", spec(`"phase":"Lost"`), badPhase)
	create("phase missing", spec(`"phase":null`), badPhase)
	for _, origin := range []string{"Static", "Adopted"} {
		create("origin "+origin, spec(`"origin":"`+origin+`"`), "")
	}
	create("origin unknown", spec(`"origin":"Found"`), badOrigin)
	create("origin missing", spec(`"origin":null`), badOrigin)
	for _, kind := range []string{"Access", "Volume", "Snapshot"} {
		create("kind "+kind, spec(`"kind":"`+kind+`"`), "")
	}
	create("kind unknown", spec(`"kind":"Share"`), badKind)
	for _, word := range []string{"Delete", "Release", "Retry"} {
		create("word "+word, spec(`"word":"`+word+`"`), "")
	}
	create("word unknown", spec(`"word":"Forget"`), badWord)
	create("phase Live without id", spec(`"phase":"Live"`), noID)
	create("phase Live with id", spec(`"phase":"Live","id":"b1"`), "")
	for _, phase := range []string{"Released", "Sweeping"} {
		create("phase "+phase+" without time", spec(`"phase":"`+phase+`"`), noTime)
		create("phase "+phase+" with time", spec(`"phase":"`+phase+`","releasedAt":"2026-12-01T18:00:00Z"`), "")
	}
	create("time that is none", spec(`"phase":"Released","releasedAt":"yesterday"`), "must be of type date-time")
	create("an id that COSI refuses", spec(`"id":"eyJhIjoxfQ== \u00e4"`), "")
	create("an id of 65536", spec(`"id":`+quoted(65536)), "")
	create("an id of 65537", spec(`"id":`+quoted(65537)), tooLong)
	create("an id that is empty", spec(`"id":""`), tooShort)
	create("512 strays", spec(`"strayIDs":`+list(512, `"s#"`)), "")
	create("513 strays", spec(`"strayIDs":`+list(513, `"s#"`)), tooMany)
	create("a stray twice", spec(`"strayIDs":["a","a"]`), duplicate)
	create("a stray that is empty", spec(`"strayIDs":[""]`), tooShort)
	create("512 parameters", spec(`"inputs":{"parameters":`+entries(512)+`}`), "")
	create("513 parameters", spec(`"inputs":{"parameters":`+entries(513)+`}`), tooMany)
	create("128 buckets", spec(`"inputs":{"buckets":`+list(128, `{"bucketID":"b#"}`)+`}`), "")
	create("129 buckets", spec(`"inputs":{"buckets":`+list(129, `{"bucketID":"b#"}`)+`}`), tooMany)
	create("a bucket without id", spec(`"inputs":{"buckets":[{"accessMode":"ReadOnly"}]}`), required)
	create("33 Secrets", spec(`"inputs":{"secretRefs":`+list(33, `{"namespace":"n","name":"s#"}`)+`}`), tooMany)
	create("a Secret without name", spec(`"inputs":{"secretRefs":[{"namespace":"n"}]}`), required)
	create("129 pieces of info", spec(`"info":`+entries(129)), tooMany)
	create("an input without bucketID", spec(`"inputs":{"buckets":[{"bucketID":""}]}`), tooShort)
	create("a Secret without namespace", spec(`"inputs":{"secretRefs":[{"name":"s"}]}`), required)
	create("a Secret of empty names", spec(`"inputs":{"secretRefs":[{"namespace":"","name":""}]}`), tooShort)
	create("a protocol twice", spec(`"inputs":{"protocols":["S3","S3"]}`), duplicate)
	create("16 protocols", spec(`"inputs":{"protocols":`+list(16, `"p#"`)+`}`), "")
	create("17 protocols", spec(`"inputs":{"protocols":`+list(17, `"p#"`)+`}`), tooMany)
	// Each text has a bound, or one field could fill the API server.
	for field, bound := range map[string]int{
		`"clusterUID":#`: 128, `"kind":#`: 63, `"phase":#`: 63, `"origin":#`: 63, `"word":#`: 63, `"attempt":#`: 256, `"strayIDs":[#]`: 65536,
		`"owner":{"apiVersion":#}`: 317, `"owner":{"kind":#}`: 63, `"owner":{"namespace":#}`: 63, `"owner":{"name":#}`: 253, `"owner":{"uid":#}`: 128,
		`"inputs":{"protocol":#}`: 63, `"inputs":{"authenticationType":#}`: 63, `"inputs":{"serviceAccountName":#}`: 253, `"inputs":{"protocols":[#]}`: 63,
		`"inputs":{"buckets":[{"bucketID":#}]}`: 65536, `"inputs":{"buckets":[{"bucketID":"b","accessMode":#}]}`: 63,
		`"inputs":{"secretRefs":[{"name":"s","namespace":#}]}`: 63, `"inputs":{"secretRefs":[{"namespace":"n","name":#}]}`: 253,
		`"inputs":{"secretRefs":[{"namespace":"n","name":"s","role":#}]}`: 63,
	} {
		// Format 2, where the values of the enumerated fields are free.
		create(fmt.Sprintf("%s of %d", field, bound), spec(`"formatVersion":2,`+strings.Replace(field, "#", quoted(bound), 1)), "")
		create(fmt.Sprintf("%s of %d", field, bound+1), spec(`"formatVersion":2,`+strings.Replace(field, "#", quoted(bound+1), 1)), tooLong)
	}
	create("unknown fields everywhere", spec(`"later":{"a":[1]},"owner":{"later":1},"inputs":{"later":1,`+
		`"buckets":[{"bucketID":"b1","later":1}],"secretRefs":[{"namespace":"n","name":"s","later":1}]}`), "")
	newer := `"formatVersion":2,"phase":"Frozen","origin":"Cloned","kind":"Share","word":"Thaw"`
	create("a newer format with values of its own", spec(newer), "")
	create("the same values in format 1", spec(strings.Replace(newer, "2", "1", 1)), badPhase)
	create("a newer format that has no phase", spec(`"formatVersion":9,"phase":null,"origin":null`), "")
	create("a newer format without identity", spec(`"formatVersion":2,"driver":null`), required)

	update := on(apitest.Update, accessIntent)
	update("phase, attempt and strays", spec(`"phase":"Deleting","attempt":null,"strayIDs":null`), "")
	update("to a tombstone", spec(`"phase":"Released","releasedAt":"2026-12-01T18:00:00Z","id":null,"strayIDs":null`), "")
	update("to a tombstone without time", spec(`"phase":"Released"`), noTime)
	update("doubt cleared", spec(`"doubt":false`), noClear)
	update("doubt removed", spec(`"doubt":null`), noClear)
	update("doubt cleared by a newer format", spec(`"formatVersion":2,"doubt":false`), "")
	update("missed and linger", spec(`"missed":true,"linger":true`), "")
	update("missed and linger cleared", spec(`"missed":null,"linger":null`), "")
	update("Live loses its id", spec(`"id":null`), noID)
	update("owner's uid", spec(`"owner":{"uid":"11111111-2222-4333-8444-555555555555"}`), "")
	update("name changed", spec(`"name":"other"`), "name is immutable")
	update("driver changed", spec(`"driver":"other"`), "driver is immutable")
	update("cluster changed", spec(`"clusterUID":"other"`), "clusterUID is immutable")
	update("kind changed", spec(`"kind":"Bucket"`), "kind is immutable")
	update("owner's kind changed", spec(`"owner":{"kind":"Bucket"}`), "owner.kind is immutable")
	update("owner removed", spec(`"owner":null`), required)
	update("format up", spec(`"formatVersion":2`), "")
	on(apitest.Update, newIntent)("doubt set", spec(`"doubt":true`), "")
	// A program of the older format that writes over a newer record would lose it.
	on(apitest.Update, strings.Replace(newIntent, "formatVersion: 1", "formatVersion: 2", 1))("format down", spec(`"formatVersion":1`), backwards)

	condition := `{"type":"#","status":"True","reason":"NoWayToLook","message":"look","lastTransitionTime":"2026-12-01T18:00:00Z"}`
	status := on(apitest.UpdateStatus, accessIntent)
	status("conditions", `{"status":{"observedGeneration":1,"conditions":`+list(1, strings.Replace(condition, "#", "Stuck", 1))+`}}`, "")
	status("a condition twice", `{"status":{"conditions":`+list(2, strings.Replace(condition, "#", "Stuck", 1))+`}}`, duplicate)
	status("a condition without reason", `{"status":{"conditions":[{"type":"Stuck","status":"True","message":"","lastTransitionTime":"2026-12-01T18:00:00Z"}]}}`, required)
	status("17 conditions", `{"status":{"conditions":`+list(17, strings.Replace(condition, "#", "C#", 1))+`}}`, tooMany)

	definition, err := fs.ReadFile(crds.Files(), "custody.dev_intents.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server.Check(t, definition, cases, "status.conditions[].") // what a condition is, Kubernetes says
}

// The record and what people see of it are written by two requests of different
// accounts; neither may carry the other along.
func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	made := store(t, accessIntent)
	client := server.Objects(t, made)
	both := func() *unstructured.Unstructured {
		o := made.DeepCopy()
		o.Object["spec"].(map[string]any)["attempt"] = "other"
		o.Object["status"] = map[string]any{"observedGeneration": int64(7)}
		return o
	}
	afterSpec, err := client.Update(t.Context(), both(), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, there := afterSpec.Object["status"]; there {
		t.Error("a write of the record has written the status")
	}
	made = afterSpec
	made.Object["spec"].(map[string]any)["attempt"] = "another"
	made.Object["status"] = map[string]any{"observedGeneration": int64(7)}
	afterStatus, err := client.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(afterStatus.Object, "spec", "attempt"); got != "other" {
		t.Errorf("a write of the status has written the record: attempt is %q", got)
	}
}

func TestColumnsThatAPersonSees(t *testing.T) {
	made := store(t, accessIntent)
	cells := server.Table(t, made)
	delete(cells, "AGE")
	want := map[string]any{
		"Name": made.GetName(), "DRIVER": "s3.example.com", "KIND": "Access", "PHASE": "Live", "ID": "account-1", "DOUBT": true,
		"OWNER": "pictures", "NAMESPACE": "web", "STRAYS": `["account-2","account-3"]`, "STUCK": nil,
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Error(diff)
	}
}

// Both ways to find the Intents of one driver: by what Custody writes beside the
// record, and by the record itself.
func TestIntentsAreFoundByDriver(t *testing.T) {
	mine := store(t, strings.ReplaceAll(accessIntent, "s3.example.com", "mine.example.com"))
	other := store(t, strings.ReplaceAll(accessIntent, "s3.example.com", "other.example.com"))
	for how, options := range map[string]metav1.ListOptions{
		"label": {LabelSelector: custody.LabelDriver + "=mine.example.com," + custody.LabelKind + "=Access"},
		"field": {FieldSelector: "spec.driver=mine.example.com,spec.phase=Live"},
	} {
		found, err := server.Objects(t, mine).List(t.Context(), options)
		if err != nil {
			t.Fatalf("by %s: %v", how, err)
		}
		var names []string
		for _, item := range found.Items {
			names = append(names, item.GetName())
		}
		if !slices.Equal(names, []string{mine.GetName()}) {
			t.Errorf("by %s: found %v, want %s and not %s", how, names, mine.GetName(), other.GetName())
		}
	}
}

// store stores an object under a name of its own.
func store(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object, err := apitest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	object.SetName(server.Name())
	made, err := server.Objects(t, object).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
