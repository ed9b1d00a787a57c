// Package show tells a person what the lab is doing: one line when a piece of work
// begins, one when it ends, with the time it took, and in between what is waited
// for. It writes whole lines only, because the builders of tools write to the same
// terminal.
//
//	work := progress.Begin("Kubernetes API")
//	...
//	work.End(err)
//
// Table prints rows in columns, for the results.
package show
