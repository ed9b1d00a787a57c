// Package intents is what an admin does with Intents: list them, have one explained,
// and decide about one that has stopped. It is `custody intents`.
//
// Custody works without it. A record that can go on by itself goes on by itself; what
// is here is for the few that can't, and for whoever wants to know why.
//
//	client, err := intents.Open(config)
//	rows, err := client.List(ctx, intents.Filter{Stuck: true})
//	text, err := client.Explain(ctx, name)
//	plan, err := client.Plan(ctx, name, v1alpha1.WordRelease)
//	err = plan.Do(ctx, "looked: the bucket is not there")
//
// # What a decision is
//
// A decision is one word in the record (spec.word) and a reason beside it, written by
// compare-and-swap on the record as it was looked at. The sidecar acts on the word, in
// its own time and by the protocol of package provision; nothing here calls a driver or
// deletes a record. A word that could do nothing, or harm, is refused here (allow.go),
// and so it is clear at once.
//
// # Who may
//
// package intents/rbac has two roles. Reading takes the one, deciding takes the other,
// with the verb "resolve" on intents.custody.dev: the admission policy of
// cosi/controller/admission lets who has it change that word, and nothing else of an
// Intent.
package intents
