#!/bin/sh
# Generates the Go code of the .proto files beside this script. The result is committed; run this after
# an edit of a .proto file. Needs protoc (Debian: protobuf-compiler) and Go; the two plugins are built at
# the versions named here into a temporary folder.
set -eu
cd "$(dirname "$0")/../.." # the root of the module: paths below are the names the files are registered under

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

PATH=$bin:$PATH protoc -I . \
	--go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative \
	cosi/wire/v1alpha2/cosi.proto \
	cosi/wire/recovery/recovery.proto
