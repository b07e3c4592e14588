"""The snapshot, while records flow: what the target holds, the source's bounds take in."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import trio
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from runtime.configuration.config import Configuration, load
from spark_audit.snapshot.snapshot import TopicFilter, take_snapshot
from tests.clusters import RunningCluster, cluster_in, run_together
from tests.dc_yaml import dc_yaml

pytestmark = pytest.mark.integration

SNAPSHOTS = 20


@dataclass(slots=True, kw_only=True)
class Stage:
    """Two topics on the source, one of them on the target too, which has one of its own."""

    source: RunningCluster
    target: RunningCluster
    configuration: Configuration


@pytest.fixture(scope="module")
def sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("sites")
    source, target = (cluster_in(folder, 1, name, shares_zookeeper=True) for name in ("dc1", "dc2"))
    with run_together(source, target):
        _create(source, {"both": "delete", "compacted": "compact", "hidden.internal": "delete"})
        _create(target, {"both": "delete", "native": "delete"}, **{"retention.ms": "3600000"})
        file = folder / "dc.yaml"
        file.write_text(
            dc_yaml(
                dc1=source.bootstrap,
                dc2=target.bootstrap,
                witness=witness,
                path="/snapshots",
            )
        )
        yield Stage(source=source, target=target, configuration=load(file))


def _create(cluster: RunningCluster, policies: dict[str, str], **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [
        NewTopic(name, 2, 1, config={"cleanup.policy": policy, **settings})
        for name, policy in policies.items()
    ]
    for result in admin.create_topics(topics).values():
        result.result(60)


def _wants(sites: Stage, *only: str) -> TopicFilter:
    return TopicFilter(flow=sites.configuration.flows[0], only=frozenset(only))


async def test_the_flows_topics_are_looked_at(sites: Stage) -> None:
    snapshot = await take_snapshot(sites.configuration, _wants(sites), now_ms=5)
    assert [(one.topic, one.partition) for one in snapshot.partitions] == [
        ("both", 0),
        ("both", 1),
        ("compacted", 0),
        ("compacted", 1),
    ]
    assert snapshot.only_on_target == ("native",)
    assert snapshot.promotion is None
    assert {one.topic for one in snapshot.partitions if one.source.is_compacted} == {"compacted"}
    [differs] = snapshot.settings
    assert (differs.topic, differs.name, differs.target) == ("both", "retention.ms", "3600000")
    assert differs.loses == "deletes records earlier"


async def test_what_the_target_holds_is_within_the_sources_bounds(sites: Stage) -> None:
    """A mirror as quick as can be writes to the target while snapshots are taken."""
    with trio.CancelScope() as writing:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_write_both, sites)
            for _ in range(SNAPSHOTS):
                snapshot = await take_snapshot(sites.configuration, _wants(sites, "both"), now_ms=5)
                for bounds in snapshot.partitions:
                    assert bounds.target.stop <= bounds.source.stop
            writing.cancel()
    assert snapshot.partitions[0].target.stop > 0


async def _write_both(sites: Stage) -> None:
    producers = [
        Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
        for cluster in (sites.source, sites.target)
    ]
    while True:
        for producer in producers:
            await trio.to_thread.run_sync(_write_one, producer)


def _write_one(producer: Producer) -> None:
    producer.produce("both", value=b"record", partition=0)
    producer.flush(60)
