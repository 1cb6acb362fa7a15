# make test    everything, and installs what that needs: some 20 minutes on 2 cores
# make check   the quick subset for an inner loop: under a minute
# make soak    long: every fuzzer for FUZZTIME, faults in many rounds, a million simulated schedules, the race detector in ROUNDS
# make bench   the figures of the README
# make pictures   the pictures of the documents
# make build   bin/firstcome, without cgo

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: test check soak bench pictures build install tools lint vet style unit e2e outside steps race demo clean

TOOLS       := .tools/bin
STATICCHECK := $(TOOLS)/staticcheck-v0.8.0
GOFUMPT     := $(TOOLS)/gofumpt-v0.12.0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

FUZZTIME ?= 5m
# A package's tests may take: test/e2e, the longest, takes some 12 minutes here, and a slow machine
# that is busy takes longer than the 10 that go test has by default.
TIMEOUT  ?= 40m
ROUNDS   ?= 20
# How much of a soak it is: 1, all of it; 0.1, a tenth of the way from make test to that.
SOAK     ?= 1

test: install vet unit race demo

# What needs no compiler but Go's own, no network once it ran, and no service.
check: tools
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	go vet ./...
	.ci/gotest -tags check . ./client/... ./internal/auth/... ./internal/audit/... ./internal/flow/...

install: tools
	.ci/install

tools: $(STATICCHECK) $(GOFUMPT)

$(STATICCHECK):
	GOBIN="$(CURDIR)/$(TOOLS)" go install honnef.co/go/tools/cmd/staticcheck@v0.8.0
	mv $(TOOLS)/staticcheck $@

$(GOFUMPT):
	GOBIN="$(CURDIR)/$(TOOLS)" go install mvdan.cc/gofumpt@v0.12.0
	mv $(TOOLS)/gofumpt $@

lint: vet style

# Without cgo, so that all rooms and their tests are known to build so. What the compiler makes for it, it makes for unit.
vet:
	CGO_ENABLED=0 go vet ./...

style: tools
	CGO_ENABLED=0 $(STATICCHECK) ./...
	test -z "$$($(GOFUMPT) -l . | tee /dev/stderr)"

build:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/firstcome ./cmd/firstcome

# Each test runs once: without the detector and without cgo those that work through other processes, which the
# detector does not see into, and the simulation, in which one thing happens after the other; all others under it, in race. Tests mostly wait, so more of them run at once than there
# are cores. Lint vets.
ONCE    := -vet=off -shuffle=on -count=1 -parallel 4 -timeout $(TIMEOUT)
OUTSIDE := ./test/e2e ./test/mutants ./test/bench ./test/sim ./test/pictures

# So do long tests of other packages that work through other processes, a browser among them, or in which one goroutine
# asks one thing after the other. No other package may have tests of these names. What does not have such a name any
# more runs in race again.
STEPS    := ^Test(Scripts|ScriptsOnRedis|TheAuditFindsWhateverTheLedgerSaysTwice|TheSQLiteGateConforms|TheSQLiteGatesLinesConform|F16F27F62TheServersGatesConform|TheServersGatesLinesConform|F56AMigrationThatIsCutAtAnyPointGoesOn|APlanMadeForAFewCouponsIsNotKeptForMany|ACodeIsLookedForInParts|F16TheRedisGateConforms|TheRedisGatesLinesConform|TheLinesOfAClusterConform|InTheBrowser.*|TheDropPageSaysWhatIsTrue|WhoPressesTwiceAsksOnceAndRetriesWhenTheServerSays|AnErrorIsNeverARefusal|TheSQLiteGatesLinesOfFeedsConform|TheServersGatesLinesOfFeedsConform|NumberFourOfThreeIsNeitherAnsweredNorRecorded|F55TheLockIsOfTheFileByWhateverNameItIsOpened|F57AColumnThatWouldMergeUsersIsRefused)$$
STEPS_OF := ./internal/console ./cmd/firstcome ./internal/ledger ./examples/storefront ./internal/redis

# All at once: so the processors have work while one of the four compiles or waits. The end-to-end tests take the longest, so those of a Redis
# that lies, and those that run under the race detector, are with the steps.
unit:
	$(MAKE) --no-print-directory -j 4 e2e outside steps style

LIES_E2E := ^TestF0

e2e:
	CGO_ENABLED=0 .ci/gotest $(ONCE) -skip '$(LIES_E2E)|$(RACE_E2E)' ./test/e2e

outside:
	CGO_ENABLED=0 .ci/gotest $(ONCE) -p 1 $(filter-out ./test/e2e,$(OUTSIDE))

steps:
	CGO_ENABLED=0 .ci/gotest $(ONCE) -p 2 -run '$(STEPS)' $(STEPS_OF)
	CGO_ENABLED=0 .ci/gotest $(ONCE) -run '$(LIES_E2E)' ./test/e2e
	.ci/gotest $(RACE) $(ONCE) -run '$(RACE_E2E)' ./test/e2e

# The race detector watches all but SQLite, which is C that was translated into Go: it is no code of ours, and it is
# slower with the detector (of two pairs of tests one took 2.9 times as long, the other 1.3 times).
RACE := -race -gcflags=modernc.org/...=-race=false

# Unit, property and conformance tests, with the seeds of the fuzzers.
#
# The end-to-end tests that run under the detector build a server that has it, too, and what it says fails them. Here
# it is those in which every room works at once: fleets that issue while operators change the terms, scripts are
# forgotten, and processes are frozen and killed. All of them are left to soak.
RACE_E2E := ^Test(F10|F20|F21F41|F23|F61)

race:
	.ci/gotest $(RACE) $(ONCE) -p 3 -skip '$(STEPS)' $$(go list ./cmd/firstcome ./internal/ledger ./... | grep -vxF "$$(go list $(OUTSIDE))")

# As the README has it, but for cgo: so nothing is compiled again.
demo:
	CGO_ENABLED=0 go run ./cmd/firstcome demo

# The simulation runs without the race detector: in it one thing happens after the other. Under both, Go's runtime crashed once, in a timer of
# testing/synctest.
soak: install build
	.ci/install callers
	.ci/callers
	node .ci/axes.mjs
	.ci/contract
	.ci/gotest $(RACE) -shuffle=on -count=$(ROUNDS) -timeout 12h $$(go list ./... | grep -vxF "$$(go list ./test/sim)")
	.ci/fuzz $(FUZZTIME)
	SOAK=$(SOAK) .ci/gotest -shuffle=on -count=1 -timeout 12h ./test/...
	SOAK=$(SOAK) .ci/gotest -count=1 -timeout 1h -run '^TestInTheBrowser' -artifacts -outputdir "$$(mktemp -d)" ./internal/console
	CGO_ENABLED=0 .ci/gotest -shuffle=on -count=1 -timeout 12h ./...

# The pictures of the documents, of a drop of some 40 s; and how long the first paint takes.
pictures:
	mkdir -p docs/pictures
	PICTURES="$(CURDIR)/docs/pictures" go test ./test/pictures -v -count=1

bench:
	go run ./test/bench

clean:
	rm -rf bin .tools
