# Two commands do everything on a fresh machine with Python 3.11+:
#   make run    sets up, then starts both clusters, the mirror, a producer and a consumer group
#   make test   sets up, then checks and tests
PYTHON ?= python3
BIN := .venv/bin
# Hundreds of processes are started: none is to compile every module anew.
export PYTHONDONTWRITEBYTECODE :=
# A link that leads nowhere is a warning of Sphinx's, and a warning fails. Sphinx keeps what it has
# built all the same, and would not warn of it again: so what failed is built anew.
SITE := $(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet -b html docs build/docs || { rm -rf build/docs; exit 1; }

.PHONY: help setup run demo test check interop interop-quick bench profile drill fuzz format lock sbom docs clean

help:
	@echo "make run | make demo [DISASTER=1] | make test | make check | make format | make lock | make sbom | make docs | make clean"
	@echo "make interop | make interop-quick | make bench [QUICK=1] [ONLY=mirror|broker|offsets|audit|replicated|drain|audit-growth] [RUNS=n] | make profile WHAT=mirror|broker"
	@echo "make drill [MIRROR=1|AUDIT=1 [FAULTS=n]|FAILOVER=1 [APACHE=1|SECURED=1] [ROUNDS=n]] [SEED=n] [SECONDS=n] [PARTITIONS=n] | make fuzz [SEED=n] [FRAMES=n] [EACH=n [ONLY=Fetch]]"

setup: .venv/.installed

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-compile

# Python compiles a module when it is first imported, and keeps that: pip would compile three times as many.
# The lock is everything, so pip resolves nothing: its resolver takes `coverage[toml]`, which
# pytest-cov asks for, for another package than the pinned `coverage`, and refuses the newer release.
# What builds packages is pinned by hashes as well (build-requirements.lock), and comes first: pip would
# fetch the newest otherwise, unseen, for what is published as source alone.
.venv/.installed: requirements.lock build-requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; %s is %s (set PYTHON=)" % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(INSTALL) --require-hashes --only-binary :all: -r build-requirements.lock
	$(INSTALL) --require-hashes --no-build-isolation -r requirements.lock
	$(INSTALL) --no-build-isolation -e .
	$(BIN)/pip check --disable-pip-version-check
	@touch $@

run: setup
	@exec $(BIN)/python -m demo run

demo: setup
	@exec $(BIN)/python -m demo play $(if $(DISASTER),--disaster)

test: check
	@$(BIN)/python -m tests.deploy.promtool
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --ignore=tests/docs

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(SITE)
	$(BIN)/pytest -q tests/docs tests/test_shared_builders.py tests/deploy/test_alerts.py::test_every_alert_is_tried

# Beside Apache Kafka, MirrorMaker 2 and foreign clients; Maven fetches the peers into build/peers.
# Status 2: nothing failed, but some peer could not be had. (Make itself says 2 for any failure.)
interop: setup
	@$(BIN)/python -m tests.interop

interop-quick: setup
	@$(BIN)/python -m tests.interop --quick

bench: setup
	@$(BIN)/python -m tests.bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(RUNS),--runs $(RUNS))

profile: setup
	@$(BIN)/python -m tests.bench.flames $(WHAT)

# Three brokers under faults from a seed; prints it, so that SEED=n repeats what was found.
# FAILOVER=1: rounds of promotions, aborts and disasters between two sites instead.
# AUDIT=1: random faults on the disks of two sites, and how many of them an audit finds, by kind.
# PARTITIONS=2000: how long starts take and how soon leaders move, held against their bars.
# GROUPS=1000: how soon so many groups are stable after a broker's death, and how long beats take.
drill: setup
	@$(BIN)/python -m tests.drill $(if $(MIRROR),--mirror) $(if $(FAILOVER),--failover) $(if $(AUDIT),--audit) $(if $(FAULTS),--faults $(FAULTS)) $(if $(APACHE),--apache) $(if $(SECURED),--secured) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PARTITIONS),--partitions $(PARTITIONS)) $(if $(GROUPS),--groups $(GROUPS))

# More than 100,000 mutated requests, and properties with many examples that are new each time;
# `make test` has a part of both. EACH=100000: so many requests at every API.
fuzz: setup
	@$(if $(EACH),exec $(BIN)/python -m tests.fuzz --each $(EACH) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY));) \
	FUZZ_FRAMES=$(or $(FRAMES),120000) FUZZ_SEED=$(or $(SEED),20) $(BIN)/pytest -q tests/fuzz && \
	HYPOTHESIS_PROFILE=many $(BIN)/pytest -q -m 'hypothesis and not interop'

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	    --generate-hashes --no-annotate --no-header --quiet --upgrade -o requirements.lock
	$(BIN)/uv pip compile --group build --constraint requirements.lock --universal --python-version 3.11 \
	    --generate-hashes --no-annotate --no-header --quiet --upgrade -o build-requirements.lock

# What is installed with us, with versions and licences: build/sbom.json (CycloneDX).
sbom: setup
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.1.0
	build/sbom/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
	    --output-format JSON --output-file build/sbom.json $(BIN)/python

# The reference pages as the code is now, and the site, without the network: build/docs/index.html.
docs: setup
	$(BIN)/python -m docs.generate
	$(SITE)

clean:
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
