# Two commands: `make demo` runs the main job, `make test` checks nearly everything. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin
comma := ,
# `make test TORCH=0` neither installs PyTorch nor tests what needs it, and says so.
TORCH ?= 1
TESTS := test$(if $(filter 0,$(TORCH)),,$(comma)test-torch)
READY := .venv/ready-test$(if $(filter 0,$(TORCH)),,-torch)

.PHONY: demo test test-long test-minimum test-cuda soak lint docs bench bench-check clean

demo: .venv/ready
	@$(BIN)/freewalk demo

# A file of tests stays with one worker, which makes what they share once. One worker more than there are cores, since tests of
# processes wait for them. One thread for linear algebra in each worker: more of them wait for each other.
WORKERS = $$($(BIN)/python -c "import os; print(len(os.sched_getaffinity(0)) + 1 if hasattr(os, 'sched_getaffinity') else 'auto')")
PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 FREEWALK_TEST_TORCH=$(TORCH) $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder

test: lint
	@$(PYTEST) -m "not long and not soak"

# What takes longer: every rule with every objective, the paper reproduced, the kernels of a card in a simulator, edits of
# every function. CI runs it too.
test-long: $(READY)
	@$(PYTEST) -m long

# The lowest versions that pyproject.toml allows of what it names, on the lowest Python: the demo and the quick tests. All else
# is as new as it gets, so the environment is made anew each time. Old packages warn of what they find in new ones; that
# is not an error here. PyTorch of that age brings gigabytes of CUDA along, unless TORCH=0.
MINIMUM_PYTHON ?= python3.11
test-minimum: BIN := .venv-minimum/bin
test-minimum:
	@rm -rf .venv-minimum && $(MINIMUM_PYTHON) -m venv .venv-minimum
	@echo "Installing freewalk and the lowest versions of what it needs into .venv-minimum ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --resolution lowest-direct --editable '.[test$(if $(filter 0,$(TORCH)),,$(comma)torch)]'
	@$(BIN)/freewalk demo
	@FREEWALK_TEST_MINIMUM=1 $(PYTEST) -W default::DeprecationWarning -m "not long and not soak"

# What takes an hour: kills at every single write, a million schedules of the protocol, and storms over networks of processes:
# 400 kills, links that are cut, nodes that are stopped, disks that are lost or old, and a neighbour that lies.
soak: $(READY)
	@$(PYTEST) -m soak
	@$(BIN)/python tests/robustness/schedules.py 1000000
	@$(BIN)/python tests/robustness/storm.py --nodes 30 --steps 5000 --kills 200 --seed 1
	@$(BIN)/python tests/robustness/storm.py --nodes 30 --steps 5000 --kills 100 --seed 2 --tokens 3 --sag --liar
	@$(BIN)/python tests/robustness/storm.py --nodes 30 --steps 5000 --kills 100 --seed 3 --tokens 2 --liar --disks 20

# The contract tests on a graphics card, where there is one.
test-cuda: .venv/ready-cuda
	@FREEWALK_TEST_RUNTIME=CUDA $(BIN)/python -m pytest tests/contract

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# The site, in docs/_build/html. A warning, such as a link that leads nowhere, is an error; all pages are read each time, since
# a page that has not changed does not warn again.
docs: .venv/ready-docs
	@$(BIN)/python -m sphinx --builder html --quiet --fail-on-warning --keep-going --fresh-env --doctree-dir docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: .venv/ready
	@$(BIN)/python benchmarks/speed.py

# Ratios within one run against those in benchmarks/baseline.json; not part of `test`, which must not depend on noise.
bench-check: .venv/ready
	@$(BIN)/python benchmarks/check.py

# A stamp is renewed when the package's own description changes, so that a second run starts at once.
.venv/ready: pyproject.toml
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "Installing freewalk into .venv (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/ready-test .venv/ready-test-torch: pyproject.toml
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "Installing freewalk and what its tests need into .venv (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(TESTS)]'
	@touch .venv/ready $@

.venv/ready-docs: pyproject.toml
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "Installing freewalk and what its site needs into .venv (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch .venv/ready $@

.venv/ready-cuda: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(TESTS),cuda]'
	@touch $@

clean:
	rm -rf .venv .venv-minimum build dist runs benchmarks/results docs/_build
