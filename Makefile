# Roomtone: every command sets up what it needs by itself.
#
#   make run     set up, then start the bot (with DISCORD_TOKEN) or play the rehearsal (without)
#   make test    set up, then everything CI runs: format, lint, types, tests
#   make setup   .venv, locked dependencies, models: what run and test do first
#   make models  only the model files
#   make clean   remove what setup made (not your data)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_HOME := .cache/uv
# An installed uv is used; else one is installed into .cache, which needs nothing but Python.
UV := $(shell command -v uv 2>/dev/null || echo $(UV_HOME)/bin/uv)
SYNCED := $(VENV)/.synced
SOURCES := benchmarks bot compaction config rehearsal tests voice

.PHONY: run test setup models lint types clean
.DEFAULT_GOAL := run

run: setup
	$(BIN)/roomtone run

test: setup lint types
	$(BIN)/python -m pytest

setup: $(SYNCED) models

models: $(SYNCED)
	$(BIN)/roomtone models pull

lint: $(SYNCED)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types: $(SYNCED)
	$(BIN)/mypy

$(SYNCED): pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --all-extras --python $(PYTHON)
	touch $@

$(UV_HOME)/bin/uv:
	$(PYTHON) -m venv $(UV_HOME)
	$(UV_HOME)/bin/pip install --quiet 'uv>=0.5,<1'

clean:
	rm -rf $(VENV) .cache build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
