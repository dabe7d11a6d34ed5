# The two set-up commands of the README are `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORES ?= $(shell nproc 2>/dev/null || echo 1)
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo install install-dev install-torch test test-rest test-all lint types contracts results check-results clean

demo: install
	@echo; echo '$$ $(BIN)/triage diagnose examples/lost-gpu'; echo
	@$(BIN)/triage diagnose examples/lost-gpu --no-record

install: $(VENV)/.installed
# --no-compile: of 120 MB of byte code a quarter is ever used; what is imported is compiled then.
$(VENV)/.installed: requirements/base.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "triage needs Python 3.11 or newer; try: make demo PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about half a minute) ..."
	@$(PIP) install -q --no-compile -r requirements/base.txt
	@$(PIP) install -q --no-deps -e .
	@touch $@

install-dev: $(VENV)/.installed-dev
$(VENV)/.installed-dev: $(VENV)/.installed requirements/dev.txt
	@$(PIP) install -q -r requirements/dev.txt
	@touch $@

# CPU torch and sentence-transformers, for the optional embedding models.
install-torch: $(VENV)/.installed-torch
$(VENV)/.installed-torch: $(VENV)/.installed-dev requirements/torch.txt
	@$(PIP) install -q -r requirements/torch.txt
	@touch $@

test: install-dev
	$(BIN)/python -m pytest -n $(CORES) --dist loadfile --no-loadscope-reorder -m "not service and not torch"

# What `make test` leaves out: tests that need a service of this machine, or torch.
test-rest: install-torch
	$(BIN)/python -m pytest -n $$(($(CORES) + 1)) --dist loadfile -m "service or torch" # they wait more than they compute

test-all: install-torch
	$(BIN)/python -m pytest

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install-dev
	$(BIN)/mypy

contracts: install-dev
	$(BIN)/lint-imports

# The README's table of results: `results` writes it anew (of REAL, labelled real logs, only where they are), `check-results` fails where
# the figures of the cases that ship are others.
REAL ?= ../shared/logs
results check-results: RUNS := $(shell mktemp -d)
results: install-dev
	if [ -d $(REAL) ]; then $(BIN)/triage eval run $(REAL) --llm off --quiet --out $(RUNS)/real; fi
	$(BIN)/triage eval run eval/cases --llm off --quiet --out $(RUNS)/cases
	$(BIN)/python tools/results_table.py $(if $(wildcard $(REAL)),"real logs (dev)=$(RUNS)/real/metrics.json") \
	  eval/cases=$(RUNS)/cases/metrics.json --write

check-results: install-dev
	$(BIN)/triage eval run eval/cases --llm off --quiet --out $(RUNS)/cases
	$(BIN)/python tools/results_table.py eval/cases=$(RUNS)/cases/metrics.json --check

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
