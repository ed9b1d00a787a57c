// Package failpoint has a process die or freeze at a named point of the protocol.
//
// Failpoints are decorators on the doors of packages provision and exclusive, not lines in
// the code: before and after each call to the driver and each request to the API.
// The sidecar's options take them ([Wrap]); the shipped command never sets them.
//
// A point's name is "store." or "backend.", the call, ".before" or ".after", as in
// "backend.create.after" or "store.save.before". A save is two calls, because they
// differ in what is durable: "store.begin" makes the Intent, "store.save" changes
// it. "After" is after the answer has come and before anything is made of it: the
// process has been told and forgets. For the doors of exclusive ([Points.Manager]) it is
// "registry.", "device." or "fencer." and the method in small letters, as in
// "registry.swap.after".
//
// Package failpoint also has the control ([WithoutIntents]): a store that keeps
// the record in memory only, which is what orchestrators do that have no Intent.
// A campaign that finds no orphan then would prove nothing.
package failpoint
