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
# No display: pictures are drawn to files. Each process takes its share of the files in order, so
# that what a file makes for its tests is made once, and who is done first takes from the others.
TEST := OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.DELETE_ON_ERROR:
.PHONY: help demo test check lint browser picture docs bench peers clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/core.stamp ## audit a model of the bundled data, print the verdict and where report.html is
	@$(BIN)/leakscope audit --out demo-report

test: lint ## lint, types, import contracts and every test, with coverage
	$(TEST) --cov

check: lint ## the same without slow tests, browser and coverage: before each commit
	$(TEST) -m "not slow and not browser"

lint: $(VENV)/dev.stamp ## format, lint, types and import contracts alone
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

browser: $(VENV)/dev.stamp ## the pages in Chromium alone, with pictures of them in screenshots/
	LEAKSCOPE_BROWSER=required LEAKSCOPE_SCREENSHOTS=$(CURDIR)/screenshots $(TEST) tests/browser

picture: $(VENV)/dev.stamp demo ## take the picture of README.md again, of the report of the demo
	$(BIN)/python tests/browser/picture.py demo-report/report.html docs/images/report.png

docs: $(VENV)/docs.stamp ## build the documentation into site/, with every link and anchor checked
	$(BIN)/python -m mkdocs build --strict
	@echo "The documentation is in site/index.html; served by python -m http.server -d site it has a search, too."

bench: $(VENV)/dev.stamp ## run every script in benchmarks/ but the one that downloads other tools
	@for script in $(filter-out benchmarks/peers.py,$(sort $(wildcard benchmarks/[a-z]*.py))); do \
	    echo "== $$script"; OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python $$script || exit 1; \
	done

peers: $(VENV)/dev.stamp ## install other tools beside it, 10 GB, and write the tables of docs/peers.md again
	$(BIN)/python benchmarks/peers.py --write docs/peers.md

clean: ## remove .venv, caches, the site, pictures and what the demo wrote
	rm -rf $(VENV) build dist site src/*.egg-info demo-report mutants screenshots htmlcov .coverage .coverage.* \
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

$(VENV)/docs.stamp: $(VENV)/pyvenv.cfg $(INPUTS)
	@echo "installing what the documentation is built with into $(VENV)" >&2
	@$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $(VENV)/core.stamp $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("Leakscope needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name another with make PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
