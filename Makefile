# Two commands do everything on a fresh machine with Python 3.11+:
#   make run    sets up, then starts both clusters, the mirror, a producer and a consumer group
#   make test   sets up, then checks and tests
PYTHON ?= python3
BIN := .venv/bin
# Hundreds of processes are started: none is to compile every module anew.
export PYTHONDONTWRITEBYTECODE :=
# A link that leads nowhere is a warning of Sphinx's, and a warning fails. Sphinx keeps what it has
# built all the same, and would not warn of it again: so what failed is built anew.
SPHINX := $(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet
SITE := $(SPHINX) -b html docs build/docs || { rm -rf build/docs; exit 1; }
# The same pages and links without a file of HTML, in half the processor time.
PAGES := $(SPHINX) -b dummy docs build/pages || { rm -rf build/pages; exit 1; }

.PHONY: help setup run demo test stories static check interop interop-quick bench profile drill fuzz format lock sbom dist docs alerts clean

help:
	@echo "make run | make demo [DISASTER=1] [SECURED=1] | make test [JOBS=n] | make stories [JOBS=n] | make check | make format | make lock | make sbom | make dist [KERNEL=1] | make docs | make alerts DOCS=URL | make clean"
	@echo "make interop [SECURED=1] | make interop-quick [SECURED=1] | make bench [QUICK=1] [ONLY=mirror|broker|offsets|audit|replicated|drain|audit-growth|forward] [RUNS=n] [AGAINST=REV] | make profile WHAT=mirror|broker"
	@echo "make drill [MIRROR=1|TOKENS=1 [LIFE=n]|AUDIT=1 [FAULTS=n]|FAILOVER=1 [APACHE=1|SECURED=1] [ROUNDS=n]] [SEED=n] [SECONDS=n] [PARTITIONS=n] | make fuzz [SEED=n] [FRAMES=n] [CHUNKS=n] [EACH=n [ONLY=Fetch]]"

setup: .venv/.installed .venv/.kernel

PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
UV := --quiet --python $(BIN)/python
LOCKED := --no-deps --require-hashes --no-build-isolation -r requirements.lock

# Python compiles a module when it is first imported, and keeps that: pip would compile three times as many.
# The lock is everything, so nothing is resolved: pip's resolver takes `coverage[toml]`, which
# pytest-cov asks for, for another package than the pinned `coverage`, and refuses the newer release.
# What builds packages is pinned by hashes as well (build-requirements.lock), and comes first: pip would
# fetch the newest otherwise, unseen, for what is published as source alone.
# uv, which comes with that, takes 2 s of processor time for the lock where pip takes 27: pip looks at each of
# 75,000 files that an index has of these packages. It also removes what the lock has no longer, so that an
# older checkout is checked against what a new one has. Where uv gets nothing, as it reads none of pip's
# settings, pip installs the same.
.venv/.installed: requirements.lock build-requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; %s is %s (set PYTHON=)" % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(PIP) --no-deps --require-hashes --only-binary :all: -r build-requirements.lock
	$(BIN)/uv pip sync $(UV) --require-hashes --no-build-isolation build-requirements.lock requirements.lock || $(PIP) $(LOCKED)
	$(BIN)/uv pip install $(UV) --no-deps --no-build-isolation -e . || $(PIP) --no-deps --no-build-isolation -e .
	$(BIN)/uv pip check $(UV)
	@touch $@

# The chunk kernel, where there is a C compiler and Python's headers; without one Python does its work.
.venv/.kernel: .venv/.installed hatch_build.py wire/kernel/*.c wire/kernel/*.h
	@$(BIN)/python hatch_build.py
	@touch $@

run: setup
	@exec $(BIN)/python -m demo run

demo: setup
	@exec $(BIN)/python -m demo play $(if $(DISASTER),--disaster) $(if $(SECURED),--secured)

# To write a cache takes mypy a seventh of its time, and a fresh clone's tests do without: `make check` keeps one.
test: MYPY := $(if $(wildcard .mypy_cache),,--no-incremental --cache-dir=/dev/null)
# JOBS=2 takes less time and more of the processor's: each job collects all tests, and has clusters of its own.
JOBBED = $(if $(JOBS),-n $(JOBS) --dist loadfile --no-loadscope-reorder)
test: static
	@$(BIN)/python -m tests.deploy.promtool
	$(BIN)/pytest -q $(JOBBED)

# What `make test` leaves out because something cheaper in it would notice the same (CONTRIBUTING.md).
stories: setup
	$(BIN)/pytest -q -m story $(JOBBED)

# What `make check` and `make test` look at without running anything.
static: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(MYPY)
	$(BIN)/lint-imports
	$(PAGES)

check: static
	$(BIN)/pytest -q tests/docs tests/test_shared_builders.py tests/deploy/test_alerts.py::test_every_alert_is_tried

# The alerts, each with a link to its runbook where DOCS has the site of `make docs`.
ALERTS ?= build/alerts.yml
alerts:
	@case '$(DOCS)' in http*://*) ;; *) echo 'say where the site of make docs is served: make alerts DOCS=https://docs.internal/kafka-dr' >&2; exit 2;; esac
	@mkdir -p $(dir $(ALERTS))
	@sed -E 's|(runbook_url: )docs/(runbooks/[a-z-]+)\.md#|\1$(DOCS:%/=%)/\2.html#|' deploy/prometheus/alerts.yml > $(ALERTS)
	@echo $(ALERTS)

# Beside Apache Kafka, MirrorMaker 2 and foreign clients, and our own stories before (`make stories`);
# Maven fetches the peers into build/peers.
# SECURED=1: our programs reach both sites over TLS and SASL, where a file of tests has two.
# Status 2: nothing failed, but some peer could not be had. (Make itself says 2 for any failure.)
interop: setup
	@$(if $(SECURED),INTEROP_SECURED=1) $(BIN)/python -m tests.interop

interop-quick: setup
	@$(if $(SECURED),INTEROP_SECURED=1) $(BIN)/python -m tests.interop --quick

bench: setup
	@$(BIN)/python -m tests.bench $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(RUNS),--runs $(RUNS)) $(if $(AGAINST),--against $(AGAINST))

profile: setup
	@$(BIN)/python -m tests.bench.flames $(WHAT)

# Three brokers under faults from a seed; prints it, so that SEED=n repeats what was found.
# FAILOVER=1: rounds of promotions, aborts and disasters between two sites instead.
# AUDIT=1: random faults on the disks of two sites, and how many of them an audit finds, by kind.
# PARTITIONS=2000: how long starts take and how soon leaders move, held against their bars.
# GROUPS=1000: how soon so many groups are stable after a broker's death, and how long beats take.
drill: setup
	@$(BIN)/python -m tests.drill $(if $(MIRROR),--mirror) $(if $(FAILOVER),--failover) $(if $(AUDIT),--audit) $(if $(TOKENS),--tokens) $(if $(LIFE),--life $(LIFE)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(APACHE),--apache) $(if $(SECURED),--secured) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PARTITIONS),--partitions $(PARTITIONS)) $(if $(GROUPS),--groups $(GROUPS))

# More than 100,000 mutated requests, a million mutated chunks for the chunk kernel (a fifth as many under
# sanitizers), and properties with many examples that are new each time;
# `make test` has a part of both. EACH=100000: so many requests at every API.
fuzz: setup
	@$(if $(EACH),exec $(BIN)/python -m tests.fuzz --each $(EACH) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY));) \
	FUZZ_FRAMES=$(or $(FRAMES),120000) FUZZ_CHUNKS=$(or $(CHUNKS),1000000) FUZZ_SEED=$(or $(SEED),20) $(BIN)/pytest -q -m 'not interop' tests/fuzz && \
	HYPOTHESIS_PROFILE=many $(BIN)/pytest -q -m 'hypothesis and not interop and not story'

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup
	$(BIN)/uv pip compile pyproject.toml --extra demo --group dev --universal --python-version 3.11 \
	    --generate-hashes --no-annotate --no-header --quiet --upgrade -o requirements.lock
	$(BIN)/uv pip compile --group build --constraint requirements.lock --universal --python-version 3.11 \
	    --generate-hashes --no-annotate --no-header --quiet --upgrade -o build-requirements.lock

# What is installed with us, with versions and licences: build/sbom.json (CycloneDX).
sbom: setup
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.1.0
	build/sbom/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
	    --output-format JSON --output-file build/sbom.json $(BIN)/python

# The wheel and the source archive in dist, built by what build-requirements.lock pins. `make interop`
# installs the wheel into a new virtual environment and starts its programs. The wheel is for every
# platform; with KERNEL=1 it has the chunk kernel, and is for platforms like this one.
dist: setup
	@rm -rf dist
	@$(if $(KERNEL),,CHUNK_KERNEL=off) $(BIN)/python -m hatchling build --directory dist --target sdist --target wheel
	@ls -sh dist

# The reference pages and the dashboards as the code is now, and the site, without the network: build/docs/index.html.
docs: setup
	$(BIN)/python -m docs.generate
	$(BIN)/python -m deploy.grafana.source
	$(SITE)

clean:
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
