# make help says what there is. Every test target takes RUN=regexp and ends with "N passed, N failed, N skipped".
SHELL   := /bin/bash
TAGS    := netgo,osusergo,sqlite_omit_load_extension
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION) -linkmode external -extldflags -static
RUN     ?= .
TIME    ?= 30s
NAME    ?= .
GO      := go
ROOT    := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E env "PATH=$$PATH")
# Packages whose tests need neither root nor a network.
UNIT     = $$($(GO) list ./... | grep -v -e /test/net -e /test/attack -e /test/vm -e /test/chaos -e /test/bench -e /test/judges -e /test/kube -e /test/postgres -e /test/instances -e /test/ui$(if $(ONCE), | grep -vxF "$$($(GO) list $(WITHNET) $(WITHVM))"))
# Packages that test-net and test-vm run whole, with the tests that need root. The lanes of make test leave them out of test-unit (ONCE).
WITHNET := ./pxe/ra/... ./lab/simulate/... ./bmc/ipmi/... ./bmc/scan ./bmc/wol ./agent/host ./agent/inspect
WITHVM  := ./lab ./agent/... ./bmc/libvirt
# Packages with tests that need PostgreSQL. Those of test/net also need namespaces.
POSTGRES := ./test/postgres ./test/instances ./cmd/slipway/serve/keys ./cmd/slipway/serve/lookup ./inventory/sqlstore/... ./cmd/slipway/backup
TALLY   := build/tally
# The stages of make test, the longest first. Three lanes take the next one each: most of them wait more than they compute, so that two lanes
# leave processors idle, and a fixed list for each lane lets one end long before the other.
STAGES  := test-vm test-net test-kube test-unit test-postgres test-judges test-ui test-attack

# The same flags everywhere, so that SQLite is compiled once. No debug data: our links drop it, and it takes a quarter of the time
# of the compiler.
export CGO_ENABLED = 1
export GOFLAGS     = -trimpath -buildvcs=false -tags=$(TAGS) -gcflags=all=-dwarf=false
# SQLite syncs with fdatasync(2) where it is told that there is one: with fsync(2) each commit waits for the disk once more, for
# the time stamp of the log. Nobody reads its account of memory.
export CGO_CFLAGS  = -O2 -DHAVE_FDATASYNC=1 -DSQLITE_DEFAULT_MEMSTATUS=0
# make check vets all packages: go test need not do so once more. Without debug data some 200 test binaries are linked in half the time.
GOTEST = $(GO) test -vet=off -ldflags=-w

.PHONY: help build release ui lab check generate fmt test prepare packages stories stage test-unit test-postgres test-judges test-kube kube-binaries test-net test-attack test-vm test-ui test-long pictures bench fuzz deps race clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## bin/slipway, one static binary, and bin/slipway-agent, which goes into the agent image
	@tools/deps.sh install build
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/slipway ./cmd/slipway
	CGO_ENABLED=0 $(GO) build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/slipway-agent ./cmd/slipway-agent

release: ## all files of a release in build/release, VERSION=0.1.0: static programs for amd64 and arm64, kinds, API, checksums, SBOM
	@tools/release.sh notes '$(VERSION:v%=%)' >/dev/null
	@tools/deps.sh install build; tools/deps.sh install release
	@$(MAKE) --no-print-directory ui
	@tools/release.sh all '$(VERSION:v%=%)'

ui: ## the web UI, which make build puts into the binary (needs node and npm)
	@rm -f build/ui.checked
	@$(MAKE) --no-print-directory build/ui.checked
	cd ui && npm run build

# All of make ui but the last step, which changes what Go packages embed. It is not repeated while no file of the UI changes.
build/ui.checked: web/openapi.yaml $(shell find ui -name node_modules -prune -o -path ui/dist -prune -o -type f -print)
	cd ui && npm ci --no-audit --no-fund && npm run types && npm run check && npm test
	@mkdir -p build && touch $@

lab: build ## boot, install and wipe a virtual rack on libvirt; CHECK=1: check that all goes well, clean up, exit 0 or 1; INSTANCES=2: servers that share PostgreSQL
	@tools/deps.sh install lab
	$(if $(filter 2 3,$(INSTANCES)),@tools/deps.sh install lab-instances)
	$(ROOT) bin/slipway lab up $(if $(CHECK),--check) $(if $(INSTANCES),--instances '$(INSTANCES)')

# Checkers and the linker hold much in memory, and most tests little. Fewer garbage collections save time: staticcheck, which holds most, needs
# 1.1 GB with 400.
check: export GOGC = 400
test-unit test-judges: export GOGC = 200
check: ## format, vet, staticcheck, known vulnerabilities, plain words, floors of the house
	@test -z "$$(cd tools && $(GO) tool gofumpt -l $$(git -C .. ls-files '*.go' | sed 's|^|../|') | tee /dev/stderr)" || { echo 'run: make fmt'; exit 1; }
	$(GO) vet ./...
	@mkdir -p build && cd tools && $(GO) build -o ../build/ honnef.co/go/tools/cmd/staticcheck golang.org/x/vuln/cmd/govulncheck && cd .. && build/staticcheck -tags '$(TAGS)' ./...
	@tools/vulncheck.sh
	@tools/generate.sh check
	@cd tools && $(GO) build -o ../build/ ./house && cd .. && build/house -check docs/architecture.md && build/house -circles
	$(GOTEST) ./test/arch ./test/plain
	cd tools && $(GO) test ./...

house: ## packages with their sizes, and the drawing of the floors in docs/architecture.md
	@mkdir -p build && cd tools && $(GO) build -o ../build/ ./house && cd .. && build/house && build/house -write docs/architecture.md

generate: ## what controller-gen makes of the custom resources: deep copies, CRDs, roles
	@tools/generate.sh

fmt: ## format all Go files
	cd tools && $(GO) tool gofumpt -w $$(git -C .. ls-files '*.go' | sed 's|^|../|')

test: build/testsum ## everything: test-unit, test-postgres, test-judges, test-kube, test-net, test-attack, test-ui, test-vm
	@rm -f $(TALLY); mkdir -p build
	@$(MAKE) --no-print-directory packages
	@tools/parts.sh build oidc-provider || echo 'the provider for single sign-on was not built; its tests are skipped'
	@$(MAKE) --no-print-directory stories
	@printf '%s\n' $(STAGES) | xargs -P 3 -I '{}' $(MAKE) --no-print-directory stage STAGE='{}' || failed=1; \
	 echo "== all"; build/testsum -total -tally $(TALLY) && [ -z "$$failed" ]

# prepare does what test would do by and by. CI runs it beside make check, which needs none of it: one waits for the network and
# the disk while the other computes.
prepare: ## what test installs, the checks of the web UI, and other people's programs that test builds
	@$(MAKE) --no-print-directory build/ui.checked & ui=$$!; \
	 $(MAKE) --no-print-directory packages && tools/parts.sh build oidc-provider ignition ignition-validate capi-secrets && \
	 $(MAKE) --no-print-directory kube-binaries || failed=1; \
	 wait $$ui || failed=1; [ -z "$$failed" ]

packages:
	@for t in build test-postgres test-judges test-kube test-net test-ui test-vm; do tools/deps.sh install $$t; done

# stories builds the web UI and the binary that holds it; test does so before its stages, which compile what embeds it.
stories:
	@[ -d ui/node_modules ] || rm -f build/ui.checked
	@$(MAKE) --no-print-directory build/ui.checked && cd ui && npm run build || echo 'the web UI was not built, see above; its stories are skipped'
	@$(MAKE) --no-print-directory build

# stage runs one of STAGES. What the stages say is mixed: each line begins with the name of its stage, and build/STAGE.log has that alone.
stage:
	@echo "== $(STAGE) began $$(date +%T), $$(df -h --output=avail . | tail -n 1 | tr -d ' ') free on the disk"
	@set -o pipefail; $(MAKE) --no-print-directory $(STAGE) STORIES=short ONCE=1 2>&1 | tee build/$(STAGE).log | sed -u 's/^/$(STAGE): /' || failed=1; \
	 echo "== $(STAGE) ended $$(date +%T)"; [ -z "$$failed" ]

build/testsum: tools/testsum/main.go
	@mkdir -p build && cd tools && $(GO) build -o ../$@ ./testsum

test-unit: build/testsum ## no root, no network, under a minute
	@tools/deps.sh install build
	@build/testsum -again -tally $(TALLY) $(GOTEST) -json -run '$(RUN)' $(UNIT)

# A test that needs PostgreSQL has PostgreSQL or Postgres in its name; test/postgres refuses others.
test-postgres: build/testsum ## the inventory in PostgreSQL, which the tests start (root)
	@tools/deps.sh install build; tools/deps.sh install test-postgres
	@SLIPWAY_POSTGRES=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -timeout 15m -run '$(if $(filter .,$(RUN)),Postgre,$(RUN))' $(POSTGRES)
	@tools/deps.sh install test-net
	@$(ROOT) env SLIPWAY_NET=1 SLIPWAY_POSTGRES=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -timeout 15m -run '$(if $(filter .,$(RUN)),Postgre,$(RUN))' -p 2 ./test/net ./test/attack

test-judges: build/testsum ## other people's programs judge what is rendered (root)
	@tools/deps.sh install build; tools/deps.sh install test-judges; tools/parts.sh build kubeadm ignition ignition-validate capi-secrets
	@$(ROOT) env SLIPWAY_JUDGES=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -p 2 -timeout 30m -run '$(RUN)' ./test/judges/installer ./test/judges/... # the longest first

test-kube: build/testsum ## custom resources, nodes and tokens against a real API server and stock Cluster API (root)
	@tools/deps.sh install build; tools/deps.sh install test-kube; $(MAKE) --no-print-directory kube-binaries
	@$(ROOT) env SLIPWAY_KUBE=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -p 2 -timeout 20m -run '$(RUN)' ./test/kube/...

kube-binaries: ## Kubernetes and Cluster API as the tests need them, built once from their Go modules into build/parts
	@tools/parts.sh build etcd kube-apiserver kube-controller-manager kubeadm kubectl capi-core capi-cabpk capi-kcp clusterctl capi-manifests cert-manager-crds capi-inmemory

test-net: build/testsum ## real clients in network namespaces (root)
	@tools/deps.sh install build; tools/deps.sh install test-net
	@$(ROOT) env SLIPWAY_NET=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -p 2 -timeout 25m -run '$(RUN)' ./test/net/... ./test/chaos/... $(WITHNET)

test-attack: build/testsum ## attacks on a running server in network namespaces (root)
	@tools/deps.sh install build; tools/deps.sh install test-attack
	@$(ROOT) env SLIPWAY_NET=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -timeout 10m -run '$(RUN)' ./test/attack

test-vm: build/testsum build ## real firmware boots on libvirt (root)
	@tools/deps.sh install build; tools/deps.sh install test-vm
	@tools/parts.sh tidy # the disks of the machines need room
	@$(ROOT) env SLIPWAY_VM=1 build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -p 1 -timeout 60m -run '$(RUN)' ./test/vm/... $(WITHVM)

test-ui: build/testsum ## stories of the web UI in Chromium against a real server (root; Node 20 and npm, else they are skipped)
	@tools/deps.sh install test-ui; $(if $(STORIES),,tools/deps.sh install lab;) tools/parts.sh build oidc-provider
	@$(if $(STORIES),,$(MAKE) --no-print-directory stories)
	@$(ROOT) env SLIPWAY_VM=1 SLIPWAY_UI=$(or $(STORIES),all) build/testsum -again -tally $(TALLY) $(GOTEST) -json -count=1 -p 1 -timeout 40m -run '$(RUN)' ./test/ui

LONG = build/testsum $(if $(filter .,$(RUN)),,-part) -tally $(TALLY)-long $(GOTEST) -json -count=1 -p 1
test-long: build/testsum build ## what takes long and is not in test: every disk by itself, the agent's RAM disk under each firmware, the boot menu, PXELINUX, arm64 boards, signed iPXE, HTTP Boot over IPv6, the lives of servers with IPMI and without a controller, a reinstallation, systems that get their configuration the other way, Cluster API, ten minutes without an API server, two builds of a release, a day of a rack, ten minutes of faults with three instances, histories of three servers, an update of three instances, PostgreSQL under Patroni, the walk-through to three appliances, PostgreSQL 14, 16, 17 and 18, 10,000 runs of simulated instances, 200 machines under a server that is killed, a machine that boots while its server is killed (root)
	@tools/deps.sh install build; tools/deps.sh install test-vm
	@rm -f $(TALLY)-long
	@$(ROOT) env SLIPWAY_VM=1 SLIPWAY_LONG=1 $(LONG) -timeout 90m -run '$(RUN)' ./test/vm/osimage ./cmd/slipway-agent ./images/agentimage
	@tools/deps.sh install release; SLIPWAY_LONG=1 $(LONG) -timeout 90m -run '$(RUN)' ./test/release
	@tools/deps.sh install test-patroni
	@$(ROOT) env SLIPWAY_NET=1 SLIPWAY_POSTGRES=1 SLIPWAY_LONG=1 $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),TestTenMinutesOfFaults|TestARollingUpdate,$(RUN))' ./test/chaos
	@SLIPWAY_POSTGRES=1 SLIPWAY_LONG=1 $(LONG) -timeout 10m -run '$(if $(filter .,$(RUN)),UnderPatroni,$(RUN))' ./inventory/sqlstore/postgres
	@tools/deps.sh install test-net
	@$(ROOT) env SLIPWAY_NET=1 SLIPWAY_LONG=1 $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),TestPostgreSQLOnThreeNodes,$(RUN))' ./test/nodes
	@tools/postgres.sh 14 16 17 18
	@for v in 14 16 17 18; do echo "== PostgreSQL $$v"; $(ROOT) env SLIPWAY_NET=1 SLIPWAY_POSTGRES=$$v $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),Postgre,$(RUN))' $(POSTGRES) ./test/net || exit 1; done
	@$(ROOT) env SLIPWAY_POSTGRES=1 SLIPWAY_LONG=1 $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),TestPostgresLongHistories,$(RUN))' ./test/instances
	@$(ROOT) env SLIPWAY_NET=1 SLIPWAY_POSTGRES=1 SLIPWAY_LONG=1 $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),TestPostgreSQL(FailsOver|LongHistories|ALateMachine|ADeletedInstance|LogsOfMachines|AFullDisk|ASlowDatabase|TwoVersions),$(RUN))' ./test/net
	@$(ROOT) env SLIPWAY_NET=1 SLIPWAY_POSTGRES=1 SLIPWAY_LONG=1 $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),TestPostgreSQLALeaderThatWakesUp,$(RUN))' ./test/attack
	@SLIPWAY_LONG=1 $(LONG) -timeout 60m -run '$(if $(filter .,$(RUN)),TestOneInstanceAtATimeDoesAWork,$(RUN))' ./provision/duty
	@$(ROOT) env SLIPWAY_NET=1 SLIPWAY_LONG=1 $(LONG) -timeout 30m -run '$(if $(filter .,$(RUN)),TestADayOfARack|TestARackIsInstalled,$(RUN))' ./test/chaos
	@tools/deps.sh install lab-instances; tools/arm64.sh; tools/ipxe.sh
	@$(ROOT) env SLIPWAY_VM=1 SLIPWAY_LONG=1 $(LONG) -timeout 60m -run '$(if $(filter .,$(RUN)),TestUEFIOverIPv6|TestMenu|TestPXELINUX|TestARM64UEFI|TestUBoot|TestSignedIPXE|TestFirmwareStartsTheShims|TestPostgreSQL|TestTheWholeLifeOfAServer/group/life-(bios|ipmi|hand)|TestAMachineGoesBackToItsOwnDisk/disk-uefi-exit|TestAMachineBecomesWhatItsProfileSays/group/(ci-initrd|ign-url),$(RUN))' ./test/vm
	@if [ '$(RUN)' = . ] || ! build/testsum -total -tally $(TALLY)-long >/dev/null 2>&1; then \
	 tools/parts.sh build capi-validators && $(MAKE) --no-print-directory kube-binaries && \
	 $(ROOT) env SLIPWAY_KUBE=1 SLIPWAY_LONG=1 $(LONG) -timeout 60m -run '$(RUN)' ./test/kube/capi ./test/kube/walkthrough ./test/kube/metal; fi
	@build/testsum -total -tally $(TALLY)-long

pictures: ui build ## takes the pictures of docs/pictures anew (root, Chromium, pngquant)
	@tools/deps.sh install pictures
	@$(ROOT) node test/ui/pictures.mjs

race: ## unit tests under the race detector
	$(GO) test -race -run '$(RUN)' $(UNIT)

bench: build ## figures beside real peers, NAME=regexp chooses (root)
	@tools/deps.sh install bench; tools/parts.sh build butane
	@$(ROOT) env SLIPWAY_BENCH='$(NAME)' $(GO) test -count=1 -timeout 2h -v -run '^TestBench$$' ./test/bench | grep --line-buffered -v -e '^=== ' -e '^---' -e '^ok' -e '^PASS'

fuzz: ## every fuzz test for TIME each
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep ^Fuzz || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(TIME) $$p; done; done

deps: ## the Debian packages that each target needs
	@tools/deps.sh list

clean: ## what was built
	rm -rf bin build
