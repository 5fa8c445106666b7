SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
TEST_TIMEOUT ?= 25m
TEST_FLAGS ?=
# The race detector needs a C compiler; Go turns cgo off where it finds none.
RACE ?= $(if $(filter 0,$(shell $(GO) env CGO_ENABLED)),,-race)
# A program with the race detector waits a second at its end, for goroutines to be seen that race still. Each
# package has one, and each node that tests start.
export GORACE ?= atexit_sleep_ms=100

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: help-all
help-all: ## show all targets
	@grep -hE '^[a-z][a-z-]*:.*#[#+] ' $(MAKEFILE_LIST) | sed -E 's/:.*#[#+] /\t/' | expand -t 20

.PHONY: build
build: ## build the binary ./ropeline
	$(shipped) build -trimpath -tags $(SHIPPED_TAGS) -o ropeline ./cmd/ropeline

PREFIX ?= /usr/local
.PHONY: install
install: ## put what was built into PREFIX (/usr/local), as root: sudo make install
	@[ -x ropeline ] || { echo "There is no ./ropeline to install; run make build first." >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 ropeline $(DESTDIR)$(PREFIX)/bin/ropeline

.PHONY: demo
demo: build ## three nodes, a small shop and a crowd; open the printed address in a browser
	./ropeline demo $(DEMO_FLAGS)

VERSION ?=
.PHONY: release
release: ## archives, Debian and RPM packages and the chart of VERSION (1.2.3), and their sums, into dist/ (minutes; wants GNU tar)
	deploy/release.sh '$(VERSION)'

# How programs are built, and those that tests run as processes of their own (bench/rig). Tests without the race
# detector are built likewise, so that packages are compiled once for both.
shipped := CGO_ENABLED=0 $(GO)
SHIPPED_TAGS := grpcnotrace

# These run in one goroutine (TestAloneStartsNoGoroutine): rules and ledgers, which may not import sync
# (make lint), tables, readers, and simulations. The race detector has nothing to find there, and takes
# five times as long. That simulations which run at once share nothing is looked at with it all the same,
# in cmd/ropeline-bench.
ALONE := $(addprefix ./,crdt node/bootstrap node/catalog node/history node/limit node/nearest node/packed node/replica node/room node/settings node/ticket \
  bench/accesslog bench/accuracy bench/explore/... bench/faults/check bench/faults/record bench/footprint bench/limits bench/order bench/schedules \
  bench/scaling bench/sim bench/sim/input bench/story bench/sweep bench/virtual httpfront/forwarding httpfront/gate/visitor httpfront/http1 \
  httpfront/integrations/middleware/internal/site httpfront/operator/manage)
# These are tested without it, and with it but for tests of one goroutine (TestOneGoroutineStartsNone).
MIXED := ./node ./cmd/ropeline-bench ./cmd/ropeline-bench/agreement ./httpfront/operator/admin
# What measures, and the tools of operators: make test-all runs them with the race detector, make test without it.
AROUND := $(addprefix ./,bench/differential bench/floods bench/measurement bench/rate bench/suite bench/tiers cmd/ropeline/operate)
# Those that take longest begin first, so that the last one is not alone with a machine of many cores.
LONGEST := ./transport ./cmd/ropeline ./httpfront ./httpfront/server ./httpfront/operator/dashboard ./bench/faults $(if $(ALL),./bench/conformance ./bench/differential) ./node
# Nearly all of bench/conformance is left to make test-all, and building it takes as long as all of many packages.
LATER := $(if $(ALL),,./bench/conformance $(AROUND))
CONCURRENT = $(LONGEST) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(ALONE) $(LATER))")
# In short they wait more than they work: half as many again run at once as there are cores.
AT_ONCE = $(if $(ALL),,-p $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))
# The race detector allocates by itself, so tests that count allocations are left out with it, and run by
# themselves; that takes a build of all of httpfront, so make test leaves it to make test-all.
# TestNoTestEscapes holds that these are all of them. Tests of one goroutine, and compilers, take a sixth less time
# when garbage is collected less often. Vet is a part of make lint, and would go through each
# package here twice.
define run_tests
	@[ -n "$(RACE)" ] || echo "No C compiler here: testing without the race detector." >&2
	GOGC=400 $(shipped) test -tags $(SHIPPED_TAGS) -vet=off $(1) -timeout $(TEST_TIMEOUT) $(if $(RACE),$(MIXED)) $(ALONE) $(if $(ALL),,$(AROUND))
	$(GO) test -toolexec "env GOGC=400" $(AT_ONCE) -vet=off $(1) $(RACE) -timeout $(TEST_TIMEOUT) $(CONCURRENT)
	$(if $(and $(RACE),$(ALL)),$(shipped) test -tags $(SHIPPED_TAGS) -vet=off $(1) -run Alloc -timeout $(TEST_TIMEOUT) $$(find . -name '*alloc_test.go' -exec dirname {} + | sort -u | grep -vxF "$$(printf '%s\n' $(ALONE) $(MIXED))"))
endef

.PHONY: test-binaries
test-binaries: # what tests run as processes of their own, the same files as long as nothing changes, so that results stay cached
	@$(shipped) run -tags $(SHIPPED_TAGS) ./bench/rig/built ropeline ropeline,faults $(if $(ALL),ropeline-bench) >/dev/null

.PHONY: test
test: test-binaries ## what a change waits for: all that finds faults in seconds, with a quarter of the seeds (minutes; seconds where nothing has changed)
	$(call run_tests,$(if $(ALL),-shuffle=on,-short) $(TEST_FLAGS))

.PHONY: test-all
test-all: ## all tests, in random order: every seed, browser, proxy and process
	$(MAKE) test ALL=yes

SINCE ?= HEAD~1
test-names = git grep -hoE '^func (Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*' $(1) -- '*_test.go' | cut -d' ' -f2 | sort -u
.PHONY: test-names
test-names: #+ the tests that were there at the commit SINCE and are not now, which whoever took them out gives the reasons for
	@comm -23 <($(call test-names,$(SINCE))) <($(call test-names,))

.PHONY: test-browser
test-browser: #+ the waiting page, the dashboard and frames in a real browser (wants chromium)
	$(GO) test -count=1 -run '^TestBrowser' ./httpfront ./httpfront/operator/dashboard ./cmd/ropeline

.PHONY: test-robustness
test-robustness: ropeline-bench #+ real processes that are killed, stopped, cut apart, and lose their disks, in short, and ten minutes of chaos; make measure NAME=faults and make chaos are the whole
	$(GO) test -count=1 ./bench/faults/...
	$(GO) test -count=1 -run 'Bootstrap|Crash|GoneForGood|Replay|Kill' ./cmd/ropeline ./transport ./node/durable
	./ropeline-bench run chaos --set for=10m,seed=$(SEED)

.PHONY: test-conformance
test-conformance: #+ each front end that is installed, and the Traefik that TRAEFIK names: what visitors see, and what reaches the site
	$(GO) test -count=1 ./bench/conformance

DIFFERENTIAL ?= 10m
DIFFERENTIAL_SEED ?= 1
.PHONY: differential
differential: #+ generated requests through nodes, and proxies that ask them, to each kind of server that is installed, for DIFFERENTIAL (10m) in all, from DIFFERENTIAL_SEED (1): what a site reads otherwise than the node
	$(GO) test -count=1 -timeout 0 -v -parallel 16 -run '^TestServersReadWhatTheNodeReads$$' ./bench/differential -differential-for $(DIFFERENTIAL) -differential-seed $(DIFFERENTIAL_SEED) | grep -v '^==='

.PHONY: differential-deps
differential-deps: #+ installs the servers and proxies of make differential: Debian's packages, as root
	apt-get install -y --no-install-recommends nginx haproxy caddy apache2 nodejs node-express python3-flask python3-django gunicorn php-cli ruby ruby-webrick

# golangci-lint is no dependency of ours: PATH has this version, or it is built once (about 3 minutes of one core).
GOLANGCI_LINT := v2.15.0
golangci-lint = $(if $(filter $(GOLANGCI_LINT:v%=%),$(shell golangci-lint version --short 2>/dev/null)),golangci-lint,artifacts/golangci-lint-$(GOLANGCI_LINT))
artifacts/golangci-lint-$(GOLANGCI_LINT):
	CGO_ENABLED=0 GOBIN=$(CURDIR)/artifacts $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)
	mv artifacts/golangci-lint $@

.SECONDEXPANSION:
.PHONY: lint
lint: $$(filter artifacts/%,$$(golangci-lint)) ## all that .golangci.yml asks for (format, vet, staticcheck, which package imports which), what go fix would change, and go.mod
	$(golangci-lint) fmt --diff . # of all modules
	$(golangci-lint) run ./...
	cd deploy/signals && $(GO) vet ./...
	$(GO) fix -stringsbuilder=false -diff ./... # strings.Builder is no gain where it is proposed
	$(GO) mod tidy -diff

.PHONY: fmt
fmt: $$(filter artifacts/%,$$(golangci-lint)) ## format as make lint wants it
	$(golangci-lint) fmt ./...

.PHONY: lint-quick
lint-quick: #+ what of make lint takes seconds: CI runs this with the tests, and make lint beside them
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) mod tidy -diff

.PHONY: signals-check
signals-check: #+ alert rules and dashboard, by Prometheus' own parser and promtool, which Debian's package prometheus has (half a minute)
	cd deploy/signals && GOGC=400 $(shipped) test -count=1 -vet=off -timeout $(TEST_TIMEOUT) ./...

.PHONY: sdk-check
sdk-check: #+ the published SDKs against the admin API: in memory, and of three nodes in turn; ROPELINE_SDK_URLS and _TOKEN name others (about a minute; that of npm takes node and npm)
	if command -v npm >/dev/null; then cd httpfront/operator/admin/sdk/npm && npm ci --ignore-scripts --no-audit --no-fund; fi
	cd httpfront/operator/admin/sdk && $(shipped) vet -tags $(SHIPPED_TAGS) ./... && $(shipped) test -tags $(SHIPPED_TAGS) -count=1 -vet=off ./...
	$(shipped) test -tags $(SHIPPED_TAGS) -count=1 -vet=off -run TestPublishedSDKsAgainstAMesh ./cmd/ropeline -all-sdks

.PHONY: deploy-check
deploy-check: #+ builds a release and installs it (best as root), and holds what deploy/ has against what reads it (a minute; about 4 the first time)
	cd deploy/check && $(GO) vet ./... && $(GO) test -count=1 -vet=off -timeout $(TEST_TIMEOUT) ./...

# Caddy is built as it is published, and is no dependency of ours.
CADDY ?= artifacts/caddy
artifacts/caddy:
	GOBIN=$(CURDIR)/artifacts $(GO) install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9

.PHONY: ropeline-bench
ropeline-bench: ## build the program of the measurements, ./ropeline-bench
	$(shipped) build -trimpath -o ropeline-bench ./cmd/ropeline-bench

NAME ?=
.PHONY: measure
measure: build ropeline-bench #+ makes the measurement NAME, and writes its table into docs (./ropeline-bench list has the names)
	./ropeline-bench run $(NAME) --docs docs --caddy $(CADDY)

.PHONY: bench
bench: build ropeline-bench #+ ropeline beside what else a site could use and docs/benchmarks.md (Linux, about 25 minutes; make bench-deps brings what is missing)
	./ropeline-bench run proxy waiting central tail --docs docs --caddy $(CADDY)

# The benchmarks install nothing by themselves, and report what is missing.
.PHONY: bench-deps
bench-deps: $(CADDY) #+ installs what the benchmarks hold ropeline beside: Debian's packages, as root, and Caddy
	apt-get install -y --no-install-recommends nginx haproxy redis-server libnginx-mod-http-lua util-linux

SWEEPS ?= 10000
.PHONY: sweep
sweep: ropeline-bench #+ each policy in SWEEPS schedules (10000) of a crowd, cuts and their ends at random moments: the worst in docs/policies.md
	./ropeline-bench run sweep --set n=$(SWEEPS) --docs docs

SOAK ?= 60m
SEED ?= 1
.PHONY: soak
soak: ropeline-bench #+ all faults mixed for SOAK (60m), with ten million tickets an hour
	./ropeline-bench run soak --set for=$(SOAK),seed=$(SEED) --docs docs

CHAOS ?= 60m
.PHONY: chaos
chaos: ropeline-bench #+ what goes wrong around four nodes, mixed for CHAOS (60m): descriptors, logs, stores, disks, clocks, paths
	./ropeline-bench run chaos --set for=$(CHAOS),seed=$(SEED) --docs docs

FLOODS ?= 5m
.PHONY: floods
floods: build ropeline-bench #+ each kind of load without a token at its bound, held for FLOODS (5m): memory by its budget, and what a visitor inside notices (about two hours; all of max-connections takes a hard limit of 65536 open files)
	./ropeline-bench run floods --set for=$(FLOODS) --docs docs

.PHONY: microbench
microbench: #+ every benchmark of a function
	$(GO) test -run '^$$' -skip 'Spread|Wire|EscrowRate|Views' -bench . ./...

# Pebble is an authority for tests, and no dependency of ours.
PEBBLE := v2.10.1
artifacts/pebble artifacts/pebble-challtestsrv:
	GOBIN=$(CURDIR)/artifacts $(GO) install github.com/letsencrypt/pebble/v2/cmd/$(@F)@$(PEBBLE)

.PHONY: acme
acme: artifacts/pebble artifacts/pebble-challtestsrv #+ certificates from a real authority, by each way of proof
	$(GO) test -count=1 -v -run '^TestACME$$' ./cmd/ropeline

CHANGES ?= 1000
.PHONY: changes
changes: #+ CHANGES changes (1000, about 20 minutes) at three processes, one of which is killed and loses its disk again and again: what was answered stays
	$(GO) test -count=1 -timeout 0 -v -run '^TestAnAnswerIsOnASecondDisk$$' ./cmd/ropeline -changes $(CHANGES)

MESHES ?= 1000000
.PHONY: meshes
meshes: #+ MESHES random small meshes (1000000, about 10 minutes), without the race detector
	$(GO) test -count=1 -timeout 0 -v -run '^TestRandomMeshes$$' ./node/room -mesh-runs $(MESHES)

SCHEDULES ?= 100000
.PHONY: schedules
schedules: ropeline-bench ## SCHEDULES random schedules of trouble, in all of which the limit must hold (100000)
	./ropeline-bench run schedules --set n=$(SCHEDULES) --docs docs

SEQUENCES ?= 100000
.PHONY: agreement
agreement: ropeline-bench #+ SEQUENCES random sequences of operators' acts and trouble (100000, about an hour), after each of which all nodes must agree on what was answered
	GOGC=400 ./ropeline-bench agreement -n $(SEQUENCES)

.PHONY: stories
stories: ropeline-bench #+ each story of who mints next, 1,000 times, in all of which the limit must hold (about 10 minutes)
	./ropeline-bench run stories --docs docs

EXPLORE ?= 10m
.PHONY: explore
explore: ropeline-bench ## all that can happen to ledgers of two and three nodes and while a mesh comes to be, and whole nodes by replay for EXPLORE (10m; about 40 minutes in all)
	./ropeline-bench run explore-ledgers explore-bootstrap explore-nodes --set for=$(EXPLORE) --docs docs

.PHONY: knock-out
knock-out: ropeline-bench #+ leave out each rule about rights in turn (about 20 minutes), and the tests that notice what schedules do not
	./ropeline-bench run knock-out --docs docs
	$(GO) test -count=1 -run '^TestRules' ./node/ticket

FUZZTIME ?= 10m
FUZZ ?= ./...
.PHONY: fuzz
fuzz: ## each fuzz target of FUZZ (./...; those of the front: ./httpfront/...) for FUZZTIME (10m)
	@set -e; for pkg in $$($(GO) list $(FUZZ)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

.PHONY: screenshots
screenshots: #+ what a real browser sees, of the waiting page and of the dashboard, into artifacts/
	mkdir -p artifacts
	$(GO) test -count=1 -run '^TestBrowser' -artifacts -outputdir $(CURDIR)/artifacts -p 1 ./cmd/ropeline ./httpfront ./httpfront/operator/dashboard
	@find artifacts -name '*.png'
