# Roomtone: every command sets up what it needs by itself.
#
#   make run     set up, then start the bot (with DISCORD_TOKEN) or play the rehearsal and keep its sound (without)
#   make quick   format, lint, types, and the tests of decisions: no sound, socket, browser, database, other process, real time
#   make test    set up, then everything CI runs: format, lint, types, tests
#   make fuzz    attack the bot with hostile input for MINUTES minutes (default 10), from fixed seeds
#   make endurance  kill it, let it run out of disk, and let it live for hours (DURATION minutes in real time)
#   make audit   ask PyPI's list of known faults about each locked package, those of the CUDA image too
#   make kernels  what reads recognised text, with each kind of arithmetic that this processor has
#   make docs    the documentation as a site in site/, with every link checked
#   make setup   .venv, locked dependencies without developers' tools, models: what run does first
#   make libraries  only .venv, for a service that keeps models of its own (docs/operations.md)
#   make models  only the model files
#   make cluster setup with Ray, for several machines (docs/cluster.md)
#   make clean   remove what setup made (not your data)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_HOME := .cache/uv
# An installed uv is used; else one is installed into .cache, which needs nothing but Python.
UV := $(shell command -v uv 2>/dev/null || echo $(UV_HOME)/bin/uv)
# What a bot needs, and what its developers need too: the second has 750 MB more.
INSTALLED := $(VENV)/.installed
SYNCED := $(VENV)/.synced
# uv names the range but no way out, and a much older Python cannot even install uv. A Python that is not there is the
# next line's business.
CHECK_PYTHON = @$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] < (3, 14) else 3)' 2>/dev/null; \
    [ $$? -ne 3 ] || { echo "Roomtone needs Python 3.11 to 3.13, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
    "Install one of these and name it, for example: make run PYTHON=python3.13" >&2; exit 1; }
SOURCES := benchmarks bot compaction config docs rehearsal tests voice

# A test run starts Python hundreds of times, and compiling anew each time would take half of it. Containers often
# forbid bytecode by this variable.
unexport PYTHONDONTWRITEBYTECODE

# The markers that say why a test takes long or needs more than Python (tests/conftest.py, pyproject.toml).
QUICK := not (browser or database or discord or models or node or postgres or process or rehearsal or server or slow)
# The folders with most of the tests that are left then. Finding the tests of the others takes longer than running them.
QUICK_CORE := tests/compaction tests/voice tests/test_architecture.py
QUICK_BOT := tests/config tests/bot/brain tests/bot/channel tests/bot/discord tests/bot/llm \
    tests/bot/conversation tests/bot/logs tests/bot/participation tests/bot/posts tests/bot/room tests/bot/web

.PHONY: run quick quick-core quick-bot audit test whole-runs kernels fuzz endurance docs setup libraries models tested-voice cluster cuda lint types compiled browser postgresql clean
.DEFAULT_GOAL := run

run: setup
	$(BIN)/roomtone run

quick: $(SYNCED)
	@$(MAKE) --no-print-directory --jobs 4 lint types quick-core quick-bot

# Importing the code takes as long as running its tests, and every worker of pytest-xdist imports all of it. So each of
# two processes has its own folders.
quick-core: $(SYNCED)
	$(BIN)/python -m pytest -q --hypothesis-profile=quick -m "$(QUICK)" $(QUICK_CORE)

quick-bot: $(SYNCED)
	$(BIN)/python -m pytest -q -p no:cacheprovider --hypothesis-profile=quick -m "$(QUICK)" $(QUICK_BOT)

# Many tests wait for a browser or for the local Discord, so three workers keep two cores busy. Whole evenings are played
# in real time and use a third of a core each, so four play at once, the long ones first. Sound, browsers and clocks that
# share two cores disturb each other now and then: a test that fails beside others is run once more with no other beside
# it, and fails the run if it fails again. Only status 1 says that tests failed; after any other (a crash, no memory) not
# all have run.
# Collecting only the places of whole runs saves half a minute; tests/conftest.py refuses a whole run elsewhere. The
# short ones are last, so that all workers end at about the same time.
WHOLE_RUNS := tests/scenarios tests/bot/test_shard_processes.py tests/bot/test_main.py
AGAIN := [ $$? -eq 1 ] && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

test:
	@$(MAKE) --no-print-directory $(SYNCED)
	@$(MAKE) --no-print-directory --jobs 2 setup tested-voice postgresql lint compiled
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 30 -m "not rehearsal and not kernels" || \
	    { $(AGAIN) -m "not rehearsal and not kernels"; }
	@$(MAKE) --no-print-directory --jobs 2 NICE="nice -n 19" types whole-runs

# Beside the types, which get what these leave of the two cores.
whole-runs: $(SYNCED)
	$(BIN)/python -m pytest -n 4 --dist load --maxschedchunk 1 --durations 0 -m rehearsal $(WHOLE_RUNS) || \
	    { $(AGAIN) -m rehearsal $(WHOLE_RUNS); }

# Whisper's text depends on the processor in its last digits. This tries what reads recognised text with each kind of
# arithmetic that this processor has, each with two libraries, and with another number format: 3 minutes each.
HEARD := tests/rehearsal/scenarios/test_spoken_lines.py tests/voice/asr/test_whisper.py \
    tests/voice/asr/test_recogniser_contract.py
KERNELS := GENERIC AVX2 $(shell grep -qs avx512 /proc/cpuinfo && echo AVX512)

# Asks PyPI's list of known faults about each locked package, those of the CUDA image too. Without `--strict`, a package
# that PyPI does not know would pass; through a pipe, an export that failed would.
audit: $(SYNCED)
	$(UV) export --frozen --all-extras --group cuda --no-emit-project --quiet --output-file $(VENV)/locked.txt
	$(UV) tool run --from 'pip-audit>=2.9,<3' pip-audit --strict --disable-pip --require-hashes \
	    -r $(VENV)/locked.txt

kernels: $(SYNCED) models
	@for mkl in 0 1; do for isa in $(KERNELS); do echo "CT2_FORCE_CPU_ISA=$$isa CT2_USE_MKL=$$mkl"; \
	    CT2_FORCE_CPU_ISA=$$isa CT2_USE_MKL=$$mkl $(BIN)/python -m pytest -q $(HEARD) || exit 1; done; done
	COMPUTE_TYPE=float32 $(BIN)/python -m pytest -q $(HEARD)

# tests/fuzz/attacks.py lists the attacks. The first rounds are part of `make test`.
MINUTES ?= 10
FIRST_ROUND ?= 0

fuzz: $(SYNCED)
	$(BIN)/python -m tests.fuzz $(MINUTES) $(FIRST_ROUND)

# tests/endurance has the pieces. A short form of each but the rooms is part of `make test`.
DURATION ?= 60

endurance: $(SYNCED) tested-voice postgresql
	$(BIN)/python -m tests.endurance --minutes $(DURATION) --json docs/benchmarks/endurance.json
	$(BIN)/python -m tests.cluster_faults --times 3 --json docs/benchmarks/cluster-faults.json
	$(BIN)/python -m benchmarks.document

docs: $(SYNCED)
	$(BIN)/python -m tests.docs.site site

setup: $(INSTALLED) models

libraries: $(INSTALLED)

# A registry that fails once seldom fails twice. What is here already is not pulled again.
models: $(INSTALLED)
	$(BIN)/roomtone models pull || $(BIN)/roomtone models pull

# Piper's voice, which the bot does without and the tests hear beside its own.
tested-voice: models
	$(BIN)/roomtone models pull joe || $(BIN)/roomtone models pull joe

# Ray is 200 MB that one machine does not need. `setup` leaves it installed.
cluster: setup
	$(UV) sync --frozen --all-extras --no-dev --inexact --python $(PYTHON)

# CUDA's libraries for the recogniser, 2 GB under NVIDIA's own licence. docs/operations.md says how the system finds them.
cuda: $(INSTALLED)
	$(UV) sync --frozen --all-extras --no-extra cluster --group cuda --no-dev --inexact --python $(PYTHON)

# The page that shares a screen is tried in a real browser, which needs some font to write with; what drives it needs
# libatomic on Linux, which a bare Debian has not.
browser:
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null && \
	    { [ "$$(uname)" != Linux ] || $(PYTHON) -c 'import ctypes; ctypes.CDLL("libatomic.so.1")' 2>/dev/null; } || { \
	    command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core libatomic1; \
	} || { echo "The tests need Chromium and libatomic (Debian, Ubuntu: sudo apt install chromium libatomic1)." >&2; exit 1; }

# The store is tried on a real server too, which the tests start and end by themselves: Debian is to make and start none.
# After the others, because apt-get works alone.
postgresql: | browser
	@ls /usr/lib/postgresql/*/bin/initdb /opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb \
	    2>/dev/null | grep -q . || { \
	    command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && mkdir -p /etc/postgresql-common && \
	    { [ -e /etc/postgresql-common/createcluster.conf ] || \
	    echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf; } && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; \
	} || { echo "The tests need PostgreSQL (Debian, Ubuntu: sudo apt install postgresql)." >&2; exit 1; }

lint: $(SYNCED)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types: $(SYNCED)
	$(NICE) $(BIN)/mypy

# In a fresh checkout, Python compiles everything that the tests import: half a minute. Workers that start together would
# each do that. What cannot be imported is told by the tests themselves.
compiled: $(SYNCED)
	-@$(BIN)/python -m pytest -p no:cacheprovider --collect-only -q >/dev/null 2>&1

# `--inexact`: a bot that is started after `make test` keeps the developers' tools.
$(INSTALLED): pyproject.toml uv.lock | $(UV)
	$(CHECK_PYTHON)
	$(UV) sync --frozen --all-extras --no-extra cluster --no-dev --inexact --python $(PYTHON)
	touch $@

$(SYNCED): pyproject.toml uv.lock | $(UV)
	$(CHECK_PYTHON)
	$(UV) sync --frozen --all-extras --python $(PYTHON)
	touch $(INSTALLED) $@

# Debian keeps a part of Python's venv in a package of its own.
$(UV_HOME)/bin/uv:
	$(CHECK_PYTHON)
	@$(PYTHON) -c "import ensurepip" 2>/dev/null || { \
	    command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv; \
	} || { echo "Setting up needs Python's venv (Debian, Ubuntu: sudo apt install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(UV_HOME)
	$(UV_HOME)/bin/pip install --quiet 'uv>=0.5,<1'

clean:
	rm -rf $(VENV) .cache build site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
