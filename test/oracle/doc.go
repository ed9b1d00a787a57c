// Package oracle compares what exists in backends with what the records say.
//
// It looks at the real things: the backend's own list ([Inventory]), the Intents
// and the COSI objects. It counts
//
//   - orphans: in the backend, and no Intent that is still at work names it. Under
//     a tombstone alone it is an orphan too, until the sweep has deleted it;
//   - doubles: a second bucket or account of one name, a second live key of one
//     account;
//   - stuck: an object or an Intent that has not come to rest, with the reason
//     that it shows;
//   - lost: an Intent says that something serves or is retained, and it is not
//     there; or something that a caller wants kept ([Keep]) is not as it was.
//
// It is for times of rest: while work goes on, what is on its way counts as stuck.
// [Wait] polls until all is clean or the time is up.
package oracle
