package intents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Filter says which Intents are wanted. Its zero value takes all; what is set must hold
// all together.
type Filter struct {
	Driver string
	Phase  string // any case
	Kind   string // any case
	Stuck  bool   // waits for a person, or has not come to rest for too long
	Doubt  bool   // a create was never heard of
}

// Row is one Intent in a list. The JSON names are kept from release to release.
type Row struct {
	Name    string    `json:"name"`
	Driver  string    `json:"driver"`
	Kind    string    `json:"kind"`
	Phase   string    `json:"phase"`
	State   string    `json:"state"` // a word for a person, see stateOf
	Stuck   string    `json:"stuck,omitempty"`
	Overdue bool      `json:"overdue,omitempty"`
	Doubt   bool      `json:"doubt,omitempty"`
	Open    bool      `json:"open,omitempty"`
	ID      string    `json:"id,omitempty"`
	Strays  []string  `json:"strayIDs,omitempty"`
	Origin  string    `json:"origin,omitempty"`
	Word    string    `json:"word,omitempty"`
	For     string    `json:"for"` // the claim or access that it is for, else the owner
	Owner   string    `json:"owner"`
	Created time.Time `json:"created"`
}

// List reads the Intents that a filter takes: those that want a person first, then by
// driver, kind and age.
func (c *Client) List(ctx context.Context, f Filter) ([]Row, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	page := client.ListOptions{Limit: pageSize}
	if f.Driver != "" {
		page.FieldSelector = fields.OneTermEqualSelector("spec.driver", f.Driver)
	}
	var rows []Row
	for {
		var list v1alpha1.IntentList
		if err := c.api.List(ctx, &list, &page); err != nil {
			return nil, c.failed("list intents", err)
		}
		for i := range list.Items {
			if row := rowOf(&list.Items[i]); f.takes(row) {
				rows = append(rows, row)
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	c.nameClaims(ctx, rows)
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Kind, b.Kind),
			a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return rows, nil
}

// Names lists the names of Intents that begin with a text, for shells to complete.
func (c *Client) Names(ctx context.Context, prefix string) ([]string, error) {
	var list v1alpha1.IntentList
	// More than a page is no help to anybody who types.
	if err := c.api.List(ctx, &list, &client.ListOptions{Limit: pageSize}); err != nil {
		return nil, c.failed("list intents", err)
	}
	var names []string
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, prefix) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// Phases and Kinds are what Filter takes.
var (
	Phases = []string{"Making", "Live", "Deleting", "Released", "Sweeping", "Retained"}
	Kinds  = []string{"Bucket", "Access", "Volume", "Snapshot"}
)

func (f Filter) check() error {
	for _, w := range []struct {
		flag, given string
		known       []string
	}{{"phase", f.Phase, Phases}, {"kind", f.Kind, Kinds}} {
		if w.given != "" && !slices.ContainsFunc(w.known, func(k string) bool { return strings.EqualFold(k, w.given) }) {
			return fmt.Errorf("--%s is %q; it is one of %s", w.flag, w.given, strings.Join(w.known, ", "))
		}
	}
	return nil
}

func (f Filter) takes(r Row) bool {
	same := func(want, have string) bool { return want == "" || strings.EqualFold(want, have) }
	return same(f.Phase, r.Phase) && same(f.Kind, r.Kind) &&
		(!f.Stuck || r.Stuck != "" || r.Overdue) && (!f.Doubt || r.Doubt)
}

func (r Row) rank() int {
	switch {
	case r.Stuck != "":
		return 0
	case r.Overdue:
		return 1
	case r.State != settled:
		return 2
	}
	return 3
}

func rowOf(intent *v1alpha1.Intent) Row {
	s := intent.Spec
	row := Row{
		Name: intent.Name, Driver: s.Driver, Kind: string(s.Kind), Phase: string(s.Phase), Doubt: s.Doubt, Open: s.Attempt != "",
		ID: s.ID, Strays: s.StrayIDs, Origin: string(s.Origin), Word: string(s.Word),
		For: ownerText(s.Owner), Owner: ownerText(s.Owner), Created: intent.CreationTimestamp.Time,
	}
	if c := meta.FindStatusCondition(intent.Status.Conditions, v1alpha1.ConditionStuck); c != nil && c.Status == "True" {
		row.Stuck = c.Reason
	}
	row.Overdue = meta.IsStatusConditionTrue(intent.Status.Conditions, v1alpha1.ConditionOverdue)
	row.State = stateOf(intent, row)
	return row
}

// settled is the state of a record about which there is nothing to say.
const settled = "settled"

// stateOf is one word, or two, on where a record stands.
func stateOf(intent *v1alpha1.Intent, r Row) string {
	waits := meta.FindStatusCondition(intent.Status.Conditions, v1alpha1.ConditionSettled)
	switch {
	case v1alpha1.ReadFormat(intent) != nil:
		return "newer format"
	case r.Word != "":
		return "decided: " + strings.ToLower(r.Word)
	case r.Stuck != "":
		return "stuck: " + r.Stuck
	case waits != nil && waits.Status == "False":
		return "waits: " + waits.Reason
	case r.Phase == string(v1alpha1.PhaseMaking), r.Phase == string(v1alpha1.PhaseDeleting), r.Phase == string(v1alpha1.PhaseSweeping):
		return "under way"
	case r.Open:
		return "call open"
	}
	return settled
}

// nameClaims puts the claim in the place of its Bucket, whose name tells a person
// nothing. Who may not read Buckets sees the Bucket.
func (c *Client) nameClaims(ctx context.Context, rows []Row) {
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Kind == string(v1alpha1.KindBucket) }) {
		return
	}
	claims := map[string]string{}
	page := client.ListOptions{Limit: pageSize}
	for {
		var list cosi.BucketList
		if err := c.api.List(ctx, &list, &page); err != nil {
			return
		}
		for i := range list.Items {
			if ref := list.Items[i].Spec.BucketClaimRef; ref.Name != "" {
				claims["Bucket "+list.Items[i].Name] = "BucketClaim " + ref.Namespace + "/" + ref.Name
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	for i := range rows {
		if claim := claims[rows[i].Owner]; claim != "" {
			rows[i].For = claim
		}
	}
}
