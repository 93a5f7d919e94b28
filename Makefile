# Two commands are enough: `make up` shows your sessions, `make test` proves the program on this machine.
# Both create what they need from python3 and the package registries that pip is set up for here.
#
#   make up ARGS=--demo         arguments go to the program (up) or to pytest (test, quick, real)
#   make test PYTHON=python3.12 another interpreter for the environment

PYTHON ?= python3
ARGS   ?=
ENV    := .venv
BIN    := $(ENV)/bin
READY  := $(ENV)/.ready
UV     := .cache/uv-0.13.8/bin/uv
TOOLS  := $(ENV)/.tools
PIP    := -m pip --disable-pip-version-check
LOCK    = $(UV) pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links $(ARGS)
# Installs a lock file into the environment, with a line on stderr that counts the packages.
install = set -e; echo "Installing $(1) into $(ENV)" >&2; total=$$(grep -c '^[a-z].*==' $(1)); line='%s\n'; \
	! test -t 2 || line='\r\033[K%s'; \
	{ $(BIN)/python $(PIP) install --progress-bar off --require-hashes -r $(1) || echo FAILED; } | { \
	  count=0; while read -r word name _; do case $$word in \
	    Collecting) count=$$((count + 1)); printf "$$line" "$$count of $$total: $$name" >&2;; \
	    Installing) printf "$$line" "unpacking" >&2; ! test -t 2 || echo >&2;; \
	    FAILED) exit 1;; esac; done; }
WORKERS := -n 3 --dist worksteal
PYTEST  = $(BIN)/python -m pytest $(WORKERS)
QUICK   = $(WORKERS) -m "not real and not bench and not faults and not fleet and not slow and not alone"
PURE   := config core otel redaction state
UNITS  := $(PURE) missioncontrol cli sinks

.DEFAULT_GOAL := help
.PHONY: help up test quick newest check backends real fleet packages bench soak faults mutate sbom lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: $(READY) ## show this machine's Copilot CLI sessions in a Mission Control on loopback
	@$(BIN)/exporter up $(ARGS)

test: $(TOOLS) ## run every test that needs no other program
	@$(PYTEST) -m "not real and not bench and not faults and not fleet" $(ARGS)

quick: $(TOOLS) ## run the tests of units, in about a minute
	@$(BIN)/python -m pytest $(QUICK) $(UNITS:%=tests/%) $(ARGS)

newest: $(TOOLS) ## run the tests of the pure parts and of the daemon on the newest Python, of Debian's development suite
	@python=$$($(BIN)/python -m tests.packages.newest_python) && if [ -n "$$python" ]; then \
	  PYTHONPATH=. $$python -m pytest -p no:cacheprovider $(QUICK) $(PURE:%=tests/%) tests/daemon $(ARGS); fi

check: $(TOOLS) ## lint, format, types, layers, and whatever can drift, with short fuzzes
	@red=; \
	$(BIN)/ruff check --quiet . || red="$$red lint"; \
	$(BIN)/ruff format --quiet --check . || red="$$red format"; \
	$(BIN)/mypy || red="$$red types"; \
	$(BIN)/lint-imports --no-logo || red="$$red layers"; \
	$(BIN)/python -m pytest tests/drift || red="$$red drift"; \
	$(BIN)/python -m pytest tests/redaction/test_fuzz.py || red="$$red fuzz"; \
	HOSTILE_SECONDS=10 $(BIN)/python -m pytest tests/sinks/test_hostile_receiver.py || red="$$red hostile"; \
	test -z "$$red" || { echo "make check: red:$$red" >&2; exit 1; }

# Those of loki, jaeger and collector take 5 to 10 minutes of processor each, more than CI has: name them in ARGS.
backends: $(TOOLS) ## build or unpack real backends into the user's cache, once; ARGS="loki jaeger collector" those that take long
	@$(BIN)/python -m tests.backends.install --minutes 10 $(or $(ARGS),prometheus victoriametrics phoenix)

real: $(TOOLS) ## run the tests that drive real programs (Copilot CLI from npm, promtool, Chromium, tinyproxy, nginx, Phoenix from PyPI)
	@missing=; for one in npm:npm promtool:prometheus chromium:chromium tinyproxy:tinyproxy-bin nginx:nginx-light; do \
	  command -v "$${one%%:*}" >/dev/null || missing="$$missing $${one#*:}"; \
	done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  { apt-get -qq update && apt-get -qq install -y --no-install-recommends $$missing >/dev/null; } || \
	    echo "make real: could not install$$missing; tests that need them are skipped" >&2; \
	fi
	@command -v npm >/dev/null || { \
	  echo "make real: the Copilot CLI comes from npm, and npm is not here. Install Node.js with npm, then try again." >&2; exit 1; }
	@$(BIN)/python -m tests.real.install --old
	@$(BIN)/python -m pytest -m real $(wildcard tests/real tests/browser tests/program) $(ARGS)
	@$(BIN)/python -m pytest -m real tests/backends/test_metrics.py -k before_and_after $(ARGS)
	@$(BIN)/python -m pytest tests/dashboards $(ARGS)

packages: $(TOOLS) ## install, start and kill what people install: wheel, Debian package, single file, chart
	@$(BIN)/python -m pytest -m real tests/packages $(ARGS)

bench: $(TOOLS) ## measure speed and memory; ARGS=--write updates docs/benchmarks.md
	@$(BIN)/python -m tests.bench $(ARGS)

# RUNLEVEL=1 keeps the package from starting its service.
fleet: $(TOOLS) ## run the tests of a Mission Control on PostgreSQL, which some of them kill and restart
	@if ! command -v pgbouncer >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  { apt-get -qq update && RUNLEVEL=1 apt-get -qq install -y --no-install-recommends pgbouncer >/dev/null; } || \
	    echo "make fleet: could not install pgbouncer; the test that needs it is skipped" >&2; \
	fi
	@$(PYTEST) -m fleet tests/missioncontrol $(ARGS)

soak: $(TOOLS) ## run the long parts, each half an hour at most but `hour`; PART=soak runs one, ARGS=--list lists them
	@$(BIN)/python -m tests.soak $(PART) $(ARGS)

faults: $(TOOLS) ## show every fault that is survived, beside syslog-ng, rsyslog and Filebeat (15 minutes); ARGS="F8 F9" some
	@$(BIN)/python -m tests.faults $(ARGS)

mutate: $(TOOLS) ## change the code that decides in 600 ways and see what no test notices; ARGS="--seed 7 --count 150"
	@$(BIN)/python -m tests.mutation $(ARGS)

sbom: $(TOOLS) ## write what runs, with versions, hashes and licences, as CycloneDX
	@mkdir -p dist && $(BIN)/python -m tests.drift.sbom > dist/session-exporter.cdx.json && echo dist/session-exporter.cdx.json

# The environment is made again when the lock or the settings change, or when its interpreter is gone or too old.
# `make up` installs what runs; every other target installs the development tools as well.
$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is not here. Install Python 3.11 or newer." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot create environments. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { $(PYTHON) -m venv --clear $(ENV) && $(BIN)/python $(PIP) uninstall --quiet --yes setuptools; }
	@$(call install,requirements.lock)
	@$(BIN)/python $(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(TOOLS): $(READY) requirements-dev.lock
	@$(call install,requirements-dev.lock)
	@touch $@

# One file for Linux, macOS and Windows (environment markers) with the hashes of every published file.
# Versions stay as they are unless ARGS=--upgrade or ARGS="--upgrade-package NAME".
lock: $(UV) ## resolve the dependencies of pyproject.toml into the lock files
	@$(LOCK) --group dev --output-file requirements-dev.lock pyproject.toml
	@$(LOCK) --group build --constraint requirements-dev.lock --output-file requirements.lock pyproject.toml
	@$(LOCK) --all-extras --constraint requirements-dev.lock --output-file deploy/packages/requirements.lock pyproject.toml
	@$(LOCK) --group packages --output-file tests/packages/tools.lock

$(UV):
	@$(PYTHON) -m venv --clear $(@:%/bin/uv=%)
	@$(@D)/python $(PIP) install --quiet $(subst -,==,$(notdir $(@:%/bin/uv=%)))

clean: ## remove what the other targets made
	rm -rf $(ENV) .cache dist bench.json .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find exporter redaction otel config deploy tests -name __pycache__ -type d -prune -exec rm -rf {} +
