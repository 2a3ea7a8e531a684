# Every target works on a fresh machine with Python 3.11 or newer and make: it creates .venv,
# installs the locked versions (hashes checked) and runs. Choose another Python with PYTHON=...
PYTHON ?= python3
PROFILE ?= quick
WORKERS ?= auto

BIN := .venv/bin
KEY := $(shell cat requirements.lock pyproject.toml | cksum | cut -d' ' -f1)
STAMP := .venv/.installed-$(KEY)
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# One thread a process: the tests run side by side, and sums do not depend on the machine.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

# The suite's core: what meets every requirement, in two or three minutes on two cores.
CORE := tests/test_*.py tests/solvers/test_contract.py tests/sources/test_files.py \
  tests/sources/test_environments.py tests/sources/test_minari.py tests/evaluation/test_systems.py \
  tests/cli/test_evaluate.py tests/experiments/test_store.py -k "not every_registered"
# Which versions test-python installs: highest, or lowest-direct for the lowest that we state.
RESOLUTION ?= highest
VERSIONS = build/versions/$(RESOLUTION)

# ray is not locked: it is larger than all the rest, and `pip install o2td[ray]` brings it.
LOCKED := dask experiments gymnasium minari sklearn docs test
TESTED := $(filter-out docs, $(LOCKED)) hdf5

.DEFAULT_GOAL := help
.PHONY: help reproduce test test-slow test-python test-lowest lint bench docs honesty notebooks
.PHONY: load fuzz mutation lock clean python

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

reproduce: $(STAMP)  ## Reproduce the paper: figures, claims and a page (PROFILE=quick or full)
	$(BIN)/o2td reproduce --profile $(PROFILE)

test: lint  ## Run every check and test but the slow ones
	$(PYTEST)

test-slow: $(STAMP)  ## Run the slow tests
	$(PYTEST) -m slow

# uv reads requirements as pip does, and can choose the lowest. Compiled code is kept apart, since
# Numba throws away what another version of it has compiled.
test-python: python  ## Run the suite's core with PYTHON=... and RESOLUTION=highest or lowest-direct
	$(PYTHON) -m venv --clear $(VERSIONS)
	$(VERSIONS)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VERSIONS)/bin/uv pip compile pyproject.toml --quiet --python $(VERSIONS)/bin/python \
	  --resolution $(RESOLUTION) $(TESTED:%=--extra %) --no-header --no-annotate --upgrade \
	  --output-file $(VERSIONS)/requirements.txt
	$(VERSIONS)/bin/uv pip install --quiet --python $(VERSIONS)/bin/python --only-binary :all: \
	  --requirement $(VERSIONS)/requirements.txt
	$(VERSIONS)/bin/uv pip install --quiet --python $(VERSIONS)/bin/python --no-deps \
	  --no-build-isolation --editable .
	NUMBA_CACHE_DIR=$(CURDIR)/$(VERSIONS)/compiled $(VERSIONS)/bin/python -m pytest -n $(WORKERS) \
	  --dist worksteal -W ignore::DeprecationWarning $(CORE)

test-lowest: RESOLUTION := lowest-direct
test-lowest: test-python  ## Run the suite's core with the lowest versions that we state

lint: $(STAMP)  ## Check format, style, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src  # strict, by pyproject.toml
	$(BIN)/lint-imports

bench: $(STAMP)  ## Measure speed against C and a NumPy loop
	$(BIN)/o2td bench

docs: $(STAMP)  ## Bring the pages up to date and build the site into site/
	$(BIN)/python -m docs._tools.refresh
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m docs._tools.check site

notebooks: $(STAMP)  ## Run the notebooks of examples/notebooks and keep their outputs
	$(BIN)/python -m docs._tools.notebooks

load: $(STAMP)  ## Stream 100 million transitions with flat memory and a resume half way
	$(BIN)/python -m benchmarks.load

# atheris is not locked: it exists for some systems only, and nothing else needs it.
fuzz: $(STAMP)  ## Call everything public with odd values, and fuzz the readers: ten minutes each
	$(BIN)/python -m benchmarks.fuzz_calls
	$(PIP) install --quiet --target build/atheris atheris
	for one in specs models logs; do \
	  PYTHONPATH=build/atheris $(BIN)/python -m benchmarks.fuzz_$$one || exit 1; done

honesty: $(STAMP)  ## Ask for the value of tasks and logs nobody here wrote, and count what trust covers
	$(BIN)/python -m benchmarks.honesty.run --purpose fresh --sets 20 --continuous
	$(BIN)/python -m benchmarks.honesty.record build/honesty.jsonl

mutation: $(STAMP)  ## Change lines of algorithms at random and see that tests notice
	$(BIN)/python -m benchmarks.mutation

lock: python  ## Choose newer versions of all requirements and write requirements.lock
	$(PYTHON) -m venv --clear build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/lock/bin/uv pip compile pyproject.toml --quiet --upgrade --universal \
	  --python-version 3.11 --fork-strategy fewest $(LOCKED:%=--extra %) --generate-hashes \
	  --custom-compile-command "make lock" --no-emit-index-url --no-emit-find-links \
	  --output-file requirements.lock

clean:  ## Remove .venv and everything that was built
	rm -rf .venv build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "o2td needs Python 3.11 or newer, and $(PYTHON) is not: try make PYTHON=python3.12"; \
	  exit 1; }

# The stamp's name holds the checksum of the lock, so a changed lock gives a new environment.
$(STAMP): | python
	$(PYTHON) -m venv --clear .venv
	$(PIP) install --quiet --require-hashes --no-deps --only-binary :all: -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	$(PIP) check
	@touch $@
