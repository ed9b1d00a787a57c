// Package campaign kills, freezes, cuts off and lies to Custody for minutes, and
// then counts what is left in the backends. It has tests only.
//
// Real are the Kubernetes API, the controllers (the shipped binary), the sidecars
// (the shipped code with failpoints in its doors), the S3 driver and its server.
// Beside the S3 driver there are driver doubles (package double), one for each way
// of recovery that a driver may offer.
//
//	go test ./test/campaign                      the short run
//	CUSTODY_SOAK=30m go test -timeout 0 ...      the long run
//	CUSTODY_SEED=17 go test ...                  the run of a seed that was printed
//
// A seed decides who does what to whom: the lives of claims, the faults, the
// intervals. When each meets the other is up to the machine, so a seed that failed
// may need a few runs to fail again; the logs of a failed run are kept, and the
// test says where.
// Beside the campaign there are scenarios that people have reported, each played on
// purpose: TestScenarios and TestFrozen name them. Of those about a resource
// without an owner two have no play here. A name that is shortened, so that two
// claims share a key (external-provisioner), can't come about: COSI's names hold
// whole UIDs. A key server that is down (ceph-csi) belongs to volumes.
package campaign
