# make run    run the standard trial on this machine and write the page (no root, nothing installed outside .venv)
# make test   every test that this machine supports
# make fast   the quick tests to run while editing
# make exhaustive   the same as make test, with full products of parameters
# make portability   the native sources by every compiler, for every architecture and GPU generation; needed after a change
# make lint   formatting, types, import contract, words

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
RESULTS ?= seatrial-results
WORKERS ?= 4
BIN := .venv/bin
# The schema that the first line of each example names, for editors.
write_schemas = @mkdir -p examples/schemas && $(BIN)/python -m seatrial.plan.schemas study > examples/schemas/study-1.json
# Where Python may not write bytecode, each command of a test would compile our sources, and each worker the tests.
unexport PYTHONDONTWRITEBYTECODE
# tests/conftest.py decides which tests may run at the same time.
PYTEST := $(BIN)/pytest --numprocesses $(WORKERS) --durations 10

.PHONY: run test fast exhaustive portability compiled lint clean

run: .venv/run-ready
	@$(BIN)/seatrial run --results $(RESULTS) || [ $$? -eq 3 ]  # 3: something failed; the page shows what
	@$(BIN)/seatrial report $(RESULTS) -o $(RESULTS)/report.html

test: .venv/test-ready
	@$(MAKE) --no-print-directory --jobs 2 lint compiled
	$(PYTEST)

fast: .venv/test-ready
	$(PYTEST) -m "not real"

exhaustive: lint
	$(PYTEST) --exhaustive

portability: .venv/test-ready
	$(PYTEST) -m portability
	$(BIN)/python tests/native_stamp.py  # make test leaves these tests out until a native source changes

compiled: .venv/test-ready  # the tests, once instead of in each worker; beside the type checker, which uses one CPU
	@$(BIN)/pytest --collect-only >/dev/null || true  # the run of the tests shows what is wrong

lint: .venv/test-ready
	$(BIN)/ruff check src tests bench docs hatch_build.py
	$(BIN)/ruff format --check src tests bench docs hatch_build.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check_words.py
	@if command -v clang-format >/dev/null 2>&1; then \
		clang-format --dry-run --Werror $$(git ls-files '*.cpp' '*.hpp' '*.c' 'src/seatrial/profiler/native/*.h'); \
	else echo "clang-format not found: C++ formatting was not checked (Debian: apt install clang-format)"; fi

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or later found (choose one with make PYTHON=...)" >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/run-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(write_schemas)
	@$(BIN)/python -m compileall -q src/seatrial  # where Python may not write bytecode, each command would compile it
	@touch $@

.venv/test-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	$(write_schemas)
	@touch $@ .venv/run-ready

# Frameworks for the tests of training, in an environment of their own: seatrial does not need them.
.training/ready:
	$(PYTHON) -m venv .training
	.training/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 jax==0.10.2 numpy pillow==13.0.0 lmdb==3.0.0
	@touch $@

clean:
	rm -rf .venv .training .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
