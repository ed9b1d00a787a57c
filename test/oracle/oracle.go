package oracle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	custodyv1 "github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Item is a bucket or an account that exists in a backend.
type Item struct {
	Driver string
	Kind   custodyv1.Kind // KindBucket or KindAccess
	ID     string
	Name   string // that it was made for, "" if the backend can't tell
	Keys   int    // live credentials of an account
}

// Inventory lists what exists in one backend.
type Inventory interface {
	Items(ctx context.Context) ([]Item, error)
}

// Keep is something that must still be there.
type Keep struct {
	Kind, Name string
	// Check says what is wrong with it.
	Check func(ctx context.Context) error
}

// Options says what to compare.
type Options struct {
	// Reader reads the API server; not from a cache.
	Reader client.Reader
	// Backends of the drivers that are looked at. Intents and objects of other
	// drivers are left out.
	Drivers  []string
	Backends []Inventory
	Keeps    []Keep
	// WithoutIntents judges by the COSI objects instead, for the control that has no
	// Intents: what no Bucket or BucketAccess names any more is an orphan.
	WithoutIntents bool
	// Excuse may give a reason for which an object that is not at rest is as it
	// should be; "" means that there is none. nil excuses nothing.
	Excuse func(client.Object) string
}

type place struct {
	driver string
	kind   custodyv1.Kind
	text   string // an id or a name
}

// Compare looks once. The error says that it could not look, not that something
// is wrong.
func Compare(ctx context.Context, o Options) (Report, error) {
	r := Report{Intents: map[custodyv1.Phase]int{}}
	// The backends are read before the records: what is made in between has an
	// Intent by then, which never goes before the thing.
	var items []Item
	for _, b := range o.Backends {
		some, err := b.Items(ctx)
		if err != nil {
			return r, fmt.Errorf("oracle: list a backend: %w", err)
		}
		items = append(items, some...)
	}
	var intents custodyv1.IntentList
	if err := o.Reader.List(ctx, &intents); err != nil {
		return r, fmt.Errorf("oracle: list Intents: %w", err)
	}
	r.Items = len(items)
	if o.WithoutIntents {
		var err error
		if intents.Items, err = fromObjects(ctx, o.Reader); err != nil {
			return r, err
		}
	}
	intents.Items = slices.DeleteFunc(intents.Items, func(i custodyv1.Intent) bool { return !slices.Contains(o.Drivers, i.Spec.Driver) })
	compareItems(&r, items, intents.Items)
	compareIntents(&r, items, intents.Items)
	if err := compareObjects(ctx, &r, o); err != nil {
		return r, err
	}
	for _, k := range o.Keeps {
		r.KeptChecks++
		if err := k.Check(ctx); err != nil {
			r.add(Finding{Sort: Lost, Kind: k.Kind, Name: k.Name, Why: err.Error()})
		}
	}
	return r, nil
}

// fromObjects makes up the Intents that objects would have, each for what it names.
func fromObjects(ctx context.Context, reader client.Reader) ([]custodyv1.Intent, error) {
	var buckets cosi.BucketList
	var accesses cosi.BucketAccessList
	for _, list := range []client.ObjectList{&buckets, &accesses} {
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("oracle: list objects: %w", err)
		}
	}
	var all []custodyv1.Intent
	add := func(kind custodyv1.Kind, driver, name, id string) {
		all = append(all, custodyv1.Intent{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: custodyv1.IntentSpec{Driver: driver, Kind: kind, Name: name, ID: id, Phase: custodyv1.PhaseLive}})
	}
	for _, b := range buckets.Items {
		add(custodyv1.KindBucket, b.Spec.DriverName, b.Name, b.Status.BucketID)
	}
	for _, a := range accesses.Items {
		add(custodyv1.KindAccess, a.Status.DriverName, cosi.AccountName(&a), a.Status.AccountID)
	}
	return all, nil
}

// Wait looks until all is clean, or until ctx ends; it returns the last report.
func Wait(ctx context.Context, o Options) (Report, error) {
	const every = 500 * time.Millisecond
	var last Report
	for {
		r, err := Compare(ctx, o)
		switch {
		case err == nil && r.Clean():
			return r, nil
		case ctx.Err() != nil && last.Intents != nil:
			return last, nil
		case err == nil:
			last = r
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			if last.Intents == nil {
				return last, err
			}
			return last, nil
		}
	}
}

func compareItems(r *Report, items []Item, intents []custodyv1.Intent) {
	byID, byName := map[place][]custodyv1.Intent{}, map[place]custodyv1.Intent{}
	for _, i := range intents {
		for _, id := range append([]string{i.Spec.ID}, i.Spec.StrayIDs...) {
			p := place{i.Spec.Driver, i.Spec.Kind, id}
			byID[p] = append(byID[p], i)
		}
		byName[place{i.Spec.Driver, i.Spec.Kind, i.Spec.Name}] = i
	}
	first := map[place]string{} // the id that was met first, by the Intent's name
	for _, item := range items {
		found := Finding{Driver: item.Driver, Kind: string(item.Kind), Name: item.Name, ID: item.ID}
		holders := byID[place{item.Driver, item.Kind, item.ID}]
		if i, ok := byName[place{item.Driver, item.Kind, item.Name}]; ok && item.Name != "" && len(holders) == 0 {
			holders = append(holders, i)
		}
		at := slices.IndexFunc(holders, func(i custodyv1.Intent) bool {
			return i.Spec.Phase != custodyv1.PhaseReleased && i.Spec.Phase != custodyv1.PhaseSweeping
		})
		switch {
		case len(holders) == 0:
			found.Sort, found.Why = Orphan, "no Intent names it"
			r.add(found)
			continue
		case at < 0:
			found.Sort, found.Why = Orphan, fmt.Sprintf("Intent %s is released", holders[0].Name)
			r.add(found)
			continue
		}
		p := place{item.Driver, item.Kind, holders[at].Name}
		if other, taken := first[p]; taken {
			found.Sort, found.Why = Double, fmt.Sprintf("Intent %s (phase %s) has %s too", holders[at].Name, holders[at].Spec.Phase, other)
			r.add(found)
		}
		first[p] = item.ID
		for range item.Keys - 1 {
			found.Sort, found.Why = Double, fmt.Sprintf("it has %d live keys", item.Keys)
			r.add(found)
		}
	}
}

func compareIntents(r *Report, items []Item, intents []custodyv1.Intent) {
	for _, i := range intents {
		r.Intents[i.Spec.Phase]++
		if i.Spec.Doubt {
			r.InDoubt++
		}
		found := Finding{Driver: i.Spec.Driver, Kind: "Intent", Name: i.Name, ID: i.Spec.ID}
		exists := slices.ContainsFunc(items, func(item Item) bool {
			return item.Driver == i.Spec.Driver && item.Kind == i.Spec.Kind && item.ID == i.Spec.ID
		})
		switch i.Spec.Phase {
		case custodyv1.PhaseReleased, custodyv1.PhaseSweeping:
		case custodyv1.PhaseLive, custodyv1.PhaseRetained:
			if !exists && i.Spec.ID != "" {
				found.Sort, found.Why = Lost, fmt.Sprintf("phase %s, and no such id in the backend", i.Spec.Phase)
				r.add(found)
			}
			if why := reason(i.Status.Conditions); why != "" {
				found.Sort, found.Why = Stuck, why
				r.add(found)
			}
		default:
			found.Sort, found.Why = Stuck, fmt.Sprintf("phase %s: %s", i.Spec.Phase, reason(i.Status.Conditions))
			r.add(found)
		}
	}
}

// reason is what the conditions say stands in the way.
func reason(all []metav1.Condition) string {
	c := meta.FindStatusCondition(all, custodyv1.ConditionStuck)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func compareObjects(ctx context.Context, r *Report, o Options) error {
	var claims cosi.BucketClaimList
	var buckets cosi.BucketList
	var accesses cosi.BucketAccessList
	for _, list := range []client.ObjectList{&claims, &buckets, &accesses} {
		if err := o.Reader.List(ctx, list); err != nil {
			return fmt.Errorf("oracle: list objects: %w", err)
		}
	}
	judge := func(kind, driver string, object client.Object, ready *bool, id string, failed *cosi.TimestampedError) {
		found := Finding{Sort: Stuck, Driver: driver, Kind: kind, Name: object.GetName(), ID: id}
		if object.GetNamespace() != "" {
			found.Name = object.GetNamespace() + "/" + found.Name
		}
		if o.Excuse != nil && o.Excuse(object) != "" {
			return
		}
		text := "no reason is shown"
		if failed != nil && failed.Message != nil {
			text = *failed.Message
		}
		switch {
		case object.GetDeletionTimestamp() != nil:
			found.Why = "is being deleted: " + text
			r.add(found)
		case ready == nil || !*ready:
			found.Why = "is not ready: " + text
			r.add(found)
		}
	}
	drivers := map[string]string{} // of claims, by the Bucket's name
	for i := range buckets.Items {
		b := &buckets.Items[i]
		drivers[b.Name] = b.Spec.DriverName
		if slices.Contains(o.Drivers, b.Spec.DriverName) {
			judge("Bucket", b.Spec.DriverName, b, b.Status.ReadyToUse, b.Status.BucketID, b.Status.Error)
		}
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		name := c.Status.BoundBucketName
		if name == "" {
			name = cosi.BucketName(c)
		}
		if driver, known := drivers[name]; !known || slices.Contains(o.Drivers, driver) {
			judge("BucketClaim", driver, c, c.Status.ReadyToUse, "", c.Status.Error)
		}
	}
	for i := range accesses.Items {
		a := &accesses.Items[i]
		if a.Status.DriverName == "" || slices.Contains(o.Drivers, a.Status.DriverName) {
			judge("BucketAccess", a.Status.DriverName, a, a.Status.ReadyToUse, a.Status.AccountID, a.Status.Error)
		}
	}
	return nil
}
