# make check   the inner loop: no server, no network, under a minute
# make test    every promise and every fault once, on real servers, and nothing by chance: about ten minutes on 2 cores
# make soak    chance: random kills, every planted bug, a million schedules, fuzzing; hours. SOAK=0.1 is a tenth of it
# make bench   the figures of docs/benchmarks.md
# make pictures   the pictures of the documents
# make build   bin/firstcome, without cgo

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: check test soak bench pictures build install tools lint demo clean

TOOLS       := .tools/bin
STATICCHECK := $(TOOLS)/staticcheck-v0.8.0
GOFUMPT     := $(TOOLS)/gofumpt-v0.12.0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# Without the path of the checkout, so that a test that builds a copy of it finds every package compiled.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

# How much of a soak: 1 is all of it, 0.1 a tenth.
SOAK     ?= 1
# How long each fuzzer runs in a soak: five minutes in a whole one.
FUZZTIME ?= $(shell awk 'BEGIN { print int(300 * $(SOAK)) + 1 }')s

# test/run says which tests each tier has. CONTRIBUTING.md says which tier a new test belongs to.
check:
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	CGO_ENABLED=0 go vet -tags check ./...
	CGO_ENABLED=0 go run ./test/run check

# Installing waits for the network while lint compiles.
test:
	$(MAKE) --no-print-directory -j2 install lint
	$(MAKE) --no-print-directory demo
	CGO_ENABLED=0 go run ./test/run test

soak: install build
	.ci/install callers
	.ci/callers
	.ci/clients
	node .ci/axes.mjs
	.ci/contract
	status=0; SOAK=$(SOAK) CGO_ENABLED=0 go run ./test/run soak || status=1; .ci/fuzz $(FUZZTIME) || status=1; exit $$status

install: tools
	.ci/install

tools: $(STATICCHECK) $(GOFUMPT)

$(STATICCHECK):
	GOBIN="$(CURDIR)/$(TOOLS)" go install honnef.co/go/tools/cmd/staticcheck@v0.8.0
	mv $(TOOLS)/staticcheck $@

$(GOFUMPT):
	GOBIN="$(CURDIR)/$(TOOLS)" go install mvdan.cc/gofumpt@v0.12.0
	mv $(TOOLS)/gofumpt $@

# Without cgo, as the binary is released: what the compiler makes here, the tests use. The tags show files that only
# another tier has.
lint: tools
	CGO_ENABLED=0 go vet ./...
	CGO_ENABLED=0 go vet -tags soak,faultpoints ./...
	CGO_ENABLED=0 $(STATICCHECK) -tags soak ./...
	test -z "$$($(GOFUMPT) -l . | tee /dev/stderr)"

build:
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/firstcome ./cmd/firstcome

# As README has it, but without cgo, so that nothing is compiled again.
demo:
	CGO_ENABLED=0 go run ./cmd/firstcome demo

# The pictures of the documents, of a drop of some 40 s; and how long the first paint takes.
pictures:
	mkdir -p docs/pictures
	PICTURES="$(CURDIR)/docs/pictures" go test -tags soak ./test/pictures -v -count=1

bench:
	go run ./test/bench

clean:
	rm -rf bin .tools
