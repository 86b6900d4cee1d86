# make help lists the targets. "make demo" and "make test" need Go, make and gcc, nothing else; curl makes the first run faster.
SHELL := /usr/bin/env bash -o pipefail
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --match 'v*' --always --dirty 2>/dev/null || echo dev)
# Where make images pushes to, such as registry.example.com, and the tag: the one that chart and manifests of this checkout name.
REGISTRY ?=
TAG ?= $(shell sed -n 's/^appVersion: //p' charts/idalloc/Chart.yaml)
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.1
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
GREMLINS := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
HELM_COMMAND := helm.sh/helm/v4/cmd/helm@v4.3.1
HELM_DOCS := github.com/norwoodj/helm-docs/cmd/helm-docs@v1.14.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
LDFLAGS := -s -w -X main.version=$(VERSION)
# net/http carries a second copy of HTTP/2 for programs that do not bring their own; client-go does.
TAGS := nethttpomithttp2
# How long each fuzz target runs.
FUZZTIME ?= 30s
# How many minutes make simulate plays, from which seed on, and how many seeds make test-simulation plays from seed 1 on.
MINUTES ?= 600
FIRST ?= $$(date +%s)000
SEEDS ?= 150
# What make mutants breaks, names separated by commas.
MUTANTS ?= all
# What make mutation breaks: packages that decide, each with tests of its own.
PACKAGES ?= pkg/allocator/proposal pkg/allocator/duty pkg/allocator/assignment pkg/allocator/receipt pkg/allocator/pace pkg/placement \
  autoscaler/packing autoscaler/internal/decide controller/internal/decision
# Suites on the local control plane. Each starts one of its own. QUICK is what make test runs of them.
ENVTEST := ./test/envtest/...
QUICK := ./test/envtest/allocation ./test/envtest/policy ./test/envtest/inject
# Packages in which goroutines meet. Their tests run with the race detector, which makes a test program slow to build.
RACE := . ./pkg/allocator ./pkg/identity ./pkg/watch ./internal/agent ./internal/child ./internal/hook ./internal/publish ./internal/serve
# Modules of their own, so that ./... is the product and its tests. The autoscaler, and those of its tests that need nothing:
AUTOSCALER := autoscaler
AUTOSCALER_UNIT := ./cmd/... ./internal/... ./packing
# The controller, and those of its tests that need nothing:
CONTROLLER := controller
CONTROLLER_UNIT := ./cmd/... ./internal/... ./test/model
# Tools:
PARTITIONS := test/bench/partitions
POLICY := test/bench/policy
TOOLS := test/bench $(POLICY)
# Examples with the clients of their servers. CONSUMERS runs those that use an id alone.
EXAMPLES := examples/rabbitmq examples/franz examples/postgres examples/snowflake
CONSUMERS := test/consumers
# The images, and a registry for tests.
IMAGES := hack/images
# The other packages that need nothing but kubectl.
UNIT = $$(go list ./... | grep -v -e /test/envtest -e /test/helm -e /test/prometheus -e '/test/simulation$$' | grep -vxFf <(go list $(RACE)))

##@ Test: two rings, and the night

.PHONY: test
test: test-unit test-simulation test-envtest ## Tell in five minutes whether a change is right: tests beside the code, a short simulation, the quick specs.

.PHONY: ci
ci: ## Run what has to pass before a change lands, 25 minutes: make test, linters, documents, demo, examples, a real cluster.
	.ci/run

.PHONY: nightly
nightly: ## Run all the rest, some hours; hack/nightly PART... runs parts of it.
	hack/nightly

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make <target>\n"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: build
build: ## Build bin/idalloc and bin/kubectl-idalloc, static and stripped.
	CGO_ENABLED=0 go build -trimpath -tags "$(TAGS)" -ldflags "$(LDFLAGS)" -o bin/idalloc ./cmd/idalloc
	CGO_ENABLED=0 go build -trimpath -tags "$(TAGS)" -ldflags "$(LDFLAGS)" -o bin/kubectl-idalloc ./cmd/kubectl-idalloc
	cp cmd/kubectl-idalloc/kubectl_complete-idalloc bin/

.PHONY: build-autoscaler
build-autoscaler: ## Build bin/idalloc-autoscaler (see docs/autoscaling.md).
	CGO_ENABLED=0 go -C $(AUTOSCALER) build -trimpath -tags "$(TAGS)" -ldflags "$(LDFLAGS)" -o $(CURDIR)/bin/idalloc-autoscaler ./cmd/idalloc-autoscaler

.PHONY: build-controller
build-controller: ## Build bin/idalloc-controller (see config/controller).
	CGO_ENABLED=0 go -C $(CONTROLLER) build -trimpath -tags "$(TAGS)" -ldflags "$(LDFLAGS)" -o $(CURDIR)/bin/idalloc-controller ./cmd/idalloc-controller

.PHONY: demo
demo: ## Watch three pods get their ids on a local control plane; no cluster needed.
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go run ./hack/demo

.PHONY: cluster
cluster: ## Keep a local control plane with the controller, whose pods are processes, until Ctrl-C; for the tutorial.
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go run ./hack/demo -stay

.PHONY: reference
reference: ## Make docs/reference.md and docs/messages.md from the code.
	go run ./hack/reference

.PHONY: chart
chart: ## Make the chart's copies of config, and its README from values.yaml.
	hack/chart

.PHONY: images
images: ## Build the images of all programs and examples, without docker, and push them to REGISTRY. Without it, bin/images.tar has them for docker load.
	rm -rf bin/images bin/images.tar
	go -C $(IMAGES) run . -version $(VERSION) -tag $(TAG) $(if $(REGISTRY),-push $(REGISTRY),-platforms linux/$$(go env GOARCH) -out $(CURDIR)/bin/images)
	$(if $(REGISTRY),,tar -C bin/images -cf bin/images.tar .)

.PHONY: release
release: ## Make in dist what a release of this commit has, images and chart among it, and publish nothing.
	hack/release

.PHONY: publish
publish: ## Publish the release of the tag of this commit: a draft, images and chart, with signatures (see .github/workflows/release.yaml).
	hack/release publish

##@ Parts of the tests

# make lint vets, so that each test need not.
.PHONY: test-unit
test-unit: ## Run the unit and property tests and the seeds of the fuzz targets; with the race detector where goroutines meet.
	assets=$$(hack/controlplane/build); PATH="$$assets:$$PATH" go test -vet=off -timeout 10m $(UNIT)
	go test -vet=off -race -timeout 10m $(RACE)
	go -C $(AUTOSCALER) test -vet=off -race -timeout 10m $(AUTOSCALER_UNIT)
	go -C $(CONTROLLER) test -vet=off -timeout 10m $(CONTROLLER_UNIT)

.PHONY: proof
proof: ## Prove the protocol for any number of pods, two minutes. Z3 and python3 must be installed (apt-get install z3 python3).
	python3 -B test/proof/prove.py

.PHONY: test-race
test-race: ## Run the unit tests, and 25 simulated histories, all with the race detector.
	assets=$$(hack/controlplane/build); PATH="$$assets:$$PATH" go test -race -timeout 20m $(UNIT) $(RACE) ./test/simulation
	go -C $(AUTOSCALER) test -race -timeout 20m $(AUTOSCALER_UNIT)
	go -C $(CONTROLLER) test -race -timeout 20m $(CONTROLLER_UNIT)

.PHONY: test-tools
test-tools: ## Run the tests of the tools, which are modules of their own.
	for module in $(TOOLS); do go -C $$module test -timeout 20m ./... || exit 1; done

.PHONY: test-chart
test-chart: ## Run the chart's tests that need no API server, and compare what policies, webhook and inject make of a table of pods.
	go test -vet=off -short ./test/helm
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go -C $(CONTROLLER) test -vet=off -count=1 -timeout 10m ./test/envtest -ginkgo.focus='the policies, the webhook and internal/inject'

.PHONY: test-simulation
test-simulation: ## Play SEEDS (150) simulated histories, the same ones each time (see docs/robustness.md).
	go test -vet=off -timeout 20m ./test/simulation -seeds=$(SEEDS)
	go -C $(CONTROLLER) test -vet=off -timeout 20m ./test/simulation -run 'TestSimulation|TestMutantsApply' -seeds=$$(($(SEEDS) / 5))

.PHONY: test-envtest
test-envtest: ## Run the quick specs on the local control plane.
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go test -vet=off -count=1 -timeout 10m $(QUICK) -ginkgo.label-filter='!nightly'

.PHONY: test-envtest-all
test-envtest-all: ## Run all specs on the local control plane with the race detector.
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go test -race -count=1 -timeout 40m -p 1 $(ENVTEST)
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go -C $(AUTOSCALER) test -race -count=1 -timeout 20m ./test/envtest
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go -C $(CONTROLLER) test -race -count=1 -timeout 20m ./test/envtest
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go test -count=1 -timeout 10m -p 1 ./test/helm/...

.PHONY: smoke
smoke: ## Run each example beside its server for a moment. RabbitMQ, PostgreSQL, Prometheus, python3-pika and Node.js must be installed.
	assets=$$(hack/controlplane/build); for module in $(EXAMPLES) $(CONSUMERS); do \
	  KUBEBUILDER_ASSETS=$$assets go -C $$module test -count=1 -timeout 15m -short ./... || exit 1; \
	done

.PHONY: test-examples
test-examples: ## Run the examples, the autoscaler's sources and the metrics in full, with the same servers.
	go -C $(AUTOSCALER) test -count=1 -timeout 10m ./test/sources
	assets=$$(hack/controlplane/build); for module in $(EXAMPLES) $(CONSUMERS); do \
	  KUBEBUILDER_ASSETS=$$assets go -C $$module test -count=1 -timeout 20m ./... || exit 1; \
	done; \
	KUBEBUILDER_ASSETS=$$assets go test -count=1 -timeout 20m ./test/prometheus

.PHONY: simulate
simulate: ## Play new simulated histories for MINUTES (600, a night).
	go test -count=1 -timeout 0 ./test/simulation -run '^TestSimulation$$' -minutes=$(MINUTES) -first=$(FIRST) -v

.PHONY: mutants
mutants: ## Break the code in each of MUTANTS (all) of test/simulation/mutants.txt, and see the simulation catch it.
	go test -count=1 -timeout 0 ./test/simulation -run '^TestMutants$$' -mutants=$(MUTANTS) -v

.PHONY: mutation
mutation: ## Make mutants of PACKAGES by machine and list those that no test of the package notices (see docs/robustness.md).
	set -e; gremlins=$$(hack/tool $(GREMLINS)); copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; for package in $(PACKAGES); do (cd $$package; \
	  cp "$$(dirname "$$(go env GOMOD)")"/go.??? "$$copy"; go mod edit -replace github.com/idalloc/idalloc=$(CURDIR) "$$copy/go.mod"; \
	  GOFLAGS="$$GOFLAGS -count=1 -short -vet=off -modfile=$$copy/go.mod" "$$gremlins" unleash --config $(CURDIR)/.gremlins.yaml); done # it copies the module, and ../ is not the repository there; it takes its limit of time from a run that must not be cached

.PHONY: e2e
e2e: ## Run the suite and the autoscaler's test on the cluster of KUBECONFIG (see hack/e2e).
	hack/e2e

.PHONY: fuzz
fuzz: ## Fuzz every target of the repository for FUZZTIME (30s), and fail at the end if one failed.
	git grep --untracked -oE '^func Fuzz\w*' -- '*_test.go' | { failed=; while IFS=: read -r file target; do \
	  echo "$${target#func } in $$(dirname "$$file")"; \
	  go -C "$$(dirname "$$file")" test -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) . </dev/null || failed="$$failed $${target#func }"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }; }

.PHONY: chaos
chaos: ## Break pods, network and control plane of the cluster of KUBECONFIG at random (see hack/chaos).
	hack/chaos

.PHONY: bench
bench: ## Measure everything: half an hour; bin/bench gets the tables.
	go test -run '^$$' -bench . ./pkg/...
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go -C test/bench run . -out $(CURDIR)/bin/bench

.PHONY: bench-partitions
bench-partitions: ## Compare strategies of partitions with hashing and a Kafka client, a few minutes; bin/bench gets tables and picture.
	go -C $(PARTITIONS) run . -out $(CURDIR)/bin/bench

.PHONY: bench-packing
bench-packing: ## Compare algorithms that pack partitions by load, by the protocol of a paper, a few minutes; bin/bench gets the table.
	go -C $(PARTITIONS) run ./packing -out $(CURDIR)/bin/bench

.PHONY: bench-groups
bench-groups: ## Measure how long partitions rest when pods, members of Kafka groups and RabbitMQ's consumers come and go: half an hour; bin/bench gets table and picture.
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go -C $(PARTITIONS) run ./groups -out $(CURDIR)/bin/bench

.PHONY: bench-policy
bench-policy: ## Measure what the admission policy costs, a minute.
	go -C $(POLICY) run .

.PHONY: bench-faults
bench-faults: ## Break consumers of a RabbitMQ in all ways, with each strategy, and print the table: five minutes.
	assets=$$(hack/controlplane/build); KUBEBUILDER_ASSETS=$$assets go -C examples/rabbitmq test -run '^$$' -bench Faults -benchtime 1x -timeout 1h .

.PHONY: bench-controller
bench-controller: ## Measure how long gated pods wait for their ids beside two patches a pod, the controller's memory, and its requests at rest: ten minutes.
	assets=$$(hack/controlplane/build); export KUBEBUILDER_ASSETS=$$assets; go -C test/bench run ./controller && \
	  go -C test/bench run ./controller -admission && \
	  go -C test/bench run ./controller -rounds 1 -floor=false -changes 1m && \
	  go -C test/bench run ./controller -pods 5000 -owners 50 -rounds 1 && \
	  go -C test/bench run ./controller -pods 10000 -owners 100 -rounds 1 -floor=false -rest 1m -observe

##@ Check

.PHONY: check
check: lint ## Check the code as lint does, and that the documents are true.
	hack/readme-test

.PHONY: lint
lint: ## Check formatting, vet, golangci-lint and tidiness.
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	go vet ./... && go -C $(AUTOSCALER) vet ./... && go -C $(CONTROLLER) vet ./... && go vet -tags e2e ./test/e2e && go -C examples/rabbitmq vet -tags e2e .
	$$(hack/tool $(ACTIONLINT))
	"$$(hack/tool $(HELM_DOCS))" --chart-search-root charts --log-level warning --dry-run | diff charts/idalloc/README.md -
	$$(hack/tool $(GOLANGCI_LINT)) run ./...
	go mod tidy -diff
	linter=$$(hack/tool $(GOLANGCI_LINT)); for module in $(AUTOSCALER) $(CONTROLLER) $(TOOLS) $(IMAGES) $(EXAMPLES) $(CONSUMERS); do \
	  (cd $$module && "$$linter" run ./... && go mod tidy -diff) || exit 1; \
	done

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities (needs the Go vulnerability database).
	govulncheck=$$(hack/tool $(GOVULNCHECK)); "$$govulncheck" ./... && "$$govulncheck" -C $(AUTOSCALER) ./... && "$$govulncheck" -C $(CONTROLLER) ./...
