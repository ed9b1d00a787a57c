# Two commands to know: `make run` plays the main job and leaves nothing running, `make test` passes the tests.
# Both build all they need, the Kubernetes servers included; the first time that takes 10 to 15 minutes on two cores.
GO    ?= go
TOOL  := $(GO) run ./hack/tool
# The explorer is built without -race: it is one goroutine a worker over values, and five times slower with it.
PLAIN := ./explore/...
# The Ceph parts. The second tag is the release that go-ceph is built against.
CEPH_TAGS = $(shell test -e /usr/include/rbd/librbd.h && ceph-conf --version | awk '{print "ceph," $$5}')
RACED     = $(shell $(GO) list ./... | grep -v '/explore')
# A package may start servers of its own; two at a time is what two cores take.
P     ?= 2
# Further arguments of the command, as in `make run ARGS=--keep` or `make bench ARGS='--claims 200'`.
ARGS  ?=
SOAK  ?= 30m

# Without cgo everywhere but under -race, which needs it: what one target has compiled the others find compiled.
export CGO_ENABLED = 0

.PHONY: help run up test test-ceph test-krbd check lint soak bench bench-takeover build generate verify-generated clean bin/lab

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The tag leaves out gRPC's trace pages, and with them html/template, for whose sake the linker keeps every method of
# every type: a quarter of the program, 10 MB resident in each process (a test holds that it stays out).
build: ## the shipped binary, static, at bin/custody
	$(GO) build -tags grpcnotrace -o bin/custody ./cmd/custody

# Run as a file of its own and not by "go run", which doesn't hand a SIGTERM on.
bin/lab:
	@$(GO) build -o $@ ./cmd/lab

run: bin/lab ## the main job: claim buckets, use them, play the races, delete all, compare
	@exec bin/lab run $(ARGS)

up: bin/lab ## a Kubernetes API with controller, sidecar, driver and S3 server, until Ctrl-C
	@exec bin/lab up $(ARGS)

test: bin/lab ## all tests but those of the Ceph parts, with -race (the explorer without)
	@bin/lab tools
	$(GO) test -timeout 30m $(PLAIN)
	CGO_ENABLED=1 $(GO) test -race -p $(P) -timeout 40m $(ARGS) $(RACED)

# Debian's packages, as root, where they lack.
.PHONY: ceph
ceph:
	@$(GO) run ./hack/ceph

test-ceph: ceph ## the tests of the Ceph parts, on one-node clusters that they start
	CGO_ENABLED=1 $(GO) test -race -p 1 -timeout 40m -tags "$(CEPH_TAGS)" $(ARGS) ./ceph/... ./csi/... ./holds/... ./test/takeover/...

check: ## the quick inner loop: vet, lint, unit tests
	$(GO) vet ./...
	$(TOOL) golangci-lint run ./...
	$(GO) test -short ./...

lint: ## the linters that .ci/run holds
	$(TOOL) golangci-lint run ./...

soak: bin/lab ## the long campaigns, SOAK=30m each
	@bin/lab tools
	CGO_ENABLED=1 CUSTODY_SOAK=$(SOAK) $(GO) test -race -count=1 -timeout 12h -v ./test/campaign/...
	$(GO) run ./cmd/custody explore --budget $(SOAK)

bench: bin/lab ## measure claims against the API server's own ceiling; the last line is JSON
	@exec bin/lab bench $(ARGS)

# Needs root: machines are network namespaces, images are mapped through FUSE.
bench-takeover: ## measure take-overs of a volume in use on a real Ceph cluster; the last line is JSON
	@$(GO) run ./hack/ceph
	@CGO_ENABLED=1 $(GO) build -tags $(CEPH_TAGS) -o bin/bench-takeover ./test/takeover/bench
	@exec bin/bench-takeover $(ARGS)

generate: ## code and manifests from their sources
	$(GO) generate ./...

verify-generated: generate ## fails if generated files are not what their sources give
	git diff --exit-code

clean: ## what was built here; the tools in the user's cache stay
	rm -rf bin
