# A fresh machine needs git, make and Python 3.11; each target sets up what it needs.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup rehearse test test-fast check format lock clean

setup: $(STAMP)

$(STAMP): requirements/dev.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) 2>/dev/null || python3 -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Lakh needs Python 3.11 or newer"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==$$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/dev.lock)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

rehearse: setup
	$(BIN)/lakh rehearse examples/jd-cloud-100k/scenario.yaml

test: setup
	$(BIN)/python -m pytest -n 2

test-fast: setup
	$(BIN)/python -m pytest -n 2 -m "not slow"

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pins every dependency with its hashes; run it after changing pyproject.toml.
lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --group dev pyproject.toml -o requirements/dev.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
