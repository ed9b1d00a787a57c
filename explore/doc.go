// Package explore plays the protocol code that ships through every interleaving, crash, lost reply, late call, refusal
// and stale read within a bound, and so that of other protocols, which break.
//
// # The world
//
// For one name there is an API server (object and Intent), caches that lag, a driver with its backend, calls and writes
// that are still on their way, a user, an admin, and one or two incarnations of the orchestrator. An incarnation is
// [provision.Engine.Step] itself, with the world behind its two doors and its Memo in the state; nothing of the protocol
// is written down here again. A crash zeroes the Memo. A lost reply is a request that took effect and was answered with
// an error. A late call is kept in the world and takes effect at any later moment. A frozen incarnation is one that is
// not picked. Time is a tick that makes everything remembered one older.
//
// # What is checked
//
// On every move: nothing is deleted that is in use, retained, or somebody else's. On every state: if nothing goes wrong
// any more (what is on its way lands, the incarnation that lost the lead is gone, events arrive, time passes), the world
// comes to rest, and there what was asked for is there, once, and served; or nothing is left; or the leader says that
// somebody must decide, and the record is still there. Package search does this on the graph of all states.
//
// # What a setting is
//
// A kind (bucket: holds data; access: credentials that die with the process), a capability of the driver, and a bound:
// how many crashes, lost replies, late calls and so on there may be ([Names] lists them). States that nobody can tell
// apart are one: see codec.
//
// # Findings
//
// A finding in the shipped code is mended there, and its trace is kept as a script in provision/testdata, in words; see
// [Scenario]. That the explorer would see a rule that is missing is shown by mutations of the shipped code
// (mutants_test.go), made at the doors and on the Memo.
package explore
