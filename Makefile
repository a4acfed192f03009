# Everything a developer types. The first target that needs it sets up .venv (scripts/setup.sh).
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
TABLES ?=
export PYTHON TABLES
# pyright comes whole from its wheel, and node from another: nothing is to be looked up elsewhere.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

BIN := .venv/bin
READY := .venv/.ready
C_FILES := find $(wildcard native src tests examples benchmarks) \( -name '*.[ch]' -o -name '*.cpp' \) -not -path '*/golden/*' -print0
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

.PHONY: help setup demo test test-all lint format bench clean
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml scripts/setup.sh $(shell find native)
	@scripts/setup.sh

setup: $(READY) ## make .venv with Tilewright and all tools

demo: $(READY) ## a language model tells a story on a simulated chip, then every other part in a line (TABLES=1 prints all)
	@scripts/demo.sh

# Runs a command while `make lint` runs beside it. What lint prints comes at the end, in one piece; either may fail.
define beside_lint
	@mkdir -p build; $(MAKE) --no-print-directory lint >build/lint.log 2>&1 & lint=$$!; \
	trap "kill $$lint 2>/dev/null || true" EXIT; \
	tested=0; { $(1); } || tested=$$?; \
	linted=0; wait $$lint || linted=$$?; \
	cat build/lint.log; \
	[ $$linted -eq 0 ] || echo "make lint failed; see above"; \
	[ $$tested -eq 0 ] || echo "the tests failed; see above"; \
	exit $$(( tested ? tested : linted ))
endef

test: $(READY) ## lint and the tests but slow ones, of large families a sample by the day (ARGS="-k name" goes to pytest)
	$(call beside_lint,$(PYTEST) -m "not slow" --sample-seed today $(ARGS))

test-all: $(READY) ## lint and all tests; where TILEWRIGHT_CASES is set, also its cases on simulated chips
	$(call beside_lint,$(PYTEST) $(ARGS) && { [ -z "$${TILEWRIGHT_CASES:-}" ] || $(BIN)/python -m benchmarks chip_matrix --jobs $(WORKERS); })

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
