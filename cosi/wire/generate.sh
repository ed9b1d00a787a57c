#!/bin/sh
# Generates the Go code of the .proto files beside this script, whose result is committed; "go generate" and
# "make generate" run it. Needs protoc (Debian: protobuf-compiler); the plugins come from tools/.
set -eu
cd "$(dirname "$0")/../.." # the root of the module: paths below are the names the files are registered under

command -v protoc >/dev/null || {
	echo "generate: no protoc; install it (Debian: apt-get install protobuf-compiler)" >&2
	exit 1
}
files="cosi/wire/v1alpha2/cosi cosi/wire/recovery/recovery"
# shellcheck disable=SC2046,SC2086 # words are meant
protoc -I . \
	$(go run ./hack/tool -path protoc-gen-go protoc-gen-go-grpc | sed 's/^/--plugin=/') \
	--go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative \
	$(for f in $files; do echo "$f.proto"; done)

# protoc writes its own version into the head of each file. The plugins, which are pinned, make the code; a
# different protoc must not look like a change.
for f in $files; do
	sed -i '/^\/\/ -* *\t*protoc  *v[0-9.]*$/d' "$f.pb.go" "${f}_grpc.pb.go"
done
