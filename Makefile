# Every target that needs Python makes .venv from pyproject.toml first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# No test runs them: what they name has to be there all the same.
OF_BENCHMARKS := --config-file= --exclude benchmarks/blind/ --exclude benchmarks/lines/ --ignore-missing-imports --follow-imports silent \
  --disable-error-code assignment --disable-error-code misc
# Processes that run the tests; 0 for one alone, without pytest-xdist.
WORKERS ?= 2
# Tests that keep several processes busy, or depend on seconds, run after the others, one by one: no
# more than two processes are busy at once. They have a worker, so that a test whose process ends
# (which Ray's library does to its own) is named, and the others still run.
define run_tests
$(1)/python -m pytest -m 'not runs_alone' --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder; \
  beside=$$?; $(1)/python -m pytest -m runs_alone --numprocesses $(if $(filter 0,$(WORKERS)),0,1); \
  alone=$$?; exit $$((beside + alone))
endef
OLDEST_PYTHON ?= python3.10
OLDEST := .venv-oldest
TF1 := .venv-tf1
RECORDINGS := build/recordings
SITE := build/site
PACKAGE := .venv-package
DIST := build/dist
EMPTY := build/empty_environment
# A notice of the theme's authors about their next product.
export NO_MKDOCS_2_WARNING := 1
# Containers often forbid compiled modules; then every process compiles some 700 anew (half a second).
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-oldest check format bench docs docs-serve package test-package record record-small record-committed clean

help:
	@echo 'make demo         Inception-ResNet-v2 climbs the ladder; figures beside the published ones'
	@echo 'make test         all tests and examples'
	@echo 'make test-oldest  the same on the oldest TensorFlow supported'
	@echo 'make check        ruff and mypy --strict'
	@echo 'make format       ruff format and sorted imports'
	@echo 'make bench        benchmarks/, side by side with what a user would do by hand'
	@echo 'make docs         the documentation site, in build/site; a link to nowhere is an error'
	@echo 'make docs-serve   shows the site at http://127.0.0.1:8000, made anew when a page changes'
	@echo 'make package      wheel and sdist, in build/dist, with their metadata checked'
	@echo 'make test-package installs that wheel in an empty environment, and runs the case of the README there'
	@echo 'make record       records the models of examples/recorded_models under TensorFlow 1.15.5,'
	@echo '                  and verifies their ports against it; needs Python 3.7 (TF1_PYTHON=...)'
	@echo 'make record-small the same without Inception-ResNet-v2'
	@echo 'make record-committed  writes the committed recordings anew'
	@echo 'make clean        removes the virtual environments, caches and what was built'

$(VENV)/made: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/made
	$(BIN)/python examples/inception_resnet_v2/demo.py

test: $(VENV)/made
	$(call run_tests,$(BIN))

$(OLDEST)/made: pyproject.toml
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --editable '.[dev]' 'tensorflow==2.16.*' 'tf-keras==2.16.*'
	touch $@

test-oldest: $(OLDEST)/made
	$(call run_tests,$(OLDEST)/bin)

check: $(VENV)/made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy $(OF_BENCHMARKS) benchmarks

format: $(VENV)/made
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/made
	$(BIN)/python -m benchmarks.compare_arrays
	$(BIN)/python -m benchmarks.html_report
	$(BIN)/python -m benchmarks.ladder
	$(BIN)/python -m benchmarks.loop
	$(BIN)/python -m benchmarks.many_cases
	$(BIN)/python -m benchmarks.diagnosis
	$(BIN)/python -m benchmarks.first_divergence
	$(BIN)/python -m benchmarks.noise
	$(BIN)/python -m benchmarks.maps
	$(BIN)/python -m benchmarks.port_bugs
	$(BIN)/python -m benchmarks.blind_trial --half unseen
	$(BIN)/python -m benchmarks.version_differences

docs: $(VENV)/made
	$(BIN)/mkdocs build --strict --site-dir $(SITE)

docs-serve: $(VENV)/made
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8000

$(PACKAGE)/made:
	$(PYTHON) -m venv $(PACKAGE)
	$(PACKAGE)/bin/python -m pip install --quiet 'build>=1.2' 'twine>=6'
	touch $@

package: $(PACKAGE)/made
	rm -rf $(DIST)
	$(PACKAGE)/bin/python -m build --outdir $(DIST) .
	$(PACKAGE)/bin/python -m twine check --strict $(DIST)/*

# The newest TensorFlow that pip finds for the extra: some 600 MB the first time.
test-package: package
	rm -rf $(EMPTY)
	$(PYTHON) -m venv $(EMPTY)
	$(EMPTY)/bin/python -m pip install --quiet "$$(echo $(DIST)/*.whl)[tensorflow]" 'pytest>=8.3'
	$(EMPTY)/bin/python -m pip check
	$(EMPTY)/bin/python tests/repo/try_package.py

$(TF1)/made: .ci/tf1_environment
	rm -rf $(TF1)
	.ci/tf1_environment $(TF1)
	touch $@

record: record-small
	$(BIN)/python -m examples.recorded_models.record --python $(TF1)/bin/python --out $(RECORDINGS) inception_resnet_v2
	$(BIN)/python -m examples.recorded_models.verify $(RECORDINGS) inception_resnet_v2

record-small: $(VENV)/made $(TF1)/made
	$(BIN)/python -m examples.recorded_models.record --python $(TF1)/bin/python --out $(RECORDINGS)
	$(BIN)/python -m examples.recorded_models.verify $(RECORDINGS)

record-committed: $(VENV)/made $(TF1)/made
	$(BIN)/python -m examples.recorded_models.record --python $(TF1)/bin/python --out examples/recorded_models/recordings
	$(BIN)/python -m tests.port_bugs.record --python $(TF1)/bin/python
	$(BIN)/python -m tests.repo.recorded_page --python $(TF1)/bin/python

clean:
	rm -rf $(VENV) $(OLDEST) $(TF1) $(PACKAGE) $(DIST) $(EMPTY) $(RECORDINGS) $(SITE) .pytest_cache .mypy_cache .ruff_cache
