"""The metrics of `failover serve`, and the status, while the sites are down."""

from functools import partial
from pathlib import Path

import pytest
import trio

from failover.journal.journal import Journal, PartitionEnds, encode_journal
from failover.journal.steps import PromotionKind, PromotionState
from failover.serve.program import serve
from failover.serve.status_collector import StatusCollector
from failover.view.status import read_status, status_lines
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite, WitnessPaths, WorkerInfo
from runtime.process.ports import free_port
from tests.failover.serve.fetching import fetch
from tests.failover.two_sites import promotable
from tests.zookeeper import open_witness_of_tests

pytestmark = pytest.mark.integration

PATHS = WitnessPaths(root="/kafka-dr")
DONE = Journal(
    epoch=1,
    site="dc2",
    source="dc1",
    kind=PromotionKind.SOURCE_LOST,
    state=PromotionState.DONE,
    started_ms=1_000,
    switched_ms=3_500,
    partitions=(
        PartitionEnds(topic="t", partition=0, mirrored_source_end=5, target_end=5, source_end=None),
    ),
)


async def test_roles_and_the_last_promotion_are_metrics_and_what_is_not_known_is_absent(
    tmp_path: Path, empty_zookeeper: str
) -> None:
    file = tmp_path / "dc.yaml"
    async with open_witness_of_tests(empty_zookeeper) as zookeeper:
        down = f"127.0.0.1:{free_port()}"
        text = promotable(
            dc1=down, dc2=down, witness=empty_zookeeper, path="/kafka-dr", topics=".*"
        )
        file.write_text(text)
        configuration = load(file)
        active = ActiveSite(site="dc2", epoch=1, moving_to="dc1")
        await zookeeper.create(PATHS.active, active.encode(), make_parents=True)
        await zookeeper.create(PATHS.journal(1), encode_journal(DONE), make_parents=True)
        lines = list(status_lines(await read_status(configuration, zookeeper, active)))
        async with trio.open_nursery() as nursery:
            port = await nursery.start(partial(serve, configuration))
            metrics = ""
            with trio.fail_after(60):
                while "failover_epoch 1.0" not in metrics:
                    await trio.sleep(0.1)
                    metrics = await trio.to_thread.run_sync(fetch, port)
            page = await trio.to_thread.run_sync(fetch, port, "/console")
            promotions = await trio.to_thread.run_sync(fetch, port, "/console/promotions?epoch=1")
            nursery.cancel_scope.cancel()
    assert lines[0] == "active   dc2 (epoch 1), moving to dc1"
    assert lines[1].startswith(f"site     dc1: standby, {down}: ")
    assert lines[2].startswith(f"site     dc2: active, {down}: ")
    assert lines[3:] == [
        "flow     dc1->dc2: nobody runs it",
        "last     source-lost to dc2, epoch 1, done, RTO 2.50 s",
    ]
    for line in (
        "failover_witness_up 1.0",
        'failover_role{site="dc1"} 0.0',
        'failover_role{site="dc2"} 1.0',
        'failover_moving{site="dc1"} 1.0',
        'failover_site_up{site="dc1"} 0.0',
        'failover_flow_runs{flow="dc1->dc2"} 0.0',
        "failover_unfinished 0.0",
        "failover_held 0.0",
        'failover_last_promotion_rto_seconds{kind="source-lost",site="dc2",state="done"} 2.5',
    ):
        assert line in metrics.splitlines()
    assert "failover_fenced_topics{" not in metrics
    assert "dc2 is active, moving to dc1" in page
    assert "the site does not answer" in page
    assert "Promotion of dc2, epoch 1" in promotions
    assert "not known" in promotions, "its journal has no step of a loss"


async def test_a_flow_out_of_a_site_that_is_not_active_rests_although_its_daemon_is_there(
    tmp_path: Path, empty_zookeeper: str
) -> None:
    file = tmp_path / "dc.yaml"
    async with open_witness_of_tests(empty_zookeeper) as zookeeper:
        down = f"127.0.0.1:{free_port()}"
        file.write_text(
            promotable(down, down, empty_zookeeper, "/kafka-dr", ".*", is_both_ways=True)
        )
        daemon = WorkerInfo(host="here", pid=7, metrics_url="", started_ms=0)
        for flow in (("dc1", "dc2"), ("dc2", "dc1")):
            await zookeeper.create(PATHS.worker(*flow), daemon.encode(), make_parents=True)
        collector = StatusCollector()
        active = ActiveSite(site="dc1", epoch=0)
        status = await read_status(load(file), zookeeper, active)
        collector.know(status)
    flows = [line for line in status_lines(status) if line.startswith("flow")]
    assert flows == [
        "flow     dc1->dc2: runs (process 7 on here)",
        "flow     dc2->dc1: rests (process 7 on here)",
    ]
    measured = {
        sample.labels["flow"]: sample.value
        for metric in collector.collect()
        for sample in metric.samples
        if sample.name == "failover_flow_runs"
    }
    assert measured == {"dc1->dc2": 1, "dc2->dc1": 0}
