// Package manager is what Custody's long-running programs (controller, sidecar,
// guard) have in common: the flags, the log, and a controller-runtime manager with
// leader election, metrics, /healthz and /readyz.
//
// A command does this:
//
//	options := manager.Defaults()
//	options.AddFlags(cmd.Flags())
//	...
//	log, err := options.Logger(os.Stderr)
//	manager.SetLogger(log)
//	config, err := options.Config()
//	mgr, err := manager.New(config, options, manager.Program{Lease: "custody-...", ...}, log)
//	// add controllers, then
//	err = mgr.Start(ctx)
//
// # What the manager's client promises
//
//   - Field manager "custody" on every write.
//   - A read from the cache waits until the cache has seen what this process wrote to
//     that object (for a list: to that kind). So a reconciler never acts on something
//     older than its own last write. mgr.GetCache() answers without that wait, for what
//     may be a little old. What other processes wrote may always be missing: whatever
//     safety rests on is read with mgr.GetAPIReader().
//   - No limit on its own side; the API server's priority and fairness does that job.
//   - It sets no deadlines: give every reconciliation or request one.
//
// Caches are filled before the lead is won, so a successor starts at once. Losing the
// lease ends Start with an error; the program must then exit, and nothing else.
package manager
