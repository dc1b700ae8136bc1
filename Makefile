# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# One thread per process: on contended cores two torch threads were up to 16 times slower than one.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export MLFLOW_DISABLE_TELEMETRY ?= true
# Modules are compiled when they are first imported, and kept: compiling all that is installed takes minutes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup quickstart demo docs test lint types unit format clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[dev,cluster,docs,formats,granian,service]"
	touch $(INSTALLED)

quickstart: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" bash docs/quickstart.sh

# The quickstart's home is made where it is missing, and otherwise served as it is.
demo: setup
	test -e quickstart/registry.db || $(MAKE) quickstart
	CCT_ZOO_HOME=quickstart $(BIN)/cct-zoo serve

docs: setup  # the site: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

test: setup lint types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
