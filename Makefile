# Recollect: `make run` serves, `make test` passes. Both need Python 3.11 to 3.13 and the package registries, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NODE_STAMP := tests/verify/node_modules/.installed
COLLECTOR := tests/verify/collector/.built/collector
CHART_TOOLS := tests/verify/tools/.bin/helm tests/verify/tools/.bin/kube-score
KUBERNETES := $(addprefix tests/verify/tools/.bin/,kube-apiserver kube-controller-manager etcd)
# No part of `make verify`: to build its servers takes from a quarter to a whole hour.
AT_API_SERVER := tests/verify/chart/test_api_server.py tests/verify/chart/test_documented_deployment.py
ARGS ?=
CRDS ?=
# Coverage costs about 2 % where Python has sys.monitoring. The tracer of 3.11 has every call and line of every library
# reported, which takes half as much processor time again: there it is measured when asked for (COVERAGE=--cov).
COVERAGE ?= $(shell $(BIN)/python -c 'import sys; print("--cov" if sys.version_info >= (3, 12) else "")')

# Where the environment asks for no bytecode, each process that tests start would compile our sources, and each run of
# pytest all tests with their assertions. It is kept in __pycache__, which git ignores.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run test verify docs conformance upgrade-drill drills chromium pgbouncer image-tools promtool kubectl chart \
	chart-tools chart-server soak lint style types format bench quality lock clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the locked dependencies (the other targets call it)

# The lock names all there is to install, so pip resolves nothing; and it would compile on one core.
$(STAMP): pyproject.toml infra/locks/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
		|| { echo "Recollect needs Python 3.11, 3.12 or 3.13, for which its dependencies have wheels;" \
		"$(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@test -d $(VENV) || { echo "Making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the locked dependencies (once; about two minutes, more where nothing is cached and the network is slow)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-compile -r infra/locks/dev.txt
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # what does not compile is nothing that Python imports
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

run: setup ## Start everything on this machine and print what to paste into an MCP client
	@exec $(BIN)/recollect local $(ARGS)

lint: style types ## Style, types, import rules and migrations

style: setup # What takes seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/squawk shared/recollect/migrations/*.sql

types: setup
	$(BIN)/mypy

format: setup ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Types are checked beside the tests, which wait for servers and processes now and then: half a minute on one core.
test: style ## Lint, and every test that needs Python only; ends with the lines that no test ran
	$(BIN)/mypy & types=$$!; \
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(COVERAGE) $(ARGS); tested=$$?; \
	wait $$types && exit $$tested
	@test -n "$(COVERAGE)" || echo "Coverage is measured from Python 3.12 on; here by: make test COVERAGE=--cov"

docs: setup ## Build the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Tools first: one that is missing fails at once, not after ten minutes of tests.
verify: chromium pgbouncer image-tools promtool $(COLLECTOR) chart-tools $(NODE_STAMP) test conformance ## make test, then what needs other tools (tests/verify)
	$(BIN)/pytest $(ARGS) --ignore tests/verify/test_conformance.py $(AT_API_SERVER:%=--ignore %) tests/verify

# Fails where docs/conformance.md differed, which is written anew then: to be read, and committed.
conformance: setup $(NODE_STAMP) ## Run the official MCP conformance suite, and tell what it says in docs/conformance.md
	$(BIN)/pytest $(ARGS) tests/verify/test_conformance.py --write-conformance

upgrade-drill: setup ## Upgrade from 0.1.0, or OLD=<revision>, under load, and back: no call may fail
	UPGRADE_FROM=$(OLD) $(BIN)/pytest $(ARGS) tests/verify/test_upgrade_drill.py

drills: setup ## Every drill of docs/operations.md and docs/cells.md: upgrade, restore, failover, move
	$(BIN)/pytest $(ARGS) tests/verify/test_*_drill.py

chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
		echo "make verify needs Chromium on the PATH: install it (the package chromium of Debian)"; exit 1

# The OpenTelemetry collector, of modules whose versions and contents are pinned.
$(COLLECTOR): $(addprefix tests/verify/collector/,main.go go.mod go.sum)
	@command -v go > /dev/null || { echo "make verify needs Go 1.26 or newer on the PATH, for the OpenTelemetry collector"; exit 1; }
	@echo "Building the OpenTelemetry collector (once; a few minutes, most of them the compiler's)"
	@cd $(dir $<) && go build -trimpath -mod=readonly -o .built/collector .

pgbouncer:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v pgbouncer > /dev/null || { \
		echo "make verify needs PgBouncer: install it (the package pgbouncer of Debian)"; exit 1; }

# What builds infra/Dockerfile without an engine, and what makes the file system of its base.
image-tools:
	@for name in buildah mmdebstrap; do command -v $$name > /dev/null || { \
		echo "make verify needs $$name: install it (the package $$name of Debian)"; exit 1; }; done

# The alerts of infra/observability are tried by Prometheus' own tests of rules.
promtool:
	@command -v promtool > /dev/null || { \
		echo "make verify needs promtool: install it (the package prometheus of Debian)"; exit 1; }

chart: setup chart-tools ## Check the Helm chart alone (make verify does, too), and start its processes
	$(BIN)/pytest $(ARGS) $(AT_API_SERVER:%=--ignore %) tests/verify/chart

chart-server: kubectl setup chart-tools $(KUBERNETES) ## What Kubernetes says of the chart, and docs/deploy.md by its commands; CRDS=<folder> adds definitions
	CRDS=$(abspath $(CRDS)) $(BIN)/pytest $(ARGS) $(AT_API_SERVER)

kubectl:
	@command -v kubectl > /dev/null || { echo "make chart-server needs kubectl on the PATH, which docs/deploy.md uses:" \
		"install Kubernetes' own, 1.32 or newer"; exit 1; }

chart-tools: $(CHART_TOOLS)

# Each is a module of its own with its hashes: they want different versions of the same libraries.
tests/verify/tools/.bin/helm: PROGRAM := helm.sh/helm/v3/cmd/helm
tests/verify/tools/.bin/kube-apiserver: PROGRAM := k8s.io/kubernetes/cmd/kube-apiserver
tests/verify/tools/.bin/kube-controller-manager: PROGRAM := k8s.io/kubernetes/cmd/kube-controller-manager
# Helm asks the server for its version, which is none unless its build is told.
tests/verify/tools/.bin/kube-%: TOLD = -X k8s.io/component-base/version.gitVersion=$(shell \
	go -C tests/verify/tools/kube-apiserver list -m -f '{{.Version}}' k8s.io/kubernetes)
tests/verify/tools/.bin/etcd: PROGRAM := go.etcd.io/etcd/server/v3
tests/verify/tools/.bin/kube-score: PROGRAM := github.com/zegl/kube-score/cmd/kube-score
tests/verify/tools/.bin/%: tests/verify/tools/%/go.mod tests/verify/tools/%/go.sum
	@command -v go > /dev/null || { echo "make verify needs Go 1.26 or newer, which builds $*"; exit 1; }
	@echo "Building $* (once; some minutes where nothing is cached)"
	@go -C tests/verify/tools/$* build -trimpath -ldflags '-s -w $(TOLD)' -o ../.bin/$* $(PROGRAM)

$(NODE_STAMP): tests/verify/package.json tests/verify/package-lock.json
	@command -v npm > /dev/null || { echo "make verify needs npm: install Node.js, any release that brings npm" \
		"(Node 22, which the checks run on, is in tests/verify/package.json)"; exit 1; }
	@echo "Installing what tests/verify needs from npm"
	@npm ci --prefix tests/verify --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Forty rounds of each test that kills workers and servers at random moments, where `make test` runs two; and forty times
# as many examples of each property test, new ones each time, where `make test` tries the same ones.
soak: setup ## The long rounds of fault tests and property tests: about two hours on two cores
	$(BIN)/pytest -n auto --dist load $(ARGS) tests/faults --soak
	$(BIN)/pytest -n auto --dist load $(ARGS) -m hypothesis --soak
	$(BIN)/pytest -n auto --dist load $(ARGS) -m "not hypothesis" --soak tests/contract/test_fuzz.py tests/contract/test_openapi_fuzz.py

bench: setup ## Measure, as ratios inside one run
	$(BIN)/python -m tests.benchmarks $(ARGS)

quality: setup ## Measure how well recall finds, on questions whose evidence is known
	$(BIN)/python -m tests.benchmarks.quality $(ARGS)

lock: setup ## Resolve the dependencies anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' -o infra/locks/runtime.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --group build -o infra/locks/build.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --extra local --group dev -c infra/locks/runtime.txt \
		-o infra/locks/dev.txt pyproject.toml

clean: ## Remove what the other targets made in the tree
	rm -rf $(VENV) site tests/verify/node_modules tests/verify/collector/.built tests/verify/tools/.bin .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .coverage.* dist
