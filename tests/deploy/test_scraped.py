"""Prometheus' own file asks for what `make run` serves, and for all of it."""

from pathlib import Path

import yaml

from demo.run import _programs
from demo.stack import BROKERS, WELL_KNOWN, Stack

SCRAPED = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"


def test_every_program_that_is_scraped_is_started_by_make_run(tmp_path: Path) -> None:
    started = {command[:2] for command in _programs(Stack(tmp_path, WELL_KNOWN)).values()}
    assert {("mirror", "run"), ("failover", "serve"), ("spark-audit", "metrics")} <= started


def test_the_ports_that_are_scraped_are_those_of_make_run() -> None:
    jobs = yaml.safe_load(SCRAPED.read_text())["scrape_configs"]
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    ports = {
        "mirror": [WELL_KNOWN.mirror_metrics],
        "failover": [WELL_KNOWN.failover_metrics],
        "audit": [WELL_KNOWN.audit_metrics],
    } | {
        name: [port + n for n in range(BROKERS)] for name, port in WELL_KNOWN.broker_metrics.items()
    }
    assert asked == {name: [f"127.0.0.1:{port}" for port in found] for name, found in ports.items()}
