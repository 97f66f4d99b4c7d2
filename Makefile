# Recollect: `make run` serves, `make test` passes. Both need Python 3.11 to 3.14 and the package registries, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUN_STAMP := $(VENV)/.installed-to-run
NODE_STAMP := tests/verify/node_modules/.installed
MODEL_APIS := tests/verify/model_apis/.venv/.installed
GENERATED := tests/verify/generated_clients/.venv/.installed
CLIENTS := tests/verify/clients
CLIENT_VENVS := $(patsubst $(CLIENTS)/locks/%.txt,$(CLIENTS)/.venvs/%/.installed,$(wildcard $(CLIENTS)/locks/*.txt))
INTEGRATIONS := tests/verify/integrations
INTEGRATION_VENVS := $(patsubst $(INTEGRATIONS)/locks/%.txt,$(INTEGRATIONS)/.venvs/%/.installed,$(wildcard $(INTEGRATIONS)/locks/*.txt))
CLIENT_NODE_STAMP := $(CLIENTS)/node/node_modules/.installed
AGENTS_STAMP := tests/verify/agents/node_modules/.installed
TYPESCRIPT := shared/recollect_client_ts
TYPESCRIPT_STAMP := $(TYPESCRIPT)/node_modules/.installed
COLLECTOR := tests/verify/collector/.built/collector
RELEASE_TOOLS := tests/verify/tools/.venv/.installed
CHART_TOOLS := tests/verify/tools/.bin/helm tests/verify/tools/.bin/kube-score
KUBERNETES := $(addprefix tests/verify/tools/.bin/,kube-apiserver kube-controller-manager etcd)
# Not part of `make verify`: building its servers takes from a quarter of an hour to an hour.
AT_API_SERVER := tests/verify/chart/test_api_server.py tests/verify/chart/test_documented_deployment.py
TOOLSETS := agent memory organize facts lineage openai admin
ARGS ?=
CRDS ?=
# Coverage costs about 2 % with sys.monitoring. Python 3.11 lacks it: its tracer reports every call and line of every
# library, which takes half as much processor time again, so coverage is off there unless COVERAGE=--cov is set.
COVERAGE ?= $(shell $(BIN)/python -c 'import sys; print("--cov" if sys.version_info >= (3, 12) else "")')

IN_PROCESSES := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

# Without bytecode, each process that tests start would compile our sources, and each run of pytest would compile all
# tests with their assertions. So bytecode is written to __pycache__, which git ignores, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow test-supported affected slowest verify baseline pages docs conformance package version upgrade-drill drills \
	chromium pgbouncer image-tools promtool kubectl chart \
	chart-tools chart-server client-packages clients integration-packages integrations typescript clean-typescript soak breakages lint style types format bench bench-before quality lock \
	lock-clients console-pictures clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the locked dependencies (the other targets call it)

# Makes .venv with the packages of the locks $(1), which takes $(2). The locks name every package, so pip resolves
# nothing. pip would compile on one core, so compileall does it instead.
define install
	@$(PYTHON) infra/recollect_local/platforms.py
	@test -d $(VENV) || { echo "Making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the locked dependencies (once; about $(2), more if nothing is cached and the network is slow)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-compile $(addprefix -r infra/locks/,$(1))
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # no module imports the files that do not compile
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(STAMP): pyproject.toml infra/locks/dev.txt
	$(call install,dev.txt,two minutes)

$(RUN_STAMP): pyproject.toml infra/locks/local.txt infra/locks/build.txt
	$(call install,local.txt build.txt,one minute)

# Who only runs it gets half the packages: none of the tools for development.
run: $(if $(wildcard $(STAMP)),setup,$(RUN_STAMP)) ## Start everything on this machine and print what to paste into an MCP client
	@exec $(BIN)/recollect local $(ARGS)

lint: style types ## Check style, types, import rules and migrations

style: setup # The checks that take seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/squawk --no-error-on-unmatched-pattern shared/recollect/postgres/migrations/*.sql

types: setup
	$(BIN)/mypy

format: setup ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Types are checked (half a minute on one core) beside the rest, which mostly uses the other core at that time.
# In a new clone, each process would compile all tests: so they are collected once before, which takes seconds.
test: setup ## Lint, and run the tests of everything that a code change can break; lists the lines that no test ran
	$(BIN)/mypy & types=$$!; \
	$(MAKE) --no-print-directory style || { kill $$types; exit 1; }; \
	$(BIN)/pytest -n 0 -qq --collect-only > /dev/null; \
	$(IN_PROCESSES) $(COVERAGE) $(ARGS); tested=$$?; \
	wait $$types && exit $$tested
	@test -n "$(COVERAGE)" || echo "Coverage is measured from Python 3.12 on. To measure it here: make test COVERAGE=--cov"

test-slow: setup ## Run the rest: random kills, generated requests and histories, moves, replicas, statistics, loads, restarts
	$(IN_PROCESSES) $(ARGS) tests/slow

test-supported: setup ## Run the unit and contract tests, for the other supported versions of Python
	$(IN_PROCESSES) $(ARGS) tests/unit tests/contract

affected: setup ## Run the tests that a change can reach (BASE=<revision>, default main), the nearest first, for a minute
	@$(BIN)/python -m tests.affected --base $(or $(BASE),main) $(ARGS)

slowest: setup ## Run both suites and print where their time went, by file, fixture and test
	$(IN_PROCESSES) --slowest 40 $(ARGS) tests tests/slow

# Until the first release is made. Then a migration never changes, and every change is a new one (CONTRIBUTING.md).
baseline: setup ## Make the first migration from the files of the schema (shared/recollect/postgres/schema)
	$(BIN)/python -m recollect.postgres.schema > shared/recollect/postgres/migrations/.new
	mv shared/recollect/postgres/migrations/.new shared/recollect/postgres/migrations/0001_baseline.sql

pages: setup ## Rewrite the pages of docs/ that are made from code, settings and the marks of tests
	$(BIN)/recollect reference settings > docs/settings.md
	$(BIN)/recollect reference tools > docs/tools.md
	for name in $(TOOLSETS); do $(BIN)/recollect reference toolset $$name > docs/tools/$$name.md; done
	$(BIN)/python -m tests.contract.pages

docs: setup ## Build the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Tools come first, so that a missing one fails at once and not after ten minutes of tests.
verify: chromium pgbouncer image-tools promtool $(COLLECTOR) chart-tools $(RELEASE_TOOLS) $(NODE_STAMP) $(MODEL_APIS) $(GENERATED) client-packages $(AGENTS_STAMP) integration-packages conformance ## The tests that need other tools than Python (tests/verify)
	$(BIN)/pytest $(ARGS) --ignore tests/verify/test_conformance.py $(AT_API_SERVER:%=--ignore %) tests/verify

# If the result differs from docs/conformance.md, the page is rewritten and the target fails: read it, and commit it.
conformance: setup $(NODE_STAMP) ## Run the official MCP conformance suite, and compare the result with docs/conformance.md
	$(BIN)/pytest $(ARGS) tests/verify/test_conformance.py --write-conformance

clients: setup $(NODE_STAMP) client-packages ## Connect the published MCP clients to a gateway (part of make verify)
	$(BIN)/pytest $(ARGS) tests/verify/test_clients.py

# `make package ARGS=--without-image` needs no buildah, and builds and checks everything else.
package: setup tests/verify/tools/.bin/helm $(RELEASE_TOOLS) ## Build what a release publishes, into dist/, and install each in a clean environment
	PYTHONPATH=infra $(BIN)/python -m release build dist $(ARGS)
	PACKAGES=$(abspath dist) $(BIN)/pytest tests/verify/test_packages.py

version: setup ## Print the version, or write VERSION=<new> to every place that names it
	@PYTHONPATH=infra $(BIN)/python -m release version $(VERSION)

integrations: setup integration-packages ## Run the adapters of the Python client in their frameworks (part of make verify)
	$(BIN)/pytest $(ARGS) tests/verify/test_integrations.py

upgrade-drill: setup ## Upgrade this tree (or OLD=<revision>) to a next release under load, and back: no call may fail
	UPGRADE_FROM=$(OLD) $(BIN)/pytest $(ARGS) tests/verify/test_upgrade_drill.py

drills: setup ## Run every drill of docs/operations.md and docs/cells.md: upgrade, restore, failover, move
	$(BIN)/pytest $(ARGS) tests/verify/test_*_drill.py

chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
		echo "make verify needs Chromium on the PATH: install it (the package chromium of Debian)"; exit 1

# The OpenTelemetry collector, built from modules whose versions and hashes are pinned.
$(COLLECTOR): $(addprefix tests/verify/collector/,main.go go.mod go.sum)
	@command -v go > /dev/null || { echo "make verify needs Go 1.26 or newer on the PATH, for the OpenTelemetry collector"; exit 1; }
	@echo "Building the OpenTelemetry collector (once; a few minutes, mostly to compile)"
	@cd $(dir $<) && go build -trimpath -mod=readonly -o .built/collector .

pgbouncer:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v pgbouncer > /dev/null || { \
		echo "make verify needs PgBouncer: install it (the package pgbouncer of Debian)"; exit 1; }

# buildah builds infra/Dockerfile without a container engine, mmdebstrap the file system of its base image.
image-tools:
	@for name in buildah mmdebstrap; do command -v $$name > /dev/null || { \
		echo "make verify needs $$name: install it (the package $$name of Debian)"; exit 1; }; done

# promtool runs Prometheus' own unit tests of rules on the alerts of infra/observability.
promtool:
	@command -v promtool > /dev/null || { \
		echo "make verify needs promtool: install it (the package prometheus of Debian)"; exit 1; }

chart: setup chart-tools ## Check the Helm chart alone, and start its processes (part of make verify)
	$(BIN)/pytest $(ARGS) $(AT_API_SERVER:%=--ignore %) tests/verify/chart

chart-server: kubectl setup chart-tools $(KUBERNETES) ## Test the chart and the commands of docs/deploy.md against an API server; CRDS=<folder> adds definitions
	CRDS=$(abspath $(CRDS)) $(BIN)/pytest $(ARGS) $(AT_API_SERVER)

kubectl:
	@command -v kubectl > /dev/null || { echo "make chart-server needs kubectl on the PATH, which docs/deploy.md uses:" \
		"install Kubernetes' own, 1.32 or newer"; exit 1; }

chart-tools: $(CHART_TOOLS)

# Each tool is a Go module of its own with its own hashes: they need different versions of the same libraries.
tests/verify/tools/.bin/helm: PROGRAM := helm.sh/helm/v3/cmd/helm
tests/verify/tools/.bin/kube-apiserver: PROGRAM := k8s.io/kubernetes/cmd/kube-apiserver
tests/verify/tools/.bin/kube-controller-manager: PROGRAM := k8s.io/kubernetes/cmd/kube-controller-manager
# Helm asks the server for its version, which is empty unless it is set when building.
tests/verify/tools/.bin/kube-%: VERSION_FLAG = -X k8s.io/component-base/version.gitVersion=$(shell \
	go -C tests/verify/tools/kube-apiserver list -m -f '{{.Version}}' k8s.io/kubernetes)
tests/verify/tools/.bin/etcd: PROGRAM := go.etcd.io/etcd/server/v3
tests/verify/tools/.bin/mcp-publisher: PROGRAM := github.com/modelcontextprotocol/registry/cmd/publisher
tests/verify/tools/.bin/kube-score: PROGRAM := github.com/zegl/kube-score/cmd/kube-score
tests/verify/tools/.bin/%: tests/verify/tools/%/go.mod tests/verify/tools/%/go.sum
	@command -v go > /dev/null || { echo "make verify needs Go 1.26 or newer, which builds $*"; exit 1; }
	@echo "Building $* (once; some minutes if nothing is cached)"
	@go -C tests/verify/tools/$* build -trimpath -ldflags '-s -w $(VERSION_FLAG)' -o ../.bin/$* $(PROGRAM)

$(NODE_STAMP): tests/verify/package.json tests/verify/package-lock.json
	@command -v npm > /dev/null || { echo "make verify needs npm: install Node.js, any release that brings npm" \
		"(Node 22, which the checks run on, is in tests/verify/package.json)"; exit 1; }
	@echo "Installing the npm packages of tests/verify"
	@npm ci --prefix tests/verify --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The SDKs of model APIs, apart from the locked dependencies, which need none of theirs.
$(MODEL_APIS): $(STAMP) tests/verify/model_apis/requirements.txt
	@echo "Installing the SDKs of model APIs (once; about a minute)"
	@$(BIN)/python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(lastword $^)
	@touch $@

# The generator of Python clients, and what generated clients import.
$(GENERATED): $(STAMP) tests/verify/generated_clients/requirements.txt
	@echo "Installing the generator of Python clients (once; some seconds)"
	@$(BIN)/python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(lastword $^)
	@touch $@

# What builds and tries packages, apart from the locked dependencies of development.
$(RELEASE_TOOLS): infra/locks/release.txt
	@echo "Installing the tools of make package"
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

client-packages: $(CLIENT_VENVS) $(CLIENT_NODE_STAMP)

# Each client from PyPI has a virtual environment of its own: they need different versions of the same packages. The
# locks name every package, so pip resolves nothing.
$(CLIENTS)/.venvs/%/.installed: $(CLIENTS)/locks/%.txt
	@echo "Installing the MCP client $* from PyPI"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

integration-packages: $(INTEGRATION_VENVS)

# Frameworks that need the same versions share an environment. The client itself is taken from shared/.
$(INTEGRATIONS)/.venvs/%/.installed: $(INTEGRATIONS)/locks/%.txt
	@echo "Installing the frameworks $* from PyPI (once; some minutes)"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(CLIENT_NODE_STAMP): $(CLIENTS)/node/package.json $(CLIENTS)/node/package-lock.json
	@command -v npm > /dev/null || { echo "make verify needs npm: install Node.js, any release that brings npm"; exit 1; }
	@echo "Installing the MCP clients from npm (once; some minutes, mostly for the Gemini CLI)"
	@npm ci --prefix $(CLIENTS)/node --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The programs in which the plugins are tried. Their scripts of installation are not run; they are single files that need none.
$(AGENTS_STAMP): tests/verify/agents/package.json tests/verify/agents/package-lock.json
	@command -v npm > /dev/null || { echo "make verify needs npm: install Node.js, any release that brings npm"; exit 1; }
	@echo "Installing Claude Code, Codex, Gemini CLI and opencode from npm (once; some minutes, about a gigabyte)"
	@npm ci --prefix tests/verify/agents --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(TYPESCRIPT_STAMP): $(TYPESCRIPT)/package.json $(TYPESCRIPT)/package-lock.json
	@command -v npm > /dev/null || { echo "make verify needs npm: install Node.js, any release that brings npm"; exit 1; }
	@echo "Installing what builds and tests the client for TypeScript"
	@npm ci --prefix $(TYPESCRIPT) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

client-packages: $(TYPESCRIPT_STAMP)

typescript: setup $(NODE_STAMP) $(TYPESCRIPT_STAMP) ## Build and test the client for TypeScript (part of make verify)
	$(BIN)/pytest $(ARGS) tests/verify/test_typescript_client.py

clean: clean-typescript

clean-typescript:
	rm -rf $(addprefix $(TYPESCRIPT)/,node_modules dist src/generated LICENSE)

# Forty rounds of each test that kills workers and servers at random moments; `make test` runs two. Forty times as many
# examples of each property test, new ones each time; `make test` tries the same ones.
soak: setup ## Run fault tests and property tests for long: about two hours on two cores
	$(BIN)/pytest -n auto --dist load $(ARGS) tests/faults tests/slow/kills --soak
	$(BIN)/pytest -n auto --dist load $(ARGS) -m hypothesis --soak tests tests/slow/histories
	$(BIN)/pytest -n auto --dist load $(ARGS) --soak tests/slow/fuzz

# In a second work tree. ARGS="jobs webhooks" tries those whose names contain one of these words.
breakages: setup ## Break the code in forty places, one after another, and see which of them tests notice
	$(BIN)/python -m tests.breakages $(ARGS)

bench: setup ## Measure performance, as ratios within one run
	$(BIN)/python -m tests.benchmarks $(ARGS)

bench-before: setup ## Measure what recall (or with ARGS="--group cost" each call) costs at OLD=<revision> and now
	$(BIN)/python -m tests.benchmarks.before_after $(or $(OLD),main) $(ARGS)

quality: setup ## Measure the quality of recall, on questions whose evidence is known
	$(BIN)/python -m tests.benchmarks.quality $(ARGS)

lock: setup ## Resolve the dependencies anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --extra wordllama -o infra/locks/runtime.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --extra wordllama --extra local -c infra/locks/runtime.txt \
		-o infra/locks/local.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --group build -o infra/locks/build.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --group release -o infra/locks/release.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' --extra wordllama --extra local --extra documents --group dev -c infra/locks/local.txt \
		-o infra/locks/dev.txt pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' -o tests/verify/model_apis/requirements.txt tests/verify/model_apis/requirements.in
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command 'make lock' -o tests/verify/generated_clients/requirements.txt \
		tests/verify/generated_clients/requirements.in

console-pictures: chromium setup $(NODE_STAMP) ## Photograph the main pages of the console for docs/console.md anew
	CONSOLE_PICTURES_OF_DOCS=docs/assets $(BIN)/pytest $(ARGS) tests/verify/test_console_pictures.py

console-libraries: ## Fetch what the console loads in browsers from npm anew, and copy it with its licences (needs npm)
	npm ci --prefix infra/console_libraries --ignore-scripts --no-audit --no-fund --loglevel=error
	$(BIN)/python infra/console_libraries/refresh.py

lock-clients: ## Resolve the packages of the MCP clients and of the frameworks from PyPI anew (needs uv)
	for name in $(basename $(wildcard $(CLIENTS)/locks/*.in $(INTEGRATIONS)/locks/*.in)); do \
		uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
			-o $$name.txt $$name.in; done

clean: ## Remove everything that the other targets made in the tree
	rm -rf $(VENV) site tests/verify/tools/.venv tests/verify/node_modules tests/verify/model_apis/.venv tests/verify/generated_clients/.venv tests/verify/clients/.venvs tests/verify/integrations/.venvs tests/verify/clients/node/node_modules tests/verify/agents/node_modules tests/verify/collector/.built tests/verify/tools/.bin .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .coverage.* dist
