# `make quickstart` and `make test` work from a fresh clone: they make .venv and install what is missing.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STATISTICS := $(VENV)-statistics/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check install

# Libraries start a thread per core by themselves; trainings and tests run side by side.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: quickstart example test tests test-fast test-long test-late test-cluster test-statistics test-faults test-losses test-standin check docs diagrams bench-gpu calibrate mutants durations clean

quickstart: $(VENV)/runtime.stamp
	$(RUN) -m reproduce run quickstart $(ARGS)

# Draws docs/example.html from the store of `make quickstart`; ARGS="--store FILE" names another store. The page of fourteen
# losses is drawn from the searches that come with the suite.
example: $(VENV)/runtime.stamp
	$(RUN) -m reproduce report quickstart --to docs/_build/example $(ARGS)
	cp docs/_build/example/quickstart/index.html docs/example.html
	$(RUN) -m reproduce store import results/measured/reality_check_glyphs.zip --store docs/_build/glyphs.sqlite
	$(RUN) -m reproduce report reality_check/glyphs --store docs/_build/glyphs.sqlite --to docs/_build/example
	cp docs/_build/example/reality_check_glyphs/index.html docs/fourteen_losses.html

# Tests that share a run or a module's fixtures are in one process, the longest groups first (tests/support/durations.py).
PYTEST := $(RUN) -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# Linters, types and docs run beside the tests. All three end, and it fails if one of them does.
test: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory --keep-going --output-sync=line -j 3 tests check docs

tests: $(VENV)/dev.stamp
	$(PYTEST)

test-fast: $(VENV)/dev.stamp
	$(PYTEST) -m "not slow and not long and not faults and not cluster and not late" $(ARGS)

# The losses with the pytorch-metric-learning that is installed, whichever version: run it first under a new one. Installs nothing.
LOSS_TESTS := tests/losses tests/protocols/training/test_library_versions.py
test-losses:
	$(or $(wildcard $(RUN)),$(PYTHON)) -m pytest $(LOSS_TESTS) $(ARGS)

# The same with our stand-in for its version 3, and what reads cards and builds methods. CI runs it after `make test`. The
# path is whole, for processes that start in another folder.
CARD_TESTS := tests/protocols/training/test_build_method.py tests/reproduce/config tests/reproduce/commands/test_new.py
test-standin: $(VENV)/dev.stamp
	PYTHONPATH=$(CURDIR)/tests/standin $(PYTEST) $(LOSS_TESTS) $(CARD_TESTS) $(ARGS)

# Kills, and audits of every shipped file. CI runs it after `make test`.
test-late: $(VENV)/dev.stamp
	$(PYTEST) -m "late and not long and not faults" --durations 5 $(ARGS)

# Whole runs, simulations of coverage, every card in every experiment. For a change of what they cover, and releases.
test-long: $(VENV)/dev.stamp
	$(PYTEST) -m long --durations 5 $(ARGS)

# Nodes of Ray; some are killed. CI runs it after `make test`.
test-cluster: $(VENV)/dev.stamp
	$(RUN) -m pytest -m "cluster and not long" --durations 5 tests/reproduce tests/results tests/faults $(ARGS)

# Statistics and tables need no torch. They are tested under another Python as well: make test-statistics PYTHON=python3.13
test-statistics:
	$(PYTHON) -m venv --clear $(VENV)-statistics
	grep -v "^torch==" requirements.lock | $(STATISTICS) -m pip --disable-pip-version-check install --no-compile --no-deps -r /dev/stdin
	$(STATISTICS) -m pip --disable-pip-version-check install --no-compile -c requirements-dev.lock pytest pytest-xdist hypothesis jsonschema
	$(STATISTICS) -m pytest -n 2 --dist loadgroup --no-loadscope-reorder tests/results tests/reports \
		--ignore tests/results/answer/test_calibration.py --ignore tests/reports/board/test_board_table.py $(ARGS)

# Kills, interrupts and damaged input in large numbers. `make test-late` runs a few of each.
test-faults: $(VENV)/dev.stamp
	$(RUN) -m pytest -m faults --durations 0 tests/faults $(ARGS)

check: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# Reads nothing from the network. A warning is an error, a broken reference too.
docs: $(VENV)/dev.stamp
	$(RUN) -m sphinx --builder html --nitpicky --fail-on-warning --keep-going --quiet docs docs/_build/html

# The drawings are kept beside their sources, so that only who changes one needs Graphviz.
diagrams: docs/images/rooms.svg docs/images/way_of_a_number.svg

docs/images/%.svg: docs/images/%.dot
	dot -Tsvg $< -o $@

# On a GPU, in at most 9 minutes. Installs nothing: packaging/gpu_machine.sh is for machines without
# network, and a machine that has all packages needs no $(VENV).
bench-gpu:
	$(or $(wildcard $(RUN)),$(PYTHON)) -m benchmarks.gpu $(ARGS)

# Simulates tables for some minutes; writes calibration.json, board_calibration.json and paired_calibration.json in results/measured.
calibrate: $(VENV)/dev.stamp
	$(RUN) -m benchmarks.calibration $(ARGS)
	$(RUN) -m benchmarks.board_calibration
	$(RUN) -m benchmarks.paired_calibration

# One that was begun and not finished has no pip. One that you made yourself stays, if its Python is new enough.
$(VENV)/made.stamp:
	@if [ -e $(VENV) ] && ! $(RUN) -m pip --version > /dev/null 2>&1; then \
		echo "$(VENV) was begun and not finished; it is made anew"; rm -rf $(VENV); fi
	@python="$(PYTHON)"; [ -e $(VENV) ] && python=$(RUN); \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $$python is missing or older than Python 3.11; install a newer one and name it: make PYTHON=python3.12" \
		"(remove $(VENV) first, if there is one)"; exit 2; }
	@[ -e $(VENV) ] || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "error: $(PYTHON) cannot make $(VENV); on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@touch $@

# Without compiling: Python compiles what it imports, which is a part of the packages.
$(VENV)/runtime.stamp: requirements.lock pyproject.toml | $(VENV)/made.stamp
	$(PIP) --no-compile -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/runtime.stamp
	$(PIP) --no-compile -r requirements-dev.lock
	touch $@

# Measures every test that `make test` runs; those above half a second are `slow` afterwards.
durations: $(VENV)/dev.stamp
	$(RUN) -m pytest -p tests.support.durations $(ARGS)

# Changes core modules in small ways and counts how often their fast tests notice: ARGS="protocols.datasets.splits*" takes one of them.
mutants: $(VENV)/dev.stamp
	$(PIP) "mutmut>=3.8"
	$(VENV)/bin/mutmut run $(ARGS)

clean:
	rm -rf $(VENV) $(VENV)-statistics docs/_build mutants *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
