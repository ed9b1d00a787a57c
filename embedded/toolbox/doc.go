// Package toolbox builds the programs that Custody's tests, its demo and its
// code generation need (etcd, kube-apiserver, an S3 server, generators, a
// linter) from the nested modules under tools/, once, and says where they are.
//
//	box, err := toolbox.Open(os.Stderr)
//	path, err := box.Path(ctx, "versitygw")
//	kube, err := box.Kube(ctx) // etcd and kube-apiserver, or those of KUBEBUILDER_ASSETS
//
// # Where they are
//
// In CUSTODY_CACHE, or else custody in the user's cache folder, under
// tools/KEY/NAME. KEY is a hash of all that decides what comes out: the module's
// go.mod and go.sum, the program's own sources and build flags, the platform and
// the version of Go. The folder tools/ may be removed at any time when no build
// runs; what is needed is built again. Nothing removes old keys by itself.
//
// # What is promised
//
// A file under its final path is complete: it is built beside it, flushed to
// disk and moved there in one rename. Of several processes that want the same
// program one builds and the others wait for it, by a file lock that the kernel
// drops when its holder dies. A build that was killed leaves its share in Go's
// own build cache, so that the next one carries on rather than starts again.
//
// The first build of the Kubernetes servers takes minutes. "go test" stops a
// test binary after 10 minutes by default, so build before testing:
//
//	go run ./hack/tool -path kubebox versitygw
//
// Builds run with the GOFLAGS, GOPROXY and other settings of the user's
// environment, except CGO_ENABLED=0 and GOWORK=off.
package toolbox
