// Package provision keeps the promise "never none": whatever a driver was asked to make is always written down by
// somebody who will delete it. It serves buckets and their accounts, volumes and snapshots alike.
//
// # What the caller does
//
// For each name there is one [Memo] in the process, from [Begin]. When the API object or the Intent may have changed,
// call [Memo.Wake]; then [Engine.Run] (or [Engine.Step] in a loop) until it hands out something other than [Again];
// then do as [Next] says and keep the memo. One name is never run twice at once in a process. A process that loses the
// lead stops; if it can't (frozen, partitioned), the protocol holds all the same.
//
// # What is durable before what
//
//  1. The Intent, with the nonce of the first attempt in it, before the first call of that name to the driver. It is
//     written create-only. Then the owner is asked for once more, live: between its first read and this write another
//     incarnation may have ended its whole life.
//  2. Each further attempt's nonce, by compare-and-swap, before its call. An incarnation with an old copy fails here,
//     so it can't call. A counter, or a nonce for a process, would not do: a repeated decrement closes another's
//     attempt, a stale read gives a second create that nobody marked.
//  3. An id, the moment it is seen, in an answer or in an error, before anything else is checked or shown. If the record
//     is gone by then, a new one is made around the id.
//  4. PhaseDeleting, before the first delete. From here no create is made to be kept.
//  5. The tombstone, before the finalizer goes; or, where every call was answered, the finalizer first and then the
//     record.
//
// # Doubt
//
// Who finds an attempt open that is not its own, or its own earlier one unheard of, sets Doubt in the same write that
// opens the next. Doubt never clears, for no later answer speaks of that attempt. A record that is in doubt or has an
// attempt open when it is deleted waits until Settle has passed since the later of taking the lead and the end of the
// last unanswered attempt, looks for the last time, and leaves a tombstone: no orchestrator can stop a call that a
// frozen process still holds, so what arrives later is found under the tombstone by the periodic sweep and deleted.
// A record whose create was answered with an error waits for nothing, but is looked for before it is released: no code
// proves absence.
//
// A tombstone ends with a sweep that began when its time was over and could look: the process may have been down all
// that time. Where creating again is the only way to look, that is done in this last sweep and in no other; if it is not
// answered, the tombstone's time begins anew. A tombstone that stands only for a late delete looks for nothing.
//
// # Deletes that may be late
//
// No delete of an id that is served again may be on its way. So a delete that makes room for a new resource of the same
// name (credentials that were lost, and no others) is marked in the record first (Linger), is made on a live read after
// the settle time, and is followed by another settle time where it was not answered; a release after it leaves a
// tombstone. What was retained, or is wanted again while it is being deleted, is served only if something tells that it
// is there. This rests on what the rest of the protocol does not need: a call to delete, and the sleep of a process
// between its read and that call, do not outlast the settle time.
//
// # Reads
//
// A wanted resource may be made on a cached read, for the first write is create-only and the owner is asked again. All
// else that can't be undone is decided on a live read: deletion, adoption, what follows a lost payload.
//
// # Looking
//
// In this order, as far as the driver can ([Ways]) and only where the name is proof that what is found is ours
// (Record.Proven or an owner mark): a generated id, delete-by-name, find-by-name and delete, an id by template, create
// again and delete. A way that fails makes room for the next. A driver without a look of its own (v1alpha1) is looked at
// by deleting again the id that the template gives. Where there is none, the record stays and says so.
// A wanted resource is looked for before a create is repeated, unless a repeat is known to answer the same id. What
// holds data is never deleted to make it anew.
//
// # Steps
//
// [Engine.Step] makes at most one call through one of the two doors ([Store], [Backend]) and returns. There is no
// goroutine, timer, lock, random, log or defer in this package, and no clock but the one handed in: shape_test.go reads
// the syntax tree and says so. That is what lets package explore run this code through every interleaving.
//
// The rules are those of docs/protocol.md; the race that began it is COSI issue "gRPC resource provision-deprovision
// race condition".
package provision
