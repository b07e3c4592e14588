"""Planned switches of groups at every lag between two sites: what is re-read, what skipped.

Groups are given records by a foreign client on one site, commit, and go on with the same client on
the other, from where their committed position is. What decides are the records themselves, which
all differ: nothing is asked of the mirror.

Where the source is Apache Kafka, which knows no fence, `failover promote` must refuse; then nobody
writes any more, and the mirror is stopped once the positions are there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, Final

import trio
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.bench.measure.ledger import RunFailed
from tests.failover.promoting import failover, finish
from tests.freshness.switched import Group, Switched, compare
from tests.interop.sites import (
    QUIET,
    RunningPair,
    Site,
    commit,
    committed,
    create_topic,
    end_of,
    write_transactions,
)
from tests.mirror.daemon import MirrorProcess, run_mirror, wait_until
from wire.errors import ErrorCode
from wire.net import open_cluster
from wire.net.operations import append
from wire.record_batch import Record, build_batch

LAGS: Final = (0, 1_000, 100_000, 1_000_000)
BEFORE: Final = 20_000
"""Records before the position of the largest lag."""
BATCH_RECORDS: Final = 10_000
MIXED_RECORDS: Final = 1_000
"""A batch of what both sites write at once."""
REPEATED: Final = 5
"""Every fifth record of the compacted topic has the key of many others."""
PATIENCE_S: Final = 90
CONFIG: Final = """\
clusters:
  dc1: {{bootstrap: "{dc1}"}}
  dc2: {{bootstrap: "{dc2}"}}
flows:
{flows}
coordination: {{zookeeper: "{witness}", path: "/{path}", session_timeout_ms: 4000}}
failover: {{initial_active: dc1, drain_timeout_ms: 60000, stop_timeout_ms: 15000}}
metrics: {{mirror_port: 0, failover_port: 0, audit_port: 0}}
"""
FLOW: Final = """\
  - source: {source}
    target: {target}
    topics: {{include: ["{topic}"]}}
    groups: {{include: ["{topic}-.*"]}}
    discovery_interval_ms: 300
    active_active: {active_active}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Two sites, one topic of one partition that exists on both, and a folder for what is said."""

    sites: RunningPair
    folder: Path
    topic: str
    lags: Sequence[int] = LAGS

    @property
    def has_fence(self) -> bool:
        """Whether a planned promotion can close the source."""
        return not self.sites.pair.has_apache_source

    @property
    def configuration(self) -> Path:
        return self.folder / "dc.yaml"

    def site(self, name: str) -> Site:
        return {"dc1": self.sites.dc1, "dc2": self.sites.dc2}[name]

    def configure(self, *, active_active: bool = False, back: bool = True) -> Path:
        """Write the configuration, with a flow for each direction or for the one alone."""
        said = str(active_active).lower()
        ways = [("dc1", "dc2"), ("dc2", "dc1")] if back else [("dc1", "dc2")]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(
            CONFIG.format(
                dc1=self.sites.dc1.bootstrap,
                dc2=self.sites.dc2.bootstrap,
                witness=self.sites.witness,
                path=self.folder.name,
                flows="".join(
                    FLOW.format(source=one, target=other, topic=self.topic, active_active=said)
                    for one, other in ways
                ),
            )
        )
        return self.configuration

    def groups(self, source: str, amid: Sequence[int] = ()) -> list[Group]:
        """Read the source to its end, and commit for a group at each lag what it has read."""
        offsets, values = read(self.site(source), self.topic)
        found = []
        for lag in (*self.lags, *amid):
            count = len(values) - lag
            name = f"{self.topic}-{source}-{len(values)}-{lag}"
            position = offsets[count - 1] + 1
            commit(self.site(source), name, self.topic, position)
            consumed = values[:count]
            found.append(
                Group(name=name, lag=lag, consumed=consumed, position=position, is_amid=lag in amid)
            )
        return found

    def switch(
        self, mirror: MirrorProcess, to: str, groups: Sequence[Group], wanted: Collection[bytes]
    ) -> Iterator[Switched]:
        """Move to the other site as is planned there, and let the groups go on."""
        if self.has_fence:
            self.promote(to)
            how = f"promote {to}"
        else:
            self._stop_in_order(mirror, to, groups)
            how = f"stop, to {to}"
        site = self.site(to)
        _, log = read(site, self.topic)
        for group in groups:
            _, delivered = read(site, self.topic, group.name)
            yield compare(self.topic, how, group, delivered, wanted=wanted, log=log)

    def promote(self, to: str) -> None:
        ended = finish(failover("promote", to, str(self.configuration)))
        # Status 1: a group was left where it is, as it has read on there. What it reads is judged.
        if ended.status not in {0, 1} or f"{to} is active" not in ended.output:
            raise RunFailed(f"promote {to}: {ended}")

    def _stop_in_order(self, mirror: MirrorProcess, to: str, groups: Sequence[Group]) -> None:
        ended = finish(failover("promote", to, str(self.configuration)))
        if ended.status != 2 or "fence" not in ended.output + ended.complaint:
            raise RunFailed(f"promote {to} was not refused at the fence: {ended}")
        source = self.sites.dc1 if to == "dc2" else self.sites.dc2
        mirror.wait_mirrored(self.topic, end_of(source, self.topic))
        for group in groups:
            wait_until(group.name, partial(self._is_there, to, group.name))
        if mirror.stop() != 0:
            raise RunFailed(mirror.log)

    def _is_there(self, site: str, group: str) -> bool:
        return committed(self.site(site), group, self.topic) >= 0


def one_way(scene: Scene, fill: Callable[[Scene], Collection[bytes]]) -> Iterator[Switched]:
    """From dc1 to dc2, where all was written on dc1; promoted while the mirror catches up."""
    wanted = fill(scene)
    with run_mirror(scene.configure(back=False)) as mirror:
        mirror.wait_state(scene.topic, "streaming")
        yield from scene.switch(mirror, "dc2", scene.groups("dc1"), wanted)


def there_and_back(scene: Scene) -> Iterator[Switched]:
    """To dc2, back to dc1 and to dc2 again; groups read what either site has written."""
    create_both(scene)
    half = (max(scene.lags) + BEFORE) // 2
    wanted = set(write(scene, "dc1", 0, half))
    with run_mirror(scene.configure()) as mirror:
        mirror.wait_state(scene.topic, "streaming")
        scene.promote("dc2")
        wanted |= set(write(scene, "dc2", 0, half))
        yield from scene.switch(mirror, "dc1", scene.groups("dc2"), wanted)
        wanted |= set(write(scene, "dc1", half, BEFORE))
        yield from scene.switch(mirror, "dc2", scene.groups("dc1"), wanted)


def both_at_once(scene: Scene) -> Iterator[Switched]:
    """Both sites are written to at once, up to each lag's position; then dc1 is closed, then dc2.

    Before a promotion `active_active` is taken out, as it asks for. Amid what was written at once
    a group's records lie in another order on the other site, and some must be read again.
    """
    create_both(scene)
    wanted: set[bytes] = set()
    sizes = stretches(scene.lags)
    with run_mirror(scene.configure(active_active=True)) as mirror:
        mirror.wait_state(scene.topic, "streaming")
        for size in sizes:
            wanted |= trio.run(_write_both, scene, len(wanted) // 2, size // 2)
            for site in (scene.sites.dc1, scene.sites.dc2):
                wait_until(f"{len(wanted)} records", partial(_has, site, scene, wanted), PATIENCE_S)
        rising = zip(sorted(scene.lags), reversed(sizes), strict=True)
        amid = [lag + size // 2 for lag, size in rising]
        groups = scene.groups("dc1", amid)
        assert mirror.stop() == 0
    with run_mirror(scene.configure()) as mirror:
        mirror.wait_state(scene.topic, "streaming")
        yield from scene.switch(mirror, "dc2", groups, wanted)
        if scene.has_fence:
            yield from scene.switch(mirror, "dc1", scene.groups("dc2", amid), wanted)


def stretches(lags: Sequence[int]) -> list[int]:
    """Return how many records to write up to each lag's position, the largest first; all even."""
    falling = sorted(lags, reverse=True)
    return [BEFORE, *(one - after for one, after in pairwise(falling))]


def _has(site: Site, scene: Scene, wanted: Collection[bytes]) -> bool:
    return end_of(site, scene.topic) >= len(wanted)


def create_both(scene: Scene) -> None:
    """Create the topic on both sites."""
    for site in (scene.sites.dc1, scene.sites.dc2):
        create_topic(site, scene.topic)


def fill_plain(scene: Scene) -> Collection[bytes]:
    """Write numbered records."""
    create_topic(scene.sites.dc1, scene.topic)
    return set(write(scene, "dc1", 0, max(scene.lags) + BEFORE))


def fill_transactional(scene: Scene) -> Collection[bytes]:
    """Write transactions; every third is aborted, and its records are nobody's."""
    create_topic(scene.sites.dc1, scene.topic)
    count = (max(scene.lags) + BEFORE) * 3 // 2 // BATCH_RECORDS
    write_transactions(scene.sites.dc1, scene.topic, count=count, each=BATCH_RECORDS)
    numbers = (
        range(one * BATCH_RECORDS, (one + 1) * BATCH_RECORDS)
        for one in range(count)
        if one % 3 != 2
    )
    return {b"%d" % number for some in numbers for number in some}


def fill_compacted(scene: Scene) -> Collection[bytes]:
    """Write numbered records, and wait until the cleaner has taken most repetitions out."""
    create_topic(
        scene.sites.dc1,
        scene.topic,
        cleanup_policy="compact",
        segment_bytes=str(4 * 1024 * 1024),
        min_cleanable_dirty_ratio="0.01",
    )
    count = (max(scene.lags) + BEFORE) * 5 // 4 + 2 * BATCH_RECORDS
    values = write(scene, "dc1", 0, count, key_of=_compacted_key)
    few = count * 0.85

    def is_compacted() -> bool:
        return len(read(scene.sites.dc1, scene.topic)[1]) < few

    wait_until("compaction", is_compacted, PATIENCE_S)
    repeated = [one for number, one in enumerate(values) if number % REPEATED == 0]
    return set(values) - set(repeated[:-1])


def _compacted_key(number: int) -> bytes:
    return b"again" if number % REPEATED == 0 else number.to_bytes(8)


def write(
    scene: Scene,
    site: str,
    first: int,
    count: int,
    key_of: Callable[[int], bytes | None] = lambda _: None,
) -> list[bytes]:
    """Write records that say which site has written them, and their number; return them all."""
    return trio.run(_write, scene, site, first, count, key_of, BATCH_RECORDS)


async def _write(
    scene: Scene,
    site: str,
    first: int,
    count: int,
    key_of: Callable[[int], bytes | None],
    batch_records: int,
) -> list[bytes]:
    written: list[bytes] = []
    async with open_cluster(scene.site(site).addresses, client_id="lags") as cluster:
        while len(written) < count:
            some = min(batch_records, count - len(written))
            numbers = range(first + len(written), first + len(written) + some)
            values = [f"{site}-{number}".encode() for number in numbers]
            records = [
                Record(place, 1, key_of(number), value)
                for place, (number, value) in enumerate(zip(numbers, values, strict=True))
            ]
            answer = await append(cluster, scene.topic, 0, build_batch(records))
            if answer.error_code != ErrorCode.NONE:
                raise RunFailed(f"{scene.topic} on {site}: {answer}")
            written += values
    return written


async def _write_both(scene: Scene, first: int, count: int) -> set[bytes]:
    written: set[bytes] = set()

    async def write_one(site: str) -> None:
        written.update(await _write(scene, site, first, count, lambda _: None, MIXED_RECORDS))

    async with trio.open_nursery() as nursery:
        for site in ("dc1", "dc2"):
            nursery.start_soon(write_one, site)
    return written


def read(site: Site, topic: str, group: str | None = None) -> tuple[list[int], list[bytes]]:
    """Return offsets and values of committed records up to the end, as librdkafka gives them.

    With a group, as its only member, from its committed position on; it must have one.
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": site.bootstrap,
        "group.id": group or "lags-reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer({**settings, **QUIET})
    if group is None:
        consumer.assign([TopicPartition(topic, 0, 0)])
    else:
        consumer.subscribe([topic])
    offsets: list[int] = []
    values: list[bytes] = []
    deadline = monotonic() + PATIENCE_S
    while monotonic() < deadline:
        for message in consumer.consume(BATCH_RECORDS, 0.2):
            fault = message.error()
            if fault is None:
                offsets.append(message.offset() or 0)
                values.append(message.value() or b"")
            elif fault.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return offsets, values
            else:
                raise KafkaException(fault)
    raise RunFailed(f"{topic}: not read to its end within {PATIENCE_S} s as {group}")


SCENES: Final[Mapping[str, Callable[[Scene], Iterator[Switched]]]] = {
    "plain": partial(one_way, fill=fill_plain),
    "transactional": partial(one_way, fill=fill_transactional),
    "compacted": partial(one_way, fill=fill_compacted),
    "there-and-back": there_and_back,
    "both-at-once": both_at_once,
}
