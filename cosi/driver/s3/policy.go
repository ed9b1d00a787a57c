package s3

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/custody-storage/custody/cosi/wire"
)

// policy is a bucket policy with the accounts of this driver's statements taken out, by access mode. All
// else in it is kept as it was written.
type policy struct {
	bucket string
	// rest are the document's other fields, and foreign its other statements.
	rest    map[string]json.RawMessage
	foreign []json.RawMessage
	members map[wire.AccessMode][]string
}

// sidPrefix is how our statements are known. The rest of the id is the mode and what it is about. S3 takes
// letters and digits only.
const sidPrefix = "Custody"

type statement struct {
	Sid       string
	Effect    string
	Principal struct{ AWS []string }
	Action    []string
	Resource  []string
}

// modes in the order in which they are written.
var modes = []wire.AccessMode{wire.ReadWrite, wire.ReadOnly, wire.WriteOnly}

// Actions of each mode, on the bucket and on its objects.
var (
	bucketActions = map[wire.AccessMode][]string{
		wire.ReadWrite: {"s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"},
		wire.ReadOnly:  {"s3:ListBucket", "s3:GetBucketLocation"},
		wire.WriteOnly: {"s3:GetBucketLocation"},
	}
	objectActions = map[wire.AccessMode][]string{
		wire.ReadWrite: {
			"s3:GetObject", "s3:GetObjectAttributes", "s3:GetObjectTagging",
			"s3:PutObject", "s3:PutObjectTagging", "s3:DeleteObject", "s3:DeleteObjectTagging",
			"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
		},
		wire.ReadOnly:  {"s3:GetObject", "s3:GetObjectAttributes", "s3:GetObjectTagging"},
		wire.WriteOnly: {"s3:PutObject", "s3:PutObjectTagging", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"},
	}
)

// parsePolicy reads a document; text is empty for none.
func parsePolicy(bucket, text string) (*policy, error) {
	p := &policy{bucket: bucket, rest: map[string]json.RawMessage{}, members: map[wire.AccessMode][]string{}}
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p.rest); err != nil {
		return nil, fmt.Errorf("the policy of bucket %q cannot be read: %w", bucket, err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(p.rest["Statement"], &all); err != nil {
		// S3 takes a single statement without its list.
		all = []json.RawMessage{p.rest["Statement"]}
	}
	delete(p.rest, "Statement")
	for _, raw := range all {
		mode, members, mine, err := parseStatement(raw)
		if err != nil {
			return nil, fmt.Errorf("the policy of bucket %q: %w", bucket, err)
		}
		if !mine {
			p.foreign = append(p.foreign, raw)
			continue
		}
		for _, m := range members {
			p.add(m, mode)
		}
	}
	return p, nil
}

func parseStatement(raw json.RawMessage) (mode wire.AccessMode, members []string, mine bool, err error) {
	var sid struct{ Sid string }
	if err := json.Unmarshal(raw, &sid); err != nil {
		return "", nil, false, fmt.Errorf("a statement cannot be read: %w", err)
	}
	for _, m := range modes {
		if sid.Sid != sidPrefix+string(m)+"Bucket" && sid.Sid != sidPrefix+string(m)+"Objects" {
			continue
		}
		var s statement
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", nil, false, fmt.Errorf("statement %s, which belongs to this driver, was changed by somebody: delete it and grant again: %w", sid.Sid, err)
		}
		return m, s.Principal.AWS, true, nil
	}
	return "", nil, false, nil
}

func (p *policy) add(account string, mode wire.AccessMode) {
	if !slices.Contains(p.members[mode], account) {
		p.members[mode] = append(p.members[mode], account)
	}
}

// grant gives the account one mode, and no other. It tells if that changed anything.
func (p *policy) grant(account string, mode wire.AccessMode) (changed bool) {
	if changed = !slices.Contains(p.members[mode], account); changed {
		p.add(account, mode)
	}
	for _, other := range modes {
		if other != mode {
			changed = p.drop(other, func(a string) bool { return a == account }) || changed
		}
	}
	return changed
}

// revoke takes all modes from the account. It tells if that changed anything.
func (p *policy) revoke(account string) (changed bool) {
	return p.keepOnly(func(a string) bool { return a != account })
}

// keepOnly drops the accounts that keep refuses.
func (p *policy) keepOnly(keep func(account string) bool) (changed bool) {
	for _, m := range modes {
		changed = p.drop(m, func(a string) bool { return !keep(a) }) || changed
	}
	return changed
}

func (p *policy) drop(mode wire.AccessMode, which func(string) bool) bool {
	before := len(p.members[mode])
	p.members[mode] = slices.DeleteFunc(p.members[mode], which)
	return len(p.members[mode]) != before
}

// text is the document, empty if nothing is left of it.
func (p *policy) text() (string, error) {
	statements := slices.Clone(p.foreign)
	for _, m := range modes {
		if len(p.members[m]) == 0 {
			continue
		}
		accounts := slices.Sorted(slices.Values(p.members[m]))
		for _, s := range []statement{
			{Sid: sidPrefix + string(m) + "Bucket", Action: bucketActions[m], Resource: []string{"arn:aws:s3:::" + p.bucket}},
			{Sid: sidPrefix + string(m) + "Objects", Action: objectActions[m], Resource: []string{"arn:aws:s3:::" + p.bucket + "/*"}},
		} {
			s.Effect = "Allow"
			s.Principal.AWS = accounts
			raw, err := json.Marshal(s)
			if err != nil {
				return "", err
			}
			statements = append(statements, raw)
		}
	}
	if len(statements) == 0 {
		return "", nil
	}
	doc := map[string]any{"Version": "2012-10-17"}
	for k, v := range p.rest {
		doc[k] = v
	}
	doc["Statement"] = statements
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // conditions of others hold < and >
	if err := enc.Encode(doc); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}
