# Every target does its own set-up: clone, then `make demo` or `make test`.

PYTHON ?= python3.11
BIN := .venv/bin
# Two stages of one environment: what penstock runs with, and what it is developed with as well.
RUNNABLE := .venv/.runnable
INSTALLED := .venv/.installed
# Spark starts the java of JAVA_HOME; looked up when a recipe runs, after `jdk` has seen to it.
WITH_JDK = JAVA_HOME="$$(scripts/jdk)"
PIN := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes \
  --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.DEFAULT_GOAL := help
# Targets share .venv. The tests use all cores by themselves.
.NOTPARALLEL:
.PHONY: help demo test test-all test-deeper kills check lint format types contract bench wheel \
  try-wheel jdk lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUNNABLE) jdk ## join the streams of an auction site on Spark, and watch it
	$(WITH_JDK) $(BIN)/penstock demo

test: $(INSTALLED) jdk ## run a cut of every family of tests; the same examples each time
	$(WITH_JDK) $(BIN)/python tests/families.py quick $(FAMILY)

test-all: $(INSTALLED) jdk ## run all families with all seeds, drawn anew, and again with the JIT off
	$(WITH_JDK) $(BIN)/python tests/families.py all $(FAMILY)

# What scales further than `make test`, and the kernels as coverage sees them.
test-deeper: $(INSTALLED) jdk
	$(WITH_JDK) $(BIN)/python tests/families.py ci $(FAMILY) --deeper

kills: $(INSTALLED) jdk ## kill Spark's processes at random moments, for some minutes
	$(WITH_JDK) PYTHONPATH=tests $(BIN)/python -m support.kills $(SEED)

check: lint types contract test ## lint, types, layers, tests: what a change must pass

lint: $(INSTALLED) ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(INSTALLED) ## mend style and formatting where that is safe
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(INSTALLED) ## check types
	$(BIN)/mypy --strict src

contract: $(INSTALLED) ## check that each layer imports only the layers below it
	$(BIN)/lint-imports --no-logo

bench: $(INSTALLED) jdk ## measure against peers, as ratios in one run
	$(WITH_JDK) $(BIN)/python -m benchmarks

wheel: $(RUNNABLE) ## build a wheel, into dist
	rm -f dist/penstock-*.whl
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/penstock-*.whl

try-wheel: wheel jdk ## try the wheel in an environment of its own, as a new user has it
	$(WITH_JDK) scripts/try-wheel $(PYTHON) dist/penstock-*.whl

jdk: ## find a JDK 17 or newer, or install one
	@scripts/jdk --install > /dev/null

# run.txt is a part of dev.txt, so that either can be installed over the other.
lock: $(INSTALLED) ## pin the requirements anew (newer versions: make lock UPGRADE=--upgrade)
	$(PIN) $(UPGRADE) --extra lab --extra spark --output-file requirements/dev.txt \
	  pyproject.toml requirements/dev.in
	$(PIN) --upgrade --extra spark --constraint requirements/dev.txt \
	  --output-file requirements/run.txt pyproject.toml requirements/run.in

clean: ## remove the virtual environment and everything built
	rm -rf .venv build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
	  .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNNABLE): requirements/run.txt pyproject.toml
	@echo "installing into .venv what penstock runs with, Spark above all: one to five minutes"
	scripts/install $(PYTHON) .venv requirements/run.txt
	touch $@

$(INSTALLED): requirements/dev.txt pyproject.toml
	@echo "installing into .venv what penstock is developed with: two to five minutes"
	scripts/install $(PYTHON) .venv requirements/dev.txt
	touch $(RUNNABLE) $@
