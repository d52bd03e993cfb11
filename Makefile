# Needs Python 3.11 or newer and nothing else; everything is installed into .venv.
#   make PYTHON=python3.12 test      another interpreter
#   make WORKERS=8 test              more test processes

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip -qq --disable-pip-version-check
INPUTS  := pyproject.toml constraints.txt src/leakscope/__init__.py

# One thread per process: the tests already run as many processes as there are workers.
# No display: pictures are drawn to files.
TEST := OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m pytest --numprocesses $(WORKERS)

.DELETE_ON_ERROR:
.PHONY: help demo test check lint bench clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/core.stamp ## audit a model of the bundled data, print the verdict and where report.html is
	@$(BIN)/leakscope audit --out demo-report

test: lint ## lint, types, import contracts and every test, with coverage
	$(TEST) --cov

check: lint ## the same without the slow tests and without coverage: before each commit
	$(TEST) -m "not slow"

lint: $(VENV)/dev.stamp ## format, lint, types and import contracts alone
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/dev.stamp ## run every script in benchmarks/, one after the other
	@for script in benchmarks/[a-z]*.py; do \
	    echo "== $$script"; OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python $$script || exit 1; \
	done

clean: ## remove .venv, caches and what the demo wrote
	rm -rf $(VENV) build dist src/*.egg-info demo-report htmlcov .coverage .coverage.* \
	    .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# The demo needs the core alone; the tests add to the same environment.
$(VENV)/core.stamp: $(VENV)/pyvenv.cfg $(INPUTS)
	@echo "installing leakscope into $(VENV)" >&2
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/pyvenv.cfg $(INPUTS)
	@echo "installing leakscope and what its tests need into $(VENV)" >&2
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $(VENV)/core.stamp $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("Leakscope needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name another with make PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
