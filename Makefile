# Every target sets up what it needs by itself: Python 3.10+ and Java 17 are all that must be there.
PYTHON ?= python3
VENV ?= .venv
TEST_PROCESSES ?= 2
OSV ?= https://api.osv.dev
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Without compiled files each process of a run compiles all tests anew, which takes it 6 seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup jars demo programs classes test test-quick test-long check bench bench-quick format docs docs-site pictures manifests lock audit sbom clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Python compiles what is imported; compiling all 12,000 modules takes 50 seconds.
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $(STAMP)

setup: $(STAMP) ## a virtual environment with everything the lock file names

jars: $(STAMP) ## resolve the jars into the cache (DISTRIBUTARY_JARS overrides where)
	$(BIN)/python -m distributary.launch.jars

demo: $(STAMP) ## the whole thing on this machine: broker, change events, service, tables
	$(BIN)/distributary demo $(DEMO_ARGS)

check: $(STAMP) ## formatter, linter, type checker
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

programs: # what tests need beside Python's packages; where it can't be installed its tests fail, and no others
	@tests/programs.sh || true

classes: programs $(STAMP) # an archive of Spark's classes, with which the tests' many JVMs start faster
	PYTHONPATH=. $(BIN)/python -m tests.support.class_archive

test: programs $(STAMP) check classes ## all set-up, then all tests (TEST_PROCESSES at once, each with a Spark of its own)
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --no-loadscope-reorder $(TEST_ARGS)

test-quick: $(STAMP) ## the tests without Java, network or other programs: unit and model, without large inputs and most random cases
	$(BIN)/python -m pytest tests/unit tests/model -n $(TEST_PROCESSES) -m "not slow and not thorough" --random-share 0.01 $(TEST_ARGS)

test-long: $(STAMP) classes ## the tests that take too long for every change
	$(BIN)/python -m pytest -m slow $(TEST_ARGS)

bench: $(STAMP) ## how fast it is beside what people copy; on a machine that does nothing else
	PYTHONPATH=. $(BIN)/python -m tests.benchmarks $(BENCH_ARGS)

bench-quick: $(STAMP) ## the same, small, and only some of it
	PYTHONPATH=. $(BIN)/python -m tests.benchmarks --quick $(BENCH_ARGS)

format: $(STAMP) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP) ## write the pages anew that are made from the code
	$(BIN)/python -m distributary.reference

pictures: $(STAMP) ## the pictures of the status page in the docs, made anew from the real page
	DISTRIBUTARY_PICTURES=docs $(BIN)/python -m pytest -q tests/browser/test_pictures.py

docs-site: $(STAMP) ## the docs as a site in build/site; fails at a link that leads nowhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

manifests: $(STAMP) ## write deploy/kubernetes anew from the Helm chart, and what the chart has of other files
	$(BIN)/python -m tests.support.manifests

lock: ## write requirements.lock anew from pyproject.toml, and the hashes of the jars
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-header --no-emit-index-url --no-emit-find-links --generate-hashes --extra dev pyproject.toml -o requirements.lock
	PYTHONPATH=service $(BIN)/python -m distributary.launch.jars --lock > jars.new && mv jars.new service/distributary/launch/jars.sha256
	PYTHONPATH=service $(BIN)/python -c 'from distributary.demo.broker import JARS; print(JARS.lock(), end="")' > jars.new && mv jars.new service/distributary/demo/kafka.sha256

audit: $(STAMP) ## look up known weaknesses of Python's packages and of all jars (asks api.osv.dev; OSV=URL names another)
	$(BIN)/python -m pip_audit --requirement requirements.lock --require-hashes --disable-pip --strict \
		--vulnerability-service osv --osv-url $(OSV)/v1/query
	PYTHONPATH=. $(BIN)/python -m tests.support.jar_audit --osv $(OSV)

sbom: $(STAMP) ## what wheel and image are made of, as CycloneDX in build/sbom
	PYTHONPATH=. $(BIN)/python -m tests.support.bill_of_materials

clean: ## remove what the targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
