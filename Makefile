# Everything a developer or CI does; each verb sets up what it needs on a machine with python3 >= 3.11 and make.
# The end-to-end verbs build a real control plane once, which also wants Go.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
LOCK := requirements/dev.lock
CODE := $(wildcard vk_provider providers tests benchmarks)
PYTEST := $(PY) -m pytest
COVERED := $(PY) -m coverage run -m pytest
# Tests with sockets mostly wait; each worker has a control plane of its own.
WORKERS ?= 2
SPREAD = -n $(WORKERS) --dist loadfile
# The tests start our programs hundreds of times: each would compile every file anew.
export PYTHONDONTWRITEBYTECODE :=

# The stamps carry a checksum in their names, so that content and not a timestamp decides what is out of date.
DEPS := $(VENV)/.deps-$(shell cksum < $(LOCK) | cut -d' ' -f1)
EDITABLE := $(VENV)/.editable-$(shell cat $(LOCK) pyproject.toml | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help venv lint style types layers spelling budgets fmt test suites gates unit golden contract integration e2e rig demo story bench bench-streams conformance e2e-official contract-real fields fuzz lock clean
.NOTPARALLEL:

define header
	@printf '\n\033[1m== %s\033[0m\n' '$(1)'
endef

help:  ## list the verbs
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

venv: $(EDITABLE)  ## create .venv from the lock; nothing is installed twice

$(PY):
	$(call header,virtual environment)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is too old: Python 3.11 or newer is needed; try 'make PYTHON=python3.13'" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "no ensurepip here: trying the pip of $(PYTHON)" >&2 \
	       && $(PYTHON) -m venv --clear --without-pip $(VENV) \
	       && $(PYTHON) -m pip --python $(VENV) install --quiet pip; } \
	  || { rm -rf $(VENV); echo "cannot make a virtual environment: install the python3-venv package (Debian, Ubuntu)" >&2; exit 1; }

$(DEPS): | $(PY)
	$(call header,dependencies from $(LOCK))
	@rm -f $(VENV)/.deps-*
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

$(EDITABLE): $(DEPS)
	@rm -f $(VENV)/.editable-*
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Each check runs even if one before it failed: a developer wants to see all of them.
lint: venv  ## format, lint, types, layers, spelling, budgets
	@$(MAKE) --no-print-directory --keep-going style types layers spelling budgets

style: venv
	$(call header,style)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: venv
	$(call header,types)
	$(PY) -m mypy $(CODE)

layers: venv
	$(call header,layers)
	$(VENV)/bin/lint-imports --no-cache --no-logo

spelling: venv
	$(call header,spelling)
	$(VENV)/bin/codespell

budgets: venv  ## the size and style budgets alone
	$(call header,budgets)
	$(PYTEST) tests/test_architecture.py

fmt: venv  ## format and fix what can be fixed
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

# The gates come last: they are tests too, so that a run ends with pytest's own closing line.
test: venv  ## every suite in order, then the coverage gates
	@$(PY) -m coverage erase
	@$(MAKE) --no-print-directory suites PYTEST='$(COVERED)'
	@$(MAKE) --no-print-directory gates

suites: unit golden contract integration e2e

unit: export PYTHONASYNCIODEBUG := 1
unit: venv  ## pure and fast: no socket, no sleep, under ten seconds
	$(call header,unit tests)
	$(PYTEST) tests/unit --session-timeout=60 -p no:schemathesis -p no:anyio

golden: venv  ## translations against recorded pairs
	$(call header,golden tests)
	$(PYTEST) tests/golden

contract: export PYTHONASYNCIODEBUG := 1
contract: venv rig  ## the suite that every provider must pass
	$(call header,contract tests)
	$(PYTEST) tests/contract $(SPREAD)

integration: export PYTHONASYNCIODEBUG := 1
integration: venv rig  ## real sockets and TLS
	$(call header,integration tests)
	$(PYTEST) tests/integration $(SPREAD)

e2e: venv rig  ## a real control plane, kubectl and the command line
	$(call header,end-to-end tests)
	$(PYTEST) tests/e2e $(SPREAD)

gates: venv
	$(call header,coverage)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report --skip-covered || true
	@$(PY) -m coverage html --quiet
	$(PYTEST) tests/test_coverage.py

rig: venv
	$(call header,control plane)
	$(PY) -m tests.rig build

demo: venv rig  ## a pod on a node that is not there
	$(PY) -m tests.demo

story: venv rig  ## training pushes, inference flows out and comes home: in real parts, with a picture
	$(PY) -m tests.rig build kueue descheduler
	$(PY) -m tests.story

bench: venv rig  ## measure against the peers
	$(PY) -m benchmarks

bench-streams: venv rig  ## measure exec, logs and port-forward against the Go streaming server
	$(PY) -m benchmarks.streams

conformance: venv rig  ## the official suites against the virtual node
	$(PY) -m tests.conformance

# Root and a few Debian packages are needed, and nobody wants either by surprise: it says which, and INSTALL=1 installs.
e2e-official: venv rig  ## Kubernetes' own suite on the virtual node, a real kubelet behind it (as root; 30 minutes)
	$(call header,the official suite)
	$(PY) -m tests.official $(if $(INSTALL),--install)

contract-real: venv rig  ## the contract of the other-cluster provider, a real kubelet behind it (as root; 2 minutes)
	$(call header,the contract on a real kubelet)
	$(PY) -m tests.official --contract $(if $(INSTALL),--install)

fields: venv  ## write the tables of fields in docs/ anew
	$(PY) -m tests.fields

# atheris has an environment of its own, on Linux with a Python that it has wheels for (3.11 to 3.13). The parsers
# need nothing else.
FUZZ_SECONDS ?= 600
FUZZ := .cache/fuzz
FUZZ_VENV := $(FUZZ)/venv-$(shell cksum < requirements/fuzz.lock | cut -d' ' -f1)

$(FUZZ_VENV): | $(PY)
	$(call header,atheris)
	@rm -rf $(FUZZ)/venv-*
	$(PY) -m venv --without-pip $@.new
	$(PY) -m pip --python $@.new install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.lock
	@mv $@.new $@

fuzz: $(FUZZ_VENV)  ## fuzz both parsers, FUZZ_SECONDS each (600)
	@for target in spdy messages; do \
	  printf '\n\033[1m== fuzz %s for %s s\033[0m\n' $$target $(FUZZ_SECONDS); \
	  $(FUZZ_VENV)/bin/python -m tests.fuzz $$target $(FUZZ) -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

# uv only resolves; nobody needs it to install. No index address is written, so that any mirror serves the locks.
UV := .cache/lock/bin/uv
RESOLVE = $(UV) pip compile --upgrade --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --no-emit-find-links

$(UV): | $(PY)
	$(PY) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check uv

lock: $(UV)  ## resolve the newest dependencies into requirements/
	$(RESOLVE) pyproject.toml --all-extras --group dev --output-file requirements/dev.lock
	$(RESOLVE) pyproject.toml --all-extras --constraint requirements/dev.lock --output-file requirements/run.lock
	$(RESOLVE) --group build --constraint requirements/dev.lock --output-file requirements/build.lock
	$(RESOLVE) --group fuzz --output-file requirements/fuzz.lock
	@! grep -nE '://|^ *--(index|extra-index|find-links)' requirements/*.lock \
	  || { echo 'a lock holds an index address' >&2; exit 1; }

clean:  ## remove everything that was made, the virtual environment too
	rm -rf $(VENV) .cache/lock .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
