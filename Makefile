PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN ?= runs/demo
# Bytecode is kept whatever the environment says: some fifty interpreters would compile all of it anew.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -n 2 --dist worksteal
QUICK := $(addprefix tests/,answers core curricula estimators evaluation gates judges runs)
EVIDENCE ?= examples/evidence
PLANS ?= $(sort $(wildcard examples/compare/*.yaml examples/compare/judging/*.yaml))

ENGINES ?= .venv-engines
TEST_ENGINES = ROLLWISE_ENGINES=1 OMP_NUM_THREADS=1 $(ENGINES)/bin/python -m pytest tests/engines_real --durations 0

.PHONY: demo quick test test-all test-engines test-engines-all lint bench compare evidence evidence-small golden help-snapshots docs clean

demo: $(VENV)/.installed  ## Train the embedded policy on Countdown with the default method; ends with the report's path
	@if [ -f $(RUN)/config.yaml ]; then $(BIN)/rollwise train --resume $(RUN); \
	else $(BIN)/rollwise train --task countdown --curriculum recommended --steps 60 --seed 0 --out $(RUN); fi

quick: $(VENV)/.installed  ## The tests that need no training and no page: under a minute, for every save
	$(PYTEST) $(QUICK) -m "not slow"

test: $(VENV)/.installed lint  ## Lint, types, and every test
	$(PYTEST)

test-all: $(VENV)/.installed lint  ## As `test`, with five times as many examples for every property
	$(PYTEST) --hypothesis-profile thorough

test-engines:  ## Real engines (verl on a CPU), in an environment of their own; skipped where that can't be installed
	@$(MAKE) --no-print-directory $(ENGINES)/.installed || { echo "skipped: no environment for engines, for the reason above"; exit 0; }; \
	$(TEST_ENGINES) -m "not all"

test-engines-all:  ## All of them, by hand: minutes each
	@$(MAKE) --no-print-directory $(ENGINES)/.installed
	$(TEST_ENGINES)

# verl pins a transformers of its own, so engines can't share the environment of TRL
$(ENGINES)/.installed: constraints-engines.txt
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --upgrade pip
	$(ENGINES)/bin/python -m pip install --quiet --constraint constraints-engines.txt torch
	$(ENGINES)/bin/python -m pip install --quiet --constraint constraints-engines.txt --requirement requirements-engines.txt
	$(ENGINES)/bin/python -m pip install --quiet --no-deps --editable .
	@touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

compare: $(VENV)/.installed  ## Methods x seeds on the tasks that tell them apart (hours; PLANS=FILE for one); goes on where it was
	@$(BIN)/python examples/compare/references.py
	@for plan in $(PLANS); do $(BIN)/rollwise compare $$plan || exit 1; done

evidence-small: $(VENV)/.installed  ## One plan of each part of the evidence, under two hours on two cores; goes on where it was
	$(BIN)/python examples/evidence/starts.py small
	$(BIN)/python benchmarks/evidence.py examples/evidence/small

evidence: $(VENV)/.installed  ## All plans of the evidence (days; EVIDENCE=PATH for some); goes on where it was
	$(BIN)/python examples/evidence/starts.py
	$(BIN)/python benchmarks/evidence.py $(EVIDENCE)

golden: $(VENV)/.installed  ## What the commands write, against tests/golden/hashes.json (recorded on one machine; record first on another)
	$(BIN)/python tests/golden/golden.py check

help-snapshots: $(VENV)/.installed  ## What every command's --help says, as kept in tests/cli/help/, and the tables of docs/launch.md, docs/howto/presets.md and docs/howto/rewards.md
	$(BIN)/python tests/cli/test_help.py
	$(BIN)/python tests/launching/test_verl_command.py
	$(BIN)/python tests/sampling/test_presets.py
	$(BIN)/python tests/answers/test_labelled.py

bench: $(VENV)/.installed  ## Speed and memory at a thousand to a million prompts (minutes)
	$(BIN)/python benchmarks/scale.py

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rollwise needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) $(ENGINES) .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: docs
docs: $(VENV)/.installed  ## The site of the docs, into site/
	$(BIN)/python -m mkdocs build --strict
