# Everything here works on a fresh machine that has only Python (3.11 or newer) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where it is set, every process translates all sources anew, and tests start hundreds of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo quick test nightly interpreted mutants numba-matrix soak lint coverage docs docs-fresh notebooks pictures dist packages constraints bench published bench-cap bench-contexts clean
.DEFAULT_GOAL := help

help:            ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

# A stamp for each set of packages, renewed when pyproject.toml or constraints.txt changes.
# Most of what is installed is never imported, and to translate it takes longer than to install it: Python does so when needed.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
$(VENV)/stamp: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sidelong needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(INSTALL) --editable '.[cli,study,plot,service]'
	touch $@

$(VENV)/stamp-%: $(VENV)/stamp
	$(INSTALL) --group $*
	touch $@

# Two groups at once: two runs of pip would take longer, and must not meet where jobs run side by side.
$(VENV)/stamp-checks: $(VENV)/stamp
	$(INSTALL) --group lint --group test
	touch $@

# Every worker of pytest would translate all packages and tests anew where none has done so. What cannot be collected, the tests report.
$(VENV)/stamp-translated: $(VENV)/stamp-checks
	@$(BIN)/pytest -q --collect-only >/dev/null 2>&1 || true
	@touch $@

demo: $(VENV)/stamp ## set up, then run the main job
	$(BIN)/sidelong demo

lint: $(VENV)/stamp-checks ## style, types, and the order of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Databases wait for the disk in every commit: what tests write is kept in memory, where there is room and programs may run.
IN_MEMORY := $(shell grep -s ' /dev/shm tmpfs ' /proc/mounts | grep -qv noexec && \
	[ $$(df --output=avail -BG /dev/shm | tail -n 1 | tr -dc 0-9) -ge 4 ] && echo TMPDIR=/dev/shm)

# Only the files that have such tests: to read the others takes longer than to run these.
interpreted: $(VENV)/stamp-translated
	$(IN_MEMORY) NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -n 2 --dist worksteal -m "interpreted and not nightly" $$(grep -rl mark.interpreted tests)

quick:           ## before each commit, in a minute: style, types, imports, and the tests with the JIT off
	$(MAKE) --jobs 2 --output-sync lint interpreted

# What comes from the network comes meanwhile. Four workers keep two cores busy, since some tests wait; six take longer.
# Tests that quick has run as plain Python are run with the JIT on only if they show that both do the same (the mark compiled).
test:            ## all checks: those of quick, and the other tests with the JIT on
	$(MAKE) --jobs 3 --output-sync lint interpreted packages
	$(IN_MEMORY) $(BIN)/pytest -q -n 4 --dist worksteal -m "(compiled or not interpreted) and not nightly"

# Of each of these `make test` runs a small share. Without the limit of ten minutes that its tests have.
nightly: $(VENV)/stamp-checks packages build/generators/stamp build/litellm/stamp ## what takes an hour, once a night and before a release: kills, notebooks, generated clients, the site
	sh tests/packages.sh nightly
	$(IN_MEMORY) $(BIN)/pytest -q -n 2 --dist worksteal -m nightly -o faulthandler_timeout=0
	$(IN_MEMORY) $(BIN)/pytest -q -n 2 --dist worksteal -m "hypothesis and not nightly" --hypothesis-profile nightly
	$(MAKE) soak KILLS=100

mutants: $(VENV)/stamp-checks packages ## see whether the tests catch each of the faults in tests/mutants; some with ONLY="name name"
	$(BIN)/python tests/mutants/run.py $(ONLY)

# The oldest Numba that is allowed, the newest there is, and the newest with its private names hidden.
OLDEST := $(shell sed -n 's/.*"numba>=\([0-9.]*\)".*/\1/p' pyproject.toml)
SAME_BITS := tests/learners/test_digests.py tests/test_bits.py tests/test_numba.py tests/test_compilation.py

build/numba-%/stamp: pyproject.toml
	rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--editable '.[cli,study,plot,service,dask,networkx,gymnasium,river]' 'pytest>=9.0' hypothesis mpmath \
		'numba$(if $(filter oldest,$*),==$(OLDEST).*)'
	touch $@

numba-matrix: build/numba-oldest/stamp build/numba-newest/stamp ## the same bits with the oldest and the newest Numba, each in its own environment
	for each in oldest newest; do \
		PYTHONPATH=src SIDELONG_CACHE_DIR=$(CURDIR)/build/numba-$$each/cache build/numba-$$each/bin/pytest -q $(SAME_BITS) || exit 1; \
	done
	PYTHONPATH=src:tests build/numba-newest/bin/pytest -q -p public_numba -W ignore:Numba:RuntimeWarning tests/learners/test_digests.py

# Without the limit of ten minutes that other tests have. Each run is a part with a seed of its own, and prints what it did and checked.
KILLS := 250
SEED := 1
soak: $(VENV)/stamp-checks packages ## kill the service KILLS=250 times under load with SEED=1 on each database, or on ONLY=sqlite or ONLY=postgresql
	SIDELONG_KILLS=$(KILLS) SIDELONG_SEED=$(SEED) \
		$(BIN)/pytest -q -s -o faulthandler_timeout=0 \
		'tests/service/test_kills.py$(if $(ONLY),::test_nothing_acknowledged_is_lost_and_nothing_counted_twice[$(ONLY)])'

packages: build/client/stamp ## install what tests need beside Python packages: Chromium, PostgreSQL and nginx
	@tests/packages.sh

build/generators/stamp: tests/generators.sh
	@PYTHON=$(PYTHON) tests/generators.sh $(@D) || echo "The generators of clients could not be installed: their tests are skipped."

build/litellm/stamp: tests/litellm.sh client/pyproject.toml
	@PYTHON=$(PYTHON) tests/litellm.sh $(@D) || echo "LiteLLM could not be installed: its tests are skipped."

build/client/stamp: tests/client_environment.sh client/pyproject.toml constraints.txt
	@PYTHON=$(PYTHON) tests/client_environment.sh $(@D) || echo "The environment of the client could not be made: its tests are skipped."

docs: $(VENV)/stamp-docs ## the documentation as a site: docs/_build/html/index.html
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo docs/_build/html/index.html

docs-fresh: dist ## do every page in order, in an environment that has only the wheel
	rm -rf build/fresh && $(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install --quiet --disable-pip-version-check \
		"$$(ls dist/sidelong-*.whl)[cli,study,plot,service,pandas,dask,networkx,gymnasium,river]" scikit-learn
	env --unset=PYTHONPATH SIDELONG_CACHE_DIR=$(CURDIR)/build/fresh/cache build/fresh/bin/python docs/run_pages.py

pictures: $(VENV)/stamp ## draw the pictures of the documentation anew
	$(BIN)/python docs/pictures/draw.py

notebooks: $(VENV)/stamp-checks ## run the notebooks of the documentation anew, and write their outputs into them
	$(BIN)/python docs/_ext/notebooks.py

# Kernels are machine code, of which no tool knows the lines: the tests with the JIT off count those.
coverage: $(VENV)/stamp-checks ## which lines the tests reach, as a page: build/coverage/index.html. A report, and no gate
	rm -rf build/coverage && mkdir -p build/coverage
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -q -m interpreted $$(grep -rl mark.interpreted tests)
	$(BIN)/coverage run --append -m pytest -q -m "not long and not nightly"
	$(BIN)/coverage html --quiet --directory build/coverage
	$(BIN)/coverage report | tail -n 1
	@echo build/coverage/index.html

dist: $(VENV)/stamp-publish ## wheels and sdists of sidelong and sidelong-client, checked, the same bytes wherever the same hatchling builds them
	rm -rf dist && $(BIN)/python -m build --no-isolation --outdir dist >/dev/null
	$(BIN)/python client/build.py dist && $(BIN)/twine check --strict dist/* && ls dist/*

bench: $(VENV)/stamp-bench ## measure, side by side with others: one table, in five minutes
	$(BIN)/python benchmarks

published: $(VENV)/stamp-bench ## figures that others have published, beside ours: the tables of docs/published.md and README.md
	$(BIN)/python benchmarks/published

bench-cap: $(VENV)/stamp-bench ## a billion rounds: see exploration leave its cap, in about five minutes
	$(BIN)/python benchmarks/cap.py

bench-contexts: $(VENV)/stamp-bench ## decisions with features beside Vowpal Wabbit's, for which that needs an hour
	$(BIN)/python benchmarks/contexts.py

# An environment of its own, since .venv follows the file that is to be renewed.
constraints:     ## the newest versions that all groups of packages agree on, as constraints.txt
	rm -rf build/newest && $(PYTHON) -m venv build/newest
	build/newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	build/newest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--editable '.[cli,study,plot,service]' --group test --group lint --group bench --group publish
	{ head -n 1 constraints.txt; build/newest/bin/python -m pip freeze --exclude-editable; } > build/newest/constraints.txt
	mv build/newest/constraints.txt constraints.txt

clean:           ## remove the environment and all caches
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
