// Package driver is the kit that COSI drivers are made with. A driver author writes a [Backend], a handful
// of plain functions about buckets and accounts of one storage system, and calls [Run]. The kit makes a
// driver of it: gRPC on a unix socket in every COSI dialect, the Recovery service, and what is easy to get
// wrong. Package driver/s3 is the model to copy.
//
// # What to write
//
// The five functions of [Backend]. They take and answer the types of package wire, which know no dialect.
// Then, if the storage system allows it, [Recoverer] (from a name alone: delete, find, list) and [IDs] (ids
// that follow from names). Say in Info().Recovery what of it holds; nothing more needs to be registered.
//
// Make these true and nobody will be left with an orphan:
//
//   - Create again is safe. The same name and inputs answer the same id and make nothing more: no second
//     bucket, account or key. Never answer ALREADY_EXISTS to the one who made it.
//   - Mark what you make, in the same request that makes it, with the name it was asked for by and with the
//     owner the driver was set up as. What lacks your mark is not yours: answer ALREADY_EXISTS, do not adopt
//     it, do not delete it by name.
//   - Answer an id with the error, if something was made and then something failed: return both. The kit
//     sends it along, the orchestrator keeps it.
//   - Delete and revoke of what is not there is success. What cannot be deleted as it is (objects in a
//     bucket) is FAILED_PRECONDITION, with words that tell a person what to do.
//   - One account, one live key. A repeated grant answers the key there is, or replaces it.
//
// # What the kit does
//
//   - Requests are checked by the rules of the COSI specification before they reach the Backend.
//   - Calls of one name never overlap. (Where ids do not follow from names, a delete by id is told apart
//     from its name, and the orchestrator keeps them apart.)
//   - A call that reached the Backend is seen through. A client that gives up, or whose deadline passes, is
//     told so at once, but the name stays busy until the Backend has answered or its own deadline
//     (Options.CallTimeout) has passed. So what the kit says of a name is definite.
//   - A create that ended without a definite answer leaves its name unsettled for Options.Settle: it may
//     still land. By-name calls answer ABORTED meanwhile.
//   - Delete-by-name answers ABORTED while a create of the name runs; once it has answered OK, a create
//     that was received before and still waits is given up.
//   - A panic becomes INTERNAL, and of a create, unsettled. Secrets are not logged. The end of the context
//     ends the server gracefully.
//
// # Codes
//
// Return status errors (google.golang.org/grpc/status). Each of these says that the storage system has
// answered and the call is over: INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// UNAUTHENTICATED, FAILED_PRECONDITION, OUT_OF_RANGE, RESOURCE_EXHAUSTED, ABORTED, UNIMPLEMENTED. Everything
// else, errors without a code and ended contexts too, counts as unanswered. INVALID_ARGUMENT,
// ALREADY_EXISTS, UNIMPLEMENTED and OUT_OF_RANGE are not tried again by orchestrators.
//
// The package imports wire, never Kubernetes: a driver needs no cluster to run or to be tested.
package driver
