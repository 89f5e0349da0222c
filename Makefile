# Berthline: everything a user or contributor runs. `make` alone lists the targets.
#
# One .venv serves all targets; stamp files in .venv/.stamps record what is already in it, so a
# second run starts at once and an edit redoes only what depends on it.
#
# The package is installed editable and without build isolation. Why:
#  - Editable: a change in src/ counts at once, also for people who call .venv/bin/pytest by hand.
#    The import hook this takes costs about 10 ms of the first `import berthline`.
#  - No isolation: an isolated build sees nanobind in a new temporary folder each time, so CMake
#    would rebuild everything (10 s and more). With the pinned build tools inside .venv the build
#    folder stays valid and a rebuild takes 1-2 s plus the C++ files that changed. It is also the
#    only way for constraints.txt to bind the build tools with every version of pip.
#  - cmake and ninja come from pip: nothing but Python, make and a C++ compiler need be present.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTEST_ARGS ?= -n auto --maxprocesses 8
DEMO_ARGS ?=
BENCH_ARGS ?= sim
RESULTS ?= rlscheduler_lublin type_aware_placement few_preemptions milp_placement \
  common_workload whatif_fidelity run_time_prediction tuned_schedulers winning_policy \
  preemptive_index meta_regimes mixed_clusters gate_transfer gate_frontier gate_inputs \
  hold_and_preempt racks_and_failures distilled_gates continuous_runs packing whatif_causes \
  five_headlines
RESULTS_ARGS ?=
TRAINED_RESULTS := distilled_gates learning_first_step five_headlines

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
BUILD_TOOLS := scikit-build-core nanobind cmake ninja hatch-fancy-pypi-readme
NATIVE_FILES := $(shell find native -name CMakeLists.txt -o -name '*.cpp' -o -name '*.h')
CXX_FILES = $(filter-out %/CMakeLists.txt,$(NATIVE_FILES))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Most modules of the dependencies are never imported; Python compiles the others when they are.
export PIP_NO_COMPILE := 1
PIP_INSTALL := $(BIN)/python -m pip install --quiet
# $(call requirements,KEYS): the requirement list at project.KEYS of pyproject.toml, one per line.
requirements = $(BIN)/python -c "import tomllib; \
  print(*tomllib.load(open('pyproject.toml', 'rb'))['project']$(1), sep='\n')"

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo venv build test test-slow check lint types format bench golden sanitize clean distclean

help: ## List the targets
	@echo "Berthline: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Two jobs: what the package needs is installed while the native core compiles.
demo: $(STAMPS)/tools ## Set up if needed, then compare schedulers and tune one; ends with a report
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,--jobs=2) \
	  $(STAMPS)/package $(STAMPS)/report
	@$(BIN)/berthline demo $(DEMO_ARGS)

.PHONY: demo-deploy
demo-deploy: $(STAMPS)/package ## Watch a simulated cluster, compare, act, kill the controller: about half a minute
	@$(BIN)/python examples/deploy_demo.py

.PHONY: demo-train
demo-train: $(STAMPS)/package $(STAMPS)/report $(STAMPS)/train ## Install torch if needed, then train PPO for about two minutes
	@rm -rf runs/demo-train
	@$(BIN)/berthline train ppo --steps 200000 --validate-every 50000 --out runs/demo-train $(DEMO_ARGS)
	@$(BIN)/berthline report curve runs/demo-train/curve.csv --y mean_jct --out runs/demo-train/jct.png

venv: $(STAMPS)/package $(STAMPS)/dev ## Set up .venv for development: package, native core, dev tools
	@echo "$(VENV) is ready: $(BIN)/berthline, $(BIN)/pytest"

build: $(STAMPS)/package $(STAMPS)/core ## Rebuild the native core if its sources changed
	@echo "the native core is up to date"

test: $(STAMPS)/package $(STAMPS)/dev ## Set up if needed, then run the tests (slow ones and benchmarks left out)
	@echo "==> tests"
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-slow: $(STAMPS)/package $(STAMPS)/dev ## Run the slow tests
	@echo "==> slow tests"
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m slow

# An environment of its own, which borrows .venv's packages, because RLlib brings an older Gymnasium.
INTEROP := build/interop
.PHONY: test-interop
test-interop: $(STAMPS)/package $(STAMPS)/dev ## Install RLlib, TorchRL and moviepy apart, then run the tests with them
	@echo "==> installing RLlib, TorchRL and moviepy"
	@rm -rf $(INTEROP)
	@$(BIN)/python -m venv $(INTEROP)
	@site='import sysconfig; print(sysconfig.get_path("platlib"))' && \
	  target=$$($(INTEROP)/bin/python -c "$$site") && \
	  $(BIN)/python -c "$$site" | sed 's/.*/import site; site.addsitedir("&")/' > $$target/borrowed.pth
	@$(INTEROP)/bin/python -m pip install --quiet torchrl 'ray[rllib]' moviepy
	@echo "==> tests"
	@$(INTEROP)/bin/python -m pytest tests/env/test_interop_examples.py tests/env/test_interop_video.py

check: lint types docs-site test ## What CI runs: lint, types, documentation site, tests

lint: $(STAMPS)/dev ## Check style and format of Python and C++, and the English of all texts
	@echo "==> lint"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "hint: make format"; exit 1; }
	@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES) || { echo "hint: make format"; exit 1; }
	@$(BIN)/python docs/plain_english.py

types: $(STAMPS)/dev ## Check types with mypy, strictly
	@echo "==> types"
	@$(BIN)/mypy

format: $(STAMPS)/dev ## Format Python and C++ in place
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CXX_FILES)

bench: $(STAMPS)/package $(STAMPS)/dev ## Measure speed; BENCH_ARGS chooses what (default: sim)
	@$(BIN)/berthline bench $(BENCH_ARGS)

.PHONY: results
results: $(STAMPS)/package $(STAMPS)/report $(if $(filter $(TRAINED_RESULTS),$(RESULTS)),$(STAMPS)/train) ## Recompute docs/results; RESULTS=page for one, RESULTS_ARGS its arguments
	@for page in $(RESULTS); do $(BIN)/python -m benchmarks.$$page $(RESULTS_ARGS) || exit; done

.PHONY: docs
docs: $(STAMPS)/package $(STAMPS)/core ## Rewrite the generated parts of the documentation
	@$(BIN)/python docs/generate.py

.PHONY: docs-site
docs-site: $(STAMPS)/package $(STAMPS)/docs ## Build the documentation site into build/site; a broken link is an error
	@echo "==> documentation site"
	@$(BIN)/python docs/build_site.py

golden: $(STAMPS)/package $(STAMPS)/dev ## Regenerate the committed results under tests/golden
	@$(BIN)/python tests/golden/regenerate.py

# The instrumented package gets an environment of its own, which borrows .venv's packages but not
# its editable hook. Python itself is not instrumented, hence the preload and no leak reports;
# libstdc++ goes with it, or the first C++ exception finds no handler.
# One process and --capture=sys, so that a sanitizer's report reaches the terminal before the abort.
SANITIZED := build/sanitized
sanitize: $(STAMPS)/package $(STAMPS)/dev ## Run the tests on a core built with ASan and UBSan
	@echo "==> building with sanitizers"
	@rm -rf $(SANITIZED)/venv
	@$(BIN)/python -m venv --without-pip $(SANITIZED)/venv
	@site='import sysconfig; print(sysconfig.get_path("platlib"))' && \
	  target=$$($(SANITIZED)/venv/bin/python -c "$$site") && \
	  $(BIN)/python -c "$$site" > $$target/borrowed.pth && \
	  $(PIP_INSTALL) --no-build-isolation --no-deps --target $$target \
	    -C build-dir=$(SANITIZED)/cmake -C cmake.define.BERTHLINE_SANITIZE=ON .
	@echo "==> tests"
	@LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 \
	  $(SANITIZED)/venv/bin/python -m pytest --capture=sys $(SANITIZE_ARGS)

# The wheel that Python 3.11 builds is for 3.11, that of 3.12 for 3.12 and all later ones. Each is built
# in an environment of its own, outside .venv, so that the one for development stays as it is.
WHEEL_PYTHONS ?= python3.11 python3.12
WHEEL_DIR ?= dist
WHEEL_BUILD := build/wheel
.PHONY: wheel
wheel: ## Build wheels for Python 3.11 and for 3.12 and later into dist/; WHEEL_PYTHONS names the two
	@for python in $(WHEEL_PYTHONS); do \
	  $$python -c 'import venv' 2>/dev/null || { echo "note: no wheel by $$python: it does not run here"; continue; }; \
	  echo "==> building a wheel with $$python"; \
	  $$python -m venv --clear $(WHEEL_BUILD)/venv && \
	  PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_BUILD_CONSTRAINT=$(CURDIR)/constraints.txt \
	    $(WHEEL_BUILD)/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL_DIR) \
	    -C build-dir=$(WHEEL_BUILD)/{wheel_tag} . || exit; \
	done
	@ls $(WHEEL_DIR)/berthline-*.whl

clean: ## Remove build products and caches
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis $(STAMPS)/package
	@find src tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## Remove .venv as well
	@rm -rf $(VENV)

# ---- set-up, in the order it happens ---------------------------------------------------------

$(STAMPS)/venv:
	@test -n "$(PYTHON)" || { \
	  echo "error: no Python 3.11 or newer found"; \
	  echo "hint: install one, or name it: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3"; exit 1; }
	@c="$${CXX:-}"; test -n "$$c" || for c in c++ g++ clang++ none; do \
	    command -v $$c >/dev/null 2>&1 && break; done; \
	  command -v $$c >/dev/null 2>&1 || { \
	  echo "error: no C++ compiler found (looked for \$$CXX, c++, g++, clang++)"; \
	  echo "hint: install g++ 11+ or clang 14+ from your system's packages"; exit 1; }
	@echo "==> creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "hint: some systems ship the venv module separately (Debian, Ubuntu: python3-venv)"; exit 1; }
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/tools: $(STAMPS)/venv constraints.txt
	@echo "==> installing build tools"
	@$(PIP_INSTALL) -c constraints.txt $(BUILD_TOOLS)
	@touch $@

$(STAMPS)/core: $(STAMPS)/tools pyproject.toml
	@echo "==> installing dependencies"
	@$(call requirements,['dependencies']) > $(STAMPS)/core.txt
	@$(PIP_INSTALL) -c constraints.txt -r $(STAMPS)/core.txt
	@touch $@

$(STAMPS)/dev: $(STAMPS)/core
	@echo "==> installing development tools"
	@$(call requirements,['optional-dependencies']['dev']) > $(STAMPS)/dev.txt
	@$(PIP_INSTALL) -c constraints.txt -r $(STAMPS)/dev.txt
	@touch $@

# For the figures of the report, and what tunes schedulers. Without them (no network, say) the demo
# still runs, and says so.
$(STAMPS)/report: $(STAMPS)/core
	@echo "==> installing what draws figures and tunes schedulers"
	@$(call requirements,['optional-dependencies']['report']) > $(STAMPS)/report.txt
	@$(call requirements,['optional-dependencies']['tune']) >> $(STAMPS)/report.txt
	@if $(PIP_INSTALL) -c constraints.txt -r $(STAMPS)/report.txt; then touch $@; \
	  else echo "note: not installed; the report will have no figures"; fi

$(STAMPS)/docs: $(STAMPS)/core
	@echo "==> installing what builds the documentation site"
	@$(call requirements,['optional-dependencies']['docs']) > $(STAMPS)/docs.txt
	@$(PIP_INSTALL) -c constraints.txt -r $(STAMPS)/docs.txt
	@touch $@

$(STAMPS)/train: $(STAMPS)/core
	@echo "==> installing what trains networks"
	@$(call requirements,['optional-dependencies']['train']) > $(STAMPS)/train.txt
	@$(PIP_INSTALL) -c constraints.txt -r $(STAMPS)/train.txt
	@touch $@

$(STAMPS)/package: $(STAMPS)/tools pyproject.toml $(NATIVE_FILES)
	@echo "==> building the native core"
	@$(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	@touch $@
