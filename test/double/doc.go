// Package double is a COSI driver for tests that behaves as badly as drivers do.
//
// It comes in two halves, as a real driver and its storage do:
//
//   - [Backend] is the storage: buckets and accounts, and the log of how each came
//     and went. It lives in the process of the test, so no kill -9 of a driver
//     touches it, and the test looks at it directly. It also throws the dice for
//     the faults, so that one seed holds for all driver processes and one place
//     counts.
//   - [Driver] is the driver: gRPC over a unix socket in one of the dialects,
//     thin enough to die at any moment. Run it in a process of its own (package
//     test/actor), or in the test's where nothing is to be killed. It reaches the
//     backend through [Storage]: the Backend itself, or a [Remote] over a socket.
//
// A call to the driver goes: ask the backend what befalls this call ([Plan]); wait
// Plan.Before; have the backend do the work, now, late or not at all; wait
// Plan.After; answer the result or a wrong code. A driver that is killed or frozen
// in the first wait has done nothing yet; work that is handed over to be done late
// is done though the driver is dead.
package double
