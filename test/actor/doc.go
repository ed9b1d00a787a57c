// Package actor runs the programs of a test as processes of their own, by running
// the test's binary again.
//
//	func TestMain(m *testing.M) {
//		actor.RunIfAsked()
//		os.Exit(m.Run())
//	}
//
// A sidecar so made is `custody cosi sidecar` with the same flags; what it has more
// is the hooks: failpoints, and the control without Intents. Programs that need no
// hook are run from the shipped binary instead.
package actor
