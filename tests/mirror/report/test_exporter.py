"""What `/metrics` and `/status` say of a flow's faults."""

from dataclasses import replace
from pathlib import Path

import trio
from prometheus_client import CollectorRegistry

from mirror.flow.engine import Engine
from mirror.flow.runner import FlowRunner
from mirror.report.exporter import FlowCollector
from mirror.report.status import flow_head
from runtime.rights.outlook import Outlook
from runtime.rights.refused import RefusedPrincipal
from tests.doubles.fake_cluster import run_fake_cluster
from tests.mirror.building import anybody, runner_in
from tests.mirror.groups.source_logs import source_of
from wire.acls import Operation, ResourceType
from wire.kernel.chosen import native


def faults(runner: FlowRunner) -> tuple[dict[str, float], list[str]]:
    """Return the gauge by part, and the lines of the status."""
    registry = CollectorRegistry()
    registry.register(FlowCollector([runner]))
    gauges = {
        sample.labels["part"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "mirror_fault"
    }
    return gauges, flow_head(runner)["faults"]


async def test_a_flow_that_cannot_start_says_so_though_it_has_no_partition(tmp_path: Path) -> None:
    runner = runner_in(tmp_path)
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        assert faults(runner) == ({}, [])
        runner.engine = engine = Engine(
            flow.config,
            links,
            runner.measurements,
            anybody(),
        )
        runner._working = trio.CancelScope()
        assert set(faults(runner)[0].values()) == {0}
        engine.starting_fault.note("dc2: b:1: Connection refused")
        gauges, lines = faults(runner)
        assert {part for part, value in gauges.items() if value} == {"start"}
        assert lines == ["start: dc2: b:1: Connection refused"]


async def test_an_engine_that_has_ended_has_no_faults(tmp_path: Path) -> None:
    """A source that is lost keeps its faults at a promotion, and then nobody asks it any more."""
    runner = runner_in(tmp_path)
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        runner.engine = engine = Engine(
            flow.config,
            links,
            runner.measurements,
            anybody(),
        )
        engine.discovery.fault.note("dc1: a:1: Connection refused")
        assert faults(runner) == ({}, [])


async def test_records_of_others_in_a_map_are_shown_and_counted(tmp_path: Path) -> None:
    runner = runner_in(tmp_path)
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        runner.engine = engine = Engine(flow.config, links, runner.measurements, anybody())
        assert flow_head(runner)["unbelieved_records"] == []
        for offset in (7, 8):
            engine.map_log.unbelieved_records.note(-1, offset)
        [line] = flow_head(runner)["unbelieved_records"]
    assert "2 of producer id -1 (a plain producer), from offset 7 on" in line
    registry = CollectorRegistry()
    registry.register(FlowCollector([runner]))
    counted = registry.get_sample_value(
        "mirror_unbelieved_records", {"flow": flow.config.name, "topic": engine.map_log.topic}
    )
    assert counted == 2


async def test_who_would_be_refused_after_a_switch_is_counted_by_principal(tmp_path: Path) -> None:
    runner = runner_in(tmp_path)
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        runner.engine = engine = Engine(flow.config, links, runner.measurements, anybody())
        assert flow_head(runner)["refused_after_switch"] is None
        refused = RefusedPrincipal(
            principal="User:shop",
            kind=ResourceType.TOPIC,
            operation=Operation.WRITE,
            names=("a", "b"),
        )
        engine.acls.outlook = Outlook(source="dc1", target="dc2", refused=(refused,))
        assert (flow_head(runner)["refused_after_switch"] or "").startswith("1 principals would")
    registry = CollectorRegistry()
    registry.register(FlowCollector([runner]))
    labels = {"flow": flow.config.name, "principal": "User:shop"}
    assert registry.get_sample_value("mirror_refused_after_switch", labels) == 2
    users = registry.get_sample_value("mirror_missing_scram_users", {"flow": flow.config.name})
    assert users is None, "what is not known is no zero"


def test_the_walker_of_what_is_fetched_is_named(tmp_path: Path) -> None:
    runner = runner_in(tmp_path)
    runner.config = replace(runner.config, has_chunk_kernel=False)
    registry = CollectorRegistry()
    registry.register(FlowCollector([runner]))
    flow = {"flow": runner.config.name}
    assert registry.get_sample_value("mirror_chunk_kernel", flow) == 0
    assert flow_head(runner)["walked_by"] == "Python (switched off)"
    runner.config = replace(runner.config, has_chunk_kernel=True)
    assert registry.get_sample_value("mirror_chunk_kernel", flow) == native().is_native
    assert flow_head(runner)["walked_by"] == native().words
