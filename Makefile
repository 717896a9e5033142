# Every command a person needs. `make test` alone sets up everything on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
NATIVE := regard/native
BUILT_FROM := $(wildcard $(NATIVE)/src/*.[ch] $(NATIVE)/src/*/*.[ch]) $(NATIVE)/abi.py $(NATIVE)/signatures.py
# Where there is a Makefile there is a compiler: kernels that cannot be built are an error.
export REGARD_REQUIRE_NATIVE ?= 1

.PHONY: help demo tour test test-slow sanitize check fix docs bench clean

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY)  ## train a model on dates in forty languages, and see its attention
	$(BIN)/regard demo

tour: $(READY)  ## a tour of the library: a weather map and a memory, drawn to PNG
	$(BIN)/python docs/tour.py

test: $(READY)  ## everything that must hold, in a few minutes
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist worksteal -m "not slow"
	OMP_NUM_THREADS=1 REGARD_SHAPES=off $(BIN)/pytest -q -n 2 --dist worksteal tests/compiled
	OMP_NUM_THREADS=1 TRITON_INTERPRET=1 $(BIN)/pytest -q -n 2 --dist worksteal tests/interpreted

test-slow: $(READY)  ## what takes longer
	$(BIN)/pytest -q -m slow

sanitize: $(READY)  ## the C kernels under AddressSanitizer and UBSan: their tests, and a fuzz
	$(BIN)/python -m tests.fuzz.sanitize

check: $(READY)  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(READY)  ## format, and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format --quiet .

docs: $(READY)  ## the site, in build/docs: without network, no request to another host
	$(BIN)/sphinx-build -q -W -d build/doctrees docs build/docs
	@echo build/docs/index.html

bench: $(READY)  ## measurements side by side with peers; ARGS=--quick to see that all runs
	$(BIN)/python -m benchmarks $(ARGS)

clean:  ## forget the environment
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# torch by its exact number first: a range would bring gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt setup.py $(BUILT_FROM)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)
