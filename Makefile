# make test   builds .venv from nothing, then lint, types and tests
# make demo   builds .venv from nothing, then matches two bundled shapes
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: setup test lint types demo bench clean

setup: $(VENV)/.ready

# Rebuilt when the dependencies change; the package itself is installed in place.
$(VENV)/.ready: pyproject.toml constraints-cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints-cpu.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints-cpu.txt --editable '.[dev]'
	touch $@

test: setup lint types
	sh tools/install_chromium.sh
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

demo: setup
	$(BIN)/python examples/demo.py

bench: setup
	$(BIN)/python -m benchmarks.compute --json

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
