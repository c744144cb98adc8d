# make demo    match two bundled shapes
# make check   before a commit: lint, types and quick tests, in about a minute
# make test    everything that continuous integration runs: lint, types and all tests
# make lint    ruff: rules and format
# make types   mypy, strict
# make quick   tests without those marked `slow`
# make bench   time of the compute core beside a plain reference
# make clean   remove .venv and caches
#
# Each target first builds .venv if it is missing or older than the dependencies.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: setup demo check test lint types quick quick-pairs quick-others bench clean

setup: $(VENV)/.ready

# Rebuilt when the dependencies change; the package itself is installed in place.
$(VENV)/.ready: pyproject.toml constraints-cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints-cpu.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints-cpu.txt --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

# Two jobs for two cores, with one thread each, so that they do not compete.
check: setup
	OMP_NUM_THREADS=1 $(MAKE) --no-print-directory --jobs 2 quick-pairs types quick-others lint

test: setup lint types
	sh tools/install_chromium.sh
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

quick: quick-pairs quick-others

# About half of the time of the quick tests is spent in these rooms.
PAIRS := tests/evaluation tests/matching tests/refinement tests/training

quick-pairs: setup
	$(BIN)/python -m pytest -m "not slow" $(PAIRS)

quick-others: setup
	$(BIN)/python -m pytest -m "not slow" $(addprefix --ignore=,$(PAIRS))

bench: setup
	$(BIN)/python -m benchmarks.compute --json

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
