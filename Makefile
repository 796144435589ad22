# What people do with this repository. `make` alone prints the list.
# Everything runs with Go and make only; deploy, undeploy, install and uninstall
# need kubectl and a cluster besides, docker-build an engine.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# IMG is the image that docker-build makes and deploy and build-installer use.
IMG ?= rabbitmq-retry-operator:$(VERSION)
# RUNTIME_IMAGE is the image under the manager's: distroless/static:nonroot of a registry you trust.
RUNTIME_IMAGE ?=
DOCKER ?= docker
KUBECTL ?= kubectl
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

BIN := bin
# -buildvcs=false: a clone that belongs to another user is no reason to fail.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false
LDFLAGS := -s -w -X main.version=$(VERSION)

# Packages without I/O, whose tests take seconds.
UNIT := ./api/... ./internal/topology/... ./internal/deadletter/... ./internal/plan/...
GENERATED := api config/crd config/rbac

##@ General

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET\n"} \
	  /^[a-z0-9-]+:.*##/ { printf "  %-16s %s\n", $$1, $$2 } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) }' $(MAKEFILE_LIST)

##@ Development

.PHONY: generate
generate: $(BIN)/controller-gen ## Generate the DeepCopy methods of the API.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: $(BIN)/controller-gen ## Generate the CRDs and the manager's role.
	$(CONTROLLER_GEN) crd rbac:roleName=manager-role paths=./api/... paths=./controllers/... \
	  output:crd:artifacts:config=config/crd/bases output:rbac:artifacts:config=config/rbac

.PHONY: fmt
fmt: ## Format the Go sources.
	go fmt ./...

.PHONY: vet
vet: ## Let go vet look for mistakes.
	go vet ./...

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run the linters, those for Kubernetes APIs included.
	$(GOLANGCI_LINT) run --allow-serial-runners --config .golangci.yml ./...
	$(GOLANGCI_LINT) run --allow-serial-runners --config .golangci-kal.yml ./api/...

.PHONY: verify
verify: generate manifests fmt lint ## Check that what is committed is generated, formatted and clean.
	@git diff --exit-code || { echo "The files above change when they are generated or formatted: commit them." >&2; exit 1; }
	@new=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
	  if [ -n "$$new" ]; then echo "Generated files are not committed: $$new" >&2; exit 1; fi

.PHONY: build
build: ## Build the manager into bin/manager.
	$(GO_BUILD) -ldflags "$(LDFLAGS)" -o $(BIN)/manager ./cmd/manager

.PHONY: run
run: build ## Run the manager here, against the cluster of KUBECONFIG.
	$(BIN)/manager

##@ Tests

.PHONY: test
test: $(BIN)/gotestsum ## Run every test, on a real API server and real brokers.
	@echo "Running every test. The first run on a machine also builds an API server and installs brokers: up to 20 minutes on two cores. Later runs take about ten minutes."
	@echo "Compiling the sandbox: a few minutes the first time."
	go run ./hack/cmd/sandbox prepare
	$(GOTESTSUM) --format pkgname --rerun-fails=2 --rerun-fails-max-failures=200 --packages=./... $(AT_LEAST_ONE) -- -count=1 -p 1 -timeout 40m

.PHONY: test-unit
test-unit: $(BIN)/gotestsum ## Run the tests of the packages without I/O: seconds.
	$(GOTESTSUM) --format pkgname $(AT_LEAST_ONE) -- -count=1 $(UNIT)

.PHONY: bench
bench: ## Run the benchmarks.
	go test -run '^$$' -bench . -benchmem ./internal/...

##@ Sandbox

.PHONY: sandbox
sandbox: ## Start an API server, a RabbitMQ and the operator on this machine.
	@echo "Starting the sandbox. The first time on a machine this compiles it and builds an API server: up to 20 minutes on two cores."
	go run ./hack/cmd/sandbox up

.PHONY: sandbox-down
sandbox-down: ## Stop the sandbox.
	go run ./hack/cmd/sandbox down

.PHONY: sandbox-status
sandbox-status: ## Say what of the sandbox runs.
	go run ./hack/cmd/sandbox status

.PHONY: demo
demo: ## Show a message being retried and parked, in the sandbox.
	@echo "Starting the demo. The first time on a machine this compiles it and builds an API server: up to 20 minutes on two cores."
	go run ./hack/cmd/demo

##@ Deployment

.PHONY: docker-build
docker-build: ## Build the image IMG.
	$(DOCKER) build --build-arg VERSION=$(VERSION) $(if $(RUNTIME_IMAGE),--build-arg RUNTIME_IMAGE=$(RUNTIME_IMAGE)) -t $(IMG) .

.PHONY: install
install: $(BIN)/kustomize ## Install the CRDs into the cluster of KUBECONFIG.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: $(BIN)/kustomize ## Remove the CRDs with every object of theirs, while the operator runs.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: overlay ## Deploy the CRDs and the operator, with the image IMG.
	$(KUSTOMIZE) build $(BIN)/deploy | $(KUBECTL) apply --server-side -f -

# The CRDs stay, and the policies with them: removed together with the operator,
# they would wait for ever for it to take their finalizers off. `make uninstall`
# removes them while the operator still runs.
.PHONY: undeploy
undeploy: overlay ## Remove the operator, and keep the CRDs and the policies.
	@mkdir -p $(BIN)/undeploy
	@printf '%s\n' 'resources: [../deploy]' 'patches:' '- target: {kind: CustomResourceDefinition}' \
	  '  patch: '"'"'{$$patch: delete, apiVersion: v1, kind: any, metadata: {name: any}}'"'" > $(BIN)/undeploy/kustomization.yaml
	$(KUSTOMIZE) build $(BIN)/undeploy | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: build-installer
build-installer: overlay ## Write all that deploy applies into dist/install.yaml.
	@mkdir -p dist
	$(KUSTOMIZE) build $(BIN)/deploy > dist/install.yaml

# A kustomization of its own names the image, so that no committed file changes.
.PHONY: overlay
overlay: $(BIN)/kustomize
	@mkdir -p $(BIN)/deploy
	@printf 'resources:\n- ../../config/default\n' > $(BIN)/deploy/kustomization.yaml
	@cd $(BIN)/deploy && "$(CURDIR)/$(KUSTOMIZE)" edit set image controller=$(IMG)

##@ Tools

.PHONY: clean
clean: ## Remove what was built, the tools included.
	rm -rf $(BIN)/manager $(BIN)/deploy $(BIN)/undeploy $(TOOLS) $(BIN)/*-v[0-9]* dist

# Tools are pinned in hack/tools and built into bin, under a name with the
# version so that another version is another file. bin/NAME is a link to the
# version in use.
tool_version = $(shell awk '$$1 == "$(1)" && $$2 ~ /^v/ { print $$2 }' hack/tools/$(2)go.mod)

GOTESTSUM := $(BIN)/gotestsum-$(call tool_version,gotest.tools/gotestsum)
CONTROLLER_GEN := $(BIN)/controller-gen-$(call tool_version,sigs.k8s.io/controller-tools)
KUSTOMIZE := $(BIN)/kustomize-$(call tool_version,sigs.k8s.io/kustomize/kustomize/v5)
GOLANGCI_LINT := $(BIN)/golangci-lint-$(call tool_version,github.com/golangci/golangci-lint/v2,golangci-lint/)
TOOLS := $(addprefix $(BIN)/,gotestsum controller-gen kustomize golangci-lint)

# gotestsum calls a run without tests a success.
AT_LEAST_ONE := --post-run-command 'bash -c "if [ \"$$TESTS_TOTAL\" -eq 0 ]; then echo No test ran. >&2; exit 1; fi"'

# build_tool builds package $(1) of the module in folder $(2) into file $(3).
define build_tool
	@echo "Building $(notdir $(3))$(4)"
	@mkdir -p $(BIN)
	@cd $(2) && GOFLAGS= GOWORK=off $(GO_BUILD) -ldflags "-s -w" -o "$(CURDIR)/$(3)" $(1)
endef

$(GOTESTSUM): hack/tools/go.mod
	$(call build_tool,gotest.tools/gotestsum,hack/tools,$@)
$(CONTROLLER_GEN): hack/tools/go.mod
	$(call build_tool,sigs.k8s.io/controller-tools/cmd/controller-gen,hack/tools,$@)
$(KUSTOMIZE): hack/tools/go.mod
	$(call build_tool,sigs.k8s.io/kustomize/kustomize/v5,hack/tools,$@)
$(GOLANGCI_LINT): hack/tools/golangci-lint/go.mod
	$(call build_tool,sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter,hack/tools/golangci-lint,$@, (some minutes the first time))

$(BIN)/gotestsum: $(GOTESTSUM)
$(BIN)/controller-gen: $(CONTROLLER_GEN)
$(BIN)/kustomize: $(KUSTOMIZE)
$(BIN)/golangci-lint: $(GOLANGCI_LINT)
$(TOOLS):
	@ln -sf $(notdir $<) $@
