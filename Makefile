# Each target makes and fills .venv itself when it has to; Python 3.11 or newer is all a fresh machine needs.
# The recipes are short on purpose: what CI runs is exactly what you type.

VENV   := .venv
BIN    := $(VENV)/bin
PINNED := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
GIVEN  := pyproject.toml apps/bedside/pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check bench docs screenshots

help: ## Print this list.
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  make %-11s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.runs ## Hear it, see it: a worker renders a short book under demo/, and the page at which to watch it.
	@$(BIN)/bedside demo

test: check ## Prove it: everything 'check' does, then every test of engine, page and apps; needs Chromium.
	$(BIN)/python -m pytest

check: $(VENV)/.tests ## Read it: lint, formatting, types and who may import whom.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.tests ## Measure it: run each script under bench/, one after the other; each prints its figure.
	@set -e; for script in $$(grep -l __main__ bench/*.py); do $(BIN)/python "$$script"; done

docs: $(VENV)/.tests ## Check the pages: every link leads somewhere, every example runs as it is printed.
	$(BIN)/python -m pytest -q tests/docs

screenshots: $(VENV)/.tests ## See it: pictures of every screen in screenshots/, and those of the README; needs Chromium.
	$(BIN)/python -m tests.browser.screenshots

# What runs it; and that with what tests it. A stamp is written last, so a broken install is tried again.
$(VENV)/.runs: $(GIVEN) | $(BIN)/pip
	@echo 'Installing Line Clear and Bedside into $(VENV) ...'
	@$(PINNED) --editable . --editable 'apps/bedside[piper]'
	@touch $@

$(VENV)/.tests: $(GIVEN) | $(BIN)/pip
	@echo 'Installing Line Clear, Bedside and their tests into $(VENV) ...'
	@$(PINNED) --editable '.[test,check]' --editable 'apps/bedside[piper]'
	@touch $(VENV)/.runs $@

# pip is the last thing a new environment gets: where it is missing, the environment is not whole.
$(BIN)/pip:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		if ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
			echo "$$python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
		fi; \
		exec "$$python" -m venv --clear $(VENV); \
	done; \
	echo 'No Python 3.11 or newer was found. Install one, or say where it is: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3' >&2; exit 1
