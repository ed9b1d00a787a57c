// Package job plays Custody's main job on real servers, from the claims to the
// comparison at the end, with the races that make others leave buckets behind.
//
// What happens is arranged from outside: the shipped binary runs as it is. Two
// things stand in its way on purpose.
//
//   - Between sidecar and driver a [gate], which holds back the answer of a create
//     for as long as it is told to. So a claim is deleted, or the sidecar killed,
//     while the create call runs, each time and not once in a thousand.
//   - Between sidecar and API server the proxy of package test/proxy, which lets the
//     server do a write and loses its answer, or loses the write.
//
// The comparison is the oracle's (package test/oracle): it reads the S3 server's
// disk and every record.
package job
