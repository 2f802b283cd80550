# The one way to run things. Both are overridable: make test PYTHON=python3.12 VENV=/tmp/venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
CONFIG ?= configs/demo.toml
# More flags for the command of `run`, `bench` and `chaos`, and for pytest: make test ARGS="-k budget"
ARGS ?=

BIN := $(VENV)/bin
# Stamps: written after an installation that succeeded, so that the next call skips it.
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run test check bench chaos docs clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# A new file each time, and runs/demo.sqlite as a link to the newest.
run: $(STAMP)  ## play the demo sweep on the embedded endpoint, ending with a report
	@mkdir -p runs
	@name=$$(basename $(CONFIG) .toml); latest="runs/$$name.sqlite"; \
	out="$$name-$$(date +%Y%m%d-%H%M%S)-$$$$.sqlite"; \
	echo "$(BIN)/tauasync run $(CONFIG) --out runs/$$out $(ARGS)"; \
	$(BIN)/tauasync run $(CONFIG) --out "runs/$$out" $(ARGS) || exit $$?; \
	if [ -L "$$latest" ] || [ ! -e "$$latest" ]; then ln -sfn "$$out" "$$latest"; fi

test: $(DEV_STAMP)  ## run the test suite
	$(BIN)/python -m pytest $(ARGS)

check: $(DEV_STAMP)  ## lint, format, strict types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(DEV_STAMP)  ## run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

chaos: $(DEV_STAMP)  ## play everything that can go wrong; prints what held and the seed
	$(BIN)/python -m tests.chaos $(ARGS)

docs: $(STAMP)  ## write docs/configuration.md from the schema
	$(BIN)/python -m tauasync.config.describe > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md

# Never runs/, cache/ or indexes/: what lies there was paid for.
clean:  ## remove the virtual environment and tool caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "no Python 3.11, 3.12 or 3.13 found: name one, as in make PYTHON=/path/to/python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(INSTALL) --editable .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	@touch $(STAMP) $@
