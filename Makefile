# `make demo` and `make test` do everything, installing what is missing; `make help` lists the rest.

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
STAMP := $(VENV)/.stamp
AGENT := darc/agent/agent.bin
JOBS ?= auto
PYTEST_ARGS ?=
MATRIX_ARGS ?=
KILLS_ARGS ?=
FUZZ_ARGS ?=

.PHONY: help setup packages lldb-packages test-packages demo demo-lldb demo-kernel test test-lldb test-long matrix kills fuzz slow-calls kernel test-kernel bench-kernel lint format types bench bench-real bench-why soak fixtures clean distclean
.DEFAULT_GOAL := help

help:
	@echo 'make demo      find the root cause of a latency peak in a small program'
	@echo 'make demo-lldb the same in lldb'
	@echo 'make demo-kernel the same of a kernel in QEMU (downloads 300 MB once)'
	@echo 'make test      lint, type check and all tests, those on kernels too (PYTEST_ARGS=… is passed on)'
	@echo 'make test-lldb those of them that drive lldb'
	@echo 'make matrix    compilers, options and kinds of programs, with a table at the end'
	@echo 'make test-kernel the tests that debug a kernel in QEMU (downloads 440 MB once)'
	@echo 'make test-long tests that take minutes each, the cases that test has a sample of, kernels of other releases (downloads 1.6 GB once)'
	@echo 'make kills     debuggers are killed 1,000 times, and the programs go on (KILLS_ARGS=…)'
	@echo 'make slow-calls the fixtures where system calls for processes, mappings, futexes and clocks take longer'
	@echo 'make fuzz      damaged files, names and lines by the thousand; none may end in a traceback'
	@echo 'make setup     make .venv with darc-gdb and darc-lldb in .venv/bin'
	@echo 'make lint      lint and format check alone; make types: type check alone'
	@echo 'make format    format what lint looks at, and cure what ruff can by itself'
	@echo 'make bench     the benchmarks; make bench-kernel: those on a kernel in QEMU; make bench-real: real programs under load'
	@echo 'make bench-why whether darc why names what was injected into real programs, as root'
	@echo 'make soak      real programs test themselves while darc analyses them (SOAK_ARGS=…)'
	@echo 'make fixtures  build the programs with a known root cause into build/fixtures'
	@echo 'make clean     remove what was built; make distclean: and .venv'

setup: $(STAMP) $(AGENT)

# Says nothing and takes no time when every system package is there.
packages:
	@bash tools/setup.sh

lldb-packages:
	@bash tools/setup.sh lldb

test-packages:
	@bash tools/setup.sh test

# With the Python that gdb embeds; an interrupted or moved .venv is made anew.
$(STAMP): setup.cfg setup.py pyproject.toml requirements-dev.txt | packages
	@echo 'setup: making $(VENV)'
	@python="$$(bash tools/gdb-python.sh)" && \
	{ $(PY) -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV); }
	@$(PY) -m pip install -q --disable-pip-version-check -r requirements-dev.txt
	@$(PY) -m pip install -q --disable-pip-version-check --no-build-isolation -e .
	@touch $@

$(AGENT): $(wildcard darc/*/*.[chS]) darc/agent/build.py tools/compile.py | packages $(STAMP)
	@$(PY) tools/compile.py
	@touch $@
	@echo 'setup: done; $(BIN)/darc-gdb and $(BIN)/darc-lldb are there'

demo: setup
	@program="$$($(PY) -m fixtures.build mixture)" && \
	$(BIN)/darc-gdb -q -batch \
		-ex 'darc start handle --peak last --start-ops 2000' \
		-ex run \
		-ex 'darc report --require root-cause' \
		--args "$$program" 200000

demo-lldb: setup lldb-packages
	@program="$$($(PY) -m fixtures.build mixture)" && \
	$(BIN)/darc-lldb -b \
		-o 'darc start handle --peak last --start-ops 2000' \
		-o run \
		-o 'darc report --require root-cause' \
		-- "$$program" 200000

demo-kernel: kernel
	@bash tools/demo-kernel.sh

test: lint types test-packages $(AGENT)
	@$(PY) -m pytest -n $(JOBS) --ignore=tests/kernel $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory test-kernel

test-lldb: setup test-packages
	@$(PY) -m pytest -n $(JOBS) -k 'lldb or newest' $(PYTEST_ARGS)

# Every way to build a program, with several fixtures in each: some 800 analyses.
matrix: setup test-packages
	@$(PY) -m tests.matrix $(MATRIX_ARGS)

# The fixtures again, where their system calls for processes, mappings, futexes and clocks take longer.
slow-calls: setup test-packages
	@mkdir -p build
	@gcc -O2 -Wall -Wextra tests/delays/slow_calls.c -o build/slow_calls
	@build/slow_calls $(CURDIR)/build/fixtures $(PY) -m pytest -n $(JOBS) tests/gdb/test_fixtures.py $(PYTEST_ARGS)

# Debuggers are killed 1,000 times, and as many bare ones: an hour or two.
kills: setup lldb-packages
	@$(PY) -m tests.kills $(KILLS_ARGS)

# 10,000 inputs for each fuzzer, the same ones for the same seed: some minutes each.
fuzz: setup
	@$(PY) -m tests.fuzz $(FUZZ_ARGS)
	@$(PY) -m tests.fuzz.live

# Downloads Debian's kernel, 300 MB, when it is asked for the first time.
kernel: setup
	@bash tools/setup.sh kernel
	@$(BIN)/darc-vm fetch >/dev/null

# The kernel with kgdb is built when it is asked for the first time: four minutes of two processors.
test-kernel: kernel
	@$(BIN)/darc-vm fetch --kernel kgdb >/dev/null
	@$(PY) -m pytest -n $(JOBS) tests/kernel $(PYTEST_ARGS)

# What test leaves out, for a night: one after the other, as they fill the machine. Of many cases that
# are alike test has a sample, and the others are here.
test-long: kernel test-packages $(AGENT)
	@for kernel in kgdb rt 6.12 6.12-rt newest; do $(BIN)/darc-vm fetch --kernel $$kernel >/dev/null; done
	@$(PY) -m pytest -m long $(PYTEST_ARGS)
	@$(PY) -m pytest -m hypothesis --hypothesis-profile=night tests/unit tests/contract tests/agent $(PYTEST_ARGS)

# Both, whatever the first one finds.
lint: $(STAMP)
	@$(BIN)/ruff check -q .; found=$$?; \
	$(BIN)/ruff format -q --check . || { echo "lint: the format is wrong: 'make format' cures it"; exit 1; }; \
	exit $$found

# The cures come first, as what they write is formatted as well; what is wrong still is told behind both.
format: $(STAMP)
	@$(BIN)/ruff check -q --fix . >/dev/null || true
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q .

types: $(STAMP)
	@$(BIN)/mypy --strict --no-error-summary

bench: setup lldb-packages
	@bash tools/benchmarks.sh
	@$(PY) -m benchmarks
	@$(PY) -m benchmarks.waits
	@$(PY) -m benchmarks.where

# Installs the programs; some eight minutes. One of them: ARGS='--only redis'.
bench-real: setup
	@bash tools/benchmarks.sh real
	@$(PY) -m benchmarks.real $(ARGS)

# Half an hour; as root, for a full file system, and at a priority that keeps others' work out.
bench-why: setup
	@bash tools/benchmarks.sh why
	@chrt -r 5 $(PY) -m benchmarks.why

# For as long as the programs' own tests take, several times.
soak: setup
	@bash tools/soak.sh
	@nice -n 10 $(PY) -m benchmarks.soak --write $(SOAK_ARGS)

bench-kernel: kernel
	@$(PY) -m benchmarks.kernel

fixtures: $(STAMP)
	@$(PY) -m fixtures.build

clean:
	rm -rf build $(addprefix darc/agent/,agent.bin agent.elf layout.json) darc/*/lib*.so
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) *.egg-info
