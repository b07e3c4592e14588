"""Two clusters whose logs are laid on disk as they were planted, and audited by the program.

Topics are created, the brokers stop, the planted segments take the place of the empty ones, and the
brokers recover them as after a crash. What is damaged is so once they serve: they would cut it off.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from confluent_kafka.admin import AdminClient, NewTopic

from demo.doors import LISTENER, Doors
from offset_translation import Place, map_topic_name
from offset_translation.map_records import MirrorProducer, mirror_producer, piece_start
from runtime.coordination.known_ends import KnownEnd, KnownEnds
from runtime.coordination.map_registry import WitnessWriters, append_to_map
from runtime.coordination.witness import WitnessPaths
from spark_audit.result.store import FINDINGS, Result
from spark_audit.session import open_session
from tests.clusters import RunningCluster, cluster_in, run_together
from tests.commands import run_audit_command
from tests.dc_yaml import FREE_PORTS, dc_yaml, flow
from tests.drill.audit.judging import Told, told_by
from tests.drill.audit.laying import MIRRORS, Laid, batches_at, damaged
from tests.drill.audit.partitions import Planted
from tests.drill.cluster import DrillFailed
from tests.zookeeper import look, open_witness_of_tests
from wire.net import open_cluster
from wire.net.group_operations import commit_group_offsets
from wire.topic_partition import TopicPartition

SITES: Final = ("dc1", "dc2")
OVERRIDES: Final = {"log.cleaner.enable": "false", "auto.create.topics.enable": "false"}
"""What cleaners took is planted; none may go on."""
ONE_WAY, BOTH_WAYS, PREFIXED = "/one-way", "/both-ways", "/prefixed"
"""The paths of the files in the witness."""
MARKS: Final = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")
"""Of the brokers that created the topics; without them a broker reads its logs anew."""
STATUSES: Final = (0, 1)


@dataclass(slots=True, kw_only=True)
class Stage:
    """Both clusters, up, with everything planted."""

    clusters: tuple[RunningCluster, RunningCluster]
    folder: Path
    planted: Sequence[Planted]
    doors: Doors | None = None

    def audit(self) -> dict[Told, str]:
        """Return what audits of all flows find, in one session of Spark's."""
        told: dict[Told, str] = {}
        with (
            open_session(cores=2) as spark,
            pytest.MonkeyPatch.context() as patch,
        ):

            @contextmanager
            def there_is_one(**_: object) -> Iterator[object]:
                yield spark

            patch.setattr("spark_audit.run.open_session", there_is_one)
            for file in (self._one_way(), self._prefixed(), self._both_ways()):
                told |= self._audit(file)
        return told

    def _audit(self, file: Path) -> dict[Told, str]:
        output = self.folder / f"result-{file.stem}"
        done = run_audit_command("run", str(file), "--output", str(output))
        if done.returncode not in STATUSES or done.stderr:
            raise DrillFailed(f"the audit of {file.name}: {done.stderr or done.stdout}")
        assert (output / FINDINGS).is_dir(), "a finished audit has findings, perhaps none"
        verdict = json.loads((output / "verdict.json").read_text())
        untold = [one for each in verdict["flows"] for one in (*each["untold"], *each["unaudited"])]
        if untold:
            raise DrillFailed(f"not told in {file.name}: {untold[:3]}")
        return told_by(Result(output).findings())

    def _one_way(self) -> Path:
        return self._file("one-way", ONE_WAY, [flow(topics=_names(self.planted, ONE_WAY))])

    def _prefixed(self) -> Path:
        topics = _names(self.planted, PREFIXED)
        return self._file("prefixed", PREFIXED, [flow(topics=topics, names="prefixed")])

    def _both_ways(self) -> Path:
        topics = _names(self.planted, BOTH_WAYS)
        ways = [
            flow(source, target, topics=topics, active_active=True)
            for source, target in (SITES, SITES[::-1])
        ]
        return self._file("both-ways", BOTH_WAYS, ways)

    def _file(self, name: str, path: str, flows: Sequence[str]) -> Path:
        file = self.folder / f"{name}.yaml"
        dc1, dc2 = self.clusters
        file.write_text(
            dc_yaml(
                *flows,
                dc1=self._section(dc1),
                dc2=self._section(dc2),
                witness=dc2.zookeeper,
                path=path,
                metrics=FREE_PORTS if self.doors is None else {**FREE_PORTS, **self.doors.at_pages},
                failover={"initial_active": SITES[0]},
            )
        )
        return file

    def _section(self, cluster: RunningCluster) -> str | dict[str, Any]:
        if self.doors is None:
            return cluster.bootstrap
        return self.doors.cluster(cluster.secured_bootstrap)


def _path(planted: Planted) -> str:
    """Return the witness's path of the file in which the partition is audited."""
    if planted.kind.both_ways:
        return BOTH_WAYS
    return PREFIXED if planted.kind.is_prefixed else ONE_WAY


def _names(planted: Iterable[Planted], path: str) -> list[str]:
    return sorted({one.topic for one in planted if _path(one) == path})


@contextmanager
def staged(
    folder: Path, planted: Sequence[Planted], now_ms: int, *, is_secured: bool = False
) -> Iterator[Stage]:
    """Lay everything down and give the stage; `is_secured`: the audit comes over TLS and SASL."""
    doors = Doors(folder / "doors") if is_secured else None
    clusters = (
        cluster_in(folder, 1, SITES[0], OVERRIDES),
        cluster_in(folder, 1, SITES[1], OVERRIDES),
    )
    if doors is not None:
        for cluster in clusters:
            cluster.also, cluster.properties = LISTENER, doors.of_brokers_file
    with run_together(*clusters):
        for site, cluster in enumerate(clusters):
            _create_topics(cluster, site, planted)
    for site, cluster in enumerate(clusters):
        _lay(cluster, site, planted)
    with run_together(*clusters):
        for site, cluster in enumerate(clusters):
            _damage(cluster, site, planted)
            trio.run(_commit, cluster, site, planted)
        trio.run(_write_maps, clusters, clusters[1].zookeeper, planted)
        for path in (ONE_WAY, PREFIXED):
            _promise(clusters[1], path, planted, now_ms)
        yield Stage(clusters=clusters, folder=folder, planted=planted, doors=doors)


def _create_topics(cluster: RunningCluster, site: int, planted: Sequence[Planted]) -> None:
    counts: dict[str, int] = {}
    compacted: set[str] = set()
    for one in planted:
        name = one.kind.topic_at(site)
        counts[name] = max(counts.get(name, 0), one.partition + 1)
        if one.kind.is_compacted:
            compacted.add(name)
    topics = [
        NewTopic(
            name,
            count,
            1,
            config={
                "retention.ms": "-1",
                "cleanup.policy": "compact" if name in compacted else "delete",
            },
        )
        for name, count in counts.items()
    ]
    map_topic = map_topic_name(SITES[1 - site])
    topics.append(NewTopic(map_topic, 1, 1, config={"cleanup.policy": "compact"}))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for result in admin.create_topics(topics).values():
        result.result(60)


def _logs(cluster: RunningCluster) -> Path:
    (logs,) = cluster.data.glob("broker-*/logs")
    return logs


def _lay(cluster: RunningCluster, site: int, planted: Sequence[Planted]) -> None:
    logs = _logs(cluster)
    for mark in MARKS:
        (logs / mark).unlink(missing_ok=True)
    for one in planted:
        folder = logs / f"{one.kind.topic_at(site)}-{one.partition}"
        for made in folder.iterdir():
            if made.name != "partition.metadata":
                made.unlink()
        _segment(folder, one.sides[site]).write_bytes(
            b"".join(batch for _, batch, _ in batches_at(one.sides[site]))
        )


def _segment(folder: Path, laid: Laid) -> Path:
    return folder / f"{laid.log.start:020}.log"


def _damage(cluster: RunningCluster, site: int, planted: Sequence[Planted]) -> None:
    """Flip bits on the disk of a broker that serves them."""
    logs = _logs(cluster)
    for one in planted:
        segment = _segment(logs / f"{one.kind.topic_at(site)}-{one.partition}", one.sides[site])
        with segment.open("r+b") as log:
            for position, batch, is_damaged in batches_at(one.sides[site]):
                if is_damaged:
                    log.seek(position)
                    log.write(damaged(batch))


async def _write_maps(
    clusters: Sequence[RunningCluster], witness: str, planted: Sequence[Planted]
) -> None:
    """Write what the mirrors of each file say of what they brought, as its registered writers."""
    pieces: dict[str, list[Any]] = {ONE_WAY: [], PREFIXED: [], BOTH_WAYS: []}
    for one in planted:
        pieces[_path(one)] += (
            piece_start(one.topic, one.partition, source_start=source, place=Place(place))
            for source, place in one.pieces or ()
        )
    async with open_witness_of_tests(witness, session_timeout_ms=10_000) as zookeeper:
        for path, site in ((ONE_WAY, 1), (PREFIXED, 1), (BOTH_WAYS, 1), (BOTH_WAYS, 0)):
            source, target = SITES[1 - site], SITES[site]
            mirror = MirrorProducer(producer_id=MIRRORS[1 - site], producer_epoch=0)
            writers = WitnessWriters(zookeeper, WitnessPaths(root=path), source, target)
            async with open_cluster(clusters[site].addresses, client_id="drill") as client:
                records = [mirror_producer(mirror), *pieces[path]]
                await append_to_map(client, map_topic_name(source), records, writers)


async def _commit(cluster: RunningCluster, site: int, planted: Sequence[Planted]) -> None:
    """Commit the planted positions of groups."""
    positions: dict[str, dict[TopicPartition, tuple[int, str]]] = {}
    for one in planted:
        for place in one.places:
            where = TopicPartition(one.kind.topic_at(site), one.partition)
            offset = (place.source, place.target)[site]
            positions.setdefault(place.group, {})[where] = offset, ""
    async with open_cluster(cluster.addresses, client_id="drill") as client:
        for group, offsets in positions.items():
            await commit_group_offsets(client, group, offsets)


def _promise(cluster: RunningCluster, path: str, planted: Sequence[Planted], now_ms: int) -> None:
    """Have the mirror say in the witness how far it had brought everything."""
    ends: Mapping[TopicPartition, KnownEnd] = {
        TopicPartition(one.topic, one.partition): KnownEnd(
            end=one.promised, heard_ms=now_ms, level_ms=now_ms
        )
        for one in planted
        if one.promised is not None and _path(one) == path
    }
    document: Any = KnownEnds(at_ms=now_ms, ends=ends).encode()
    paths = WitnessPaths(root=path)
    witness = look(cluster.zookeeper)
    witness.start()
    try:
        for name, part in document.parts.items():
            witness.create(f"{paths.known_ends_parts(*SITES)}/{name}", part, makepath=True)
        witness.create(paths.known_ends(*SITES), document.head, makepath=True)
    finally:
        witness.stop()
        witness.close()
