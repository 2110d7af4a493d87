# The interface of the project; CI calls the same targets.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
JOBS ?= 2
SOURCES = $(wildcard precbench/kernels/*.p[yx]x precbench/kernels/*.pxd precbench/kernels/*.h)

.PHONY: help build run test lint bench reproduce clean

help:  ## Show the targets.
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

build: $(VENV)/.built  ## Make the environment and compile the kernels.

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
NEEDS = pyproject.toml setup.py $(SOURCES)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.built: $(NEEDS) | $(BIN)/python
	$(INSTALL) .
	touch $@

$(VENV)/.dev: $(NEEDS) | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch $(VENV)/.built $@

run: build  ## Run the headline experiment: table on the screen, plots in results/kdd08.
	$(BIN)/precbench run configs/kdd08.yaml --jobs $(JOBS)

test: $(VENV)/.dev  ## Run the tests.
	$(BIN)/python -m pytest

lint: $(VENV)/.dev  ## Check style, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(BIN):$$PATH" cython-lint precbench
	$(BIN)/lint-imports

bench: build  ## Measure speed as ratios, contestants interleaved.
	OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/bench.py

reproduce: build  ## Run every experiment that the data at hand allow.
	for config in letter adult ijcnn1 w8a cod_rna kdd08 ppi covtype \
	    kar2015/fig3-kappa kar2015/fig3-batch kar2015/counterexample kar2015/bounds; do \
	    $(BIN)/precbench run $$config --jobs $(JOBS) || exit; done

clean:  ## Remove what was built, but no results.
	rm -rf build $(VENV) precbench.egg-info precbench/kernels/*.so precbench/kernels/*.c
