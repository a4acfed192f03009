# Everything a developer types. The first target that needs it sets up .venv (scripts/setup.sh).
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
export PYTHON
# pyright comes whole from its wheel, and node from another: nothing is to be looked up elsewhere.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

BIN := .venv/bin
READY := .venv/.ready
C_FILES := find $(wildcard src tests examples benchmarks) -name '*.[ch]' -not -path '*/golden/*' -print0
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

.PHONY: help setup demo test test-all lint format bench clean
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml scripts/setup.sh
	@scripts/setup.sh

setup: $(READY) ## make .venv with Tilewright and all tools

demo: $(READY) ## compile, build and run the example networks, and compare the results
	@$(BIN)/tilewright run examples/models/*.onnx --report build/demo

test: lint ## all checks and the tests, without those marked slow (ARGS="-k name" goes to pytest)
	@$(PYTEST) -m "not slow" $(ARGS)

test-all: lint ## all checks and all tests
	@$(PYTEST) $(ARGS)

lint: $(READY) ## ruff, clang-format and pyright, changing nothing
	@echo "ruff";         $(BIN)/ruff check --quiet .
	@echo "ruff format";  $(BIN)/ruff format --quiet --check .
	@echo "clang-format"; $(C_FILES) | xargs -0r $(BIN)/clang-format --dry-run -Werror
	@echo "pyright";      $(BIN)/pyright --pythonpath $(BIN)/python

format: $(READY) ## bring all files into shape
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .
	@$(C_FILES) | xargs -0r $(BIN)/clang-format -i

bench: $(READY) ## measure against other generators and runtimes (benchmarks/)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[bench]'
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## remove .venv, builds and caches
	@rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -prune -exec rm -rf {} +
