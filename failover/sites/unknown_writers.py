"""Writers of internal topics that the witness does not know, and how they are believed again.

An old copy of the witness lacks who has registered since. Where numbers tell so, all that the topic
holds is adopted when the mirror starts next. Where a person has found it out, only the producers
are registered that write of the flow's topics: another pair may have its map in the same topic, and
plain producers are no mirror.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import trio

from failover.journal.lease import hold_lease
from offset_translation.map_records import map_topic_name, partition_of
from offset_translation.topic_identity import NO_ID
from runtime.configuration.config import Configuration, FlowConfig
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.map_writers import (
    TO_ADOPT,
    WITHOUT_ID,
    MapReading,
    MapWriters,
    Registration,
    UnbelievedRecords,
    Writers,
    number_in,
)
from runtime.coordination.witness import WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import BadVersion, NodeExists, ZooKeeper
from runtime.process.clock import now_ms
from wire.errors import ErrorCode, describe
from wire.net import Cluster, NetworkFault
from wire.net.operations import EARLIEST, LATEST, list_offsets, read_partition
from wire.record_batch import CorruptBatch, iterate_records
from wire.topic_partition import TopicPartition
from wire.values import frozen

READ_TIMEOUT_S: Final = 30.0
"""A map has room for a million holes."""


class MapUnreadable(NetworkFault):
    """An internal topic does not tell what it holds; the message says why."""


class CannotRecover(Exception):
    """The witness cannot be restored like this; the message says what has to be decided."""


@frozen(kw_only=False)
class Internal:
    """An internal topic of a flow, on its target."""

    flow: FlowConfig
    of_checkpoints: bool = False

    @property
    def topic(self) -> str:
        """Return its name."""
        names = self.flow.names
        return names.checkpoints_topic if self.of_checkpoints else map_topic_name(self.flow.source)

    def node(self, paths: WitnessPaths) -> str:
        """Return the witness's node of its writers."""
        path = paths.checkpoint_writers if self.of_checkpoints else paths.map_writers
        return path(self.flow.source, self.flow.target)

    def __str__(self) -> str:
        """Return site and topic, as they are shown."""
        return f"{self.flow.target:<11} {self.topic}"


@frozen(kw_only=False)
class Unknown:
    """The writers of a topic that the witness does not know."""

    internal: Internal
    why: str
    is_outdated: bool = False
    """Numbers tell that the witness is an old copy: all that the topic holds is adopted."""
    producers: frozenset[int] = frozenset()
    """Those that a person has found to be the mirror's."""


async def restore_writers(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    show: Callable[[str], None],
    *,
    write: bool,
    believes_maps: bool = False,
) -> None:
    """Have writers believed whom the witness does not know, or show which.

    Numbers tell that the witness is an old copy; with `believes_maps` a person has found that out,
    of topics without numbers. A lost site's map is left as it is: the other's is needed to promote.
    Raises CannotRecover where nothing is to be restored that can be read.
    """
    paths = configuration.coordination.paths
    unknown: list[Unknown] = []
    unread: list[str] = []
    for internal in _internal_topics(configuration, with_checkpoints=believes_maps):
        try:
            found = await _find_unknown(
                zookeeper, paths, clusters, internal, without_numbers=believes_maps
            )
        except MapUnreadable as fault:
            unread.append(str(fault))
            continue
        if found is not None:
            show(f"{internal}: {found.why}")
            if found.is_outdated or found.producers:
                unknown.append(found)
    if unread and not unknown:
        raise CannotRecover(unread[0])
    for why in unread:
        show(f"left as is  {why}")
    if not unknown:
        show("nothing to restore")
        return
    if not write:
        show("nothing was changed: with --write these writers are believed")
        return
    coordination = configuration.coordination
    wait_ms = 2 * coordination.session_timeout_ms
    async with hold_lease(zookeeper, paths.lease, wait_ms=wait_ms) as lease:
        await lease.act(lambda: _believe(zookeeper, paths, unknown))
    show("written     start every `mirror run` again: these writers are believed from then on")


def _internal_topics(configuration: Configuration, *, with_checkpoints: bool) -> list[Internal]:
    """Return the topics; the map last, so that a second run ends what was begun."""
    kinds = (True, False) if with_checkpoints else (False,)
    return [Internal(flow, kind) for flow in configuration.flows for kind in kinds]


async def _find_unknown(
    zookeeper: ZooKeeper,
    paths: WitnessPaths,
    clusters: Mapping[str, Cluster],
    internal: Internal,
    *,
    without_numbers: bool,
) -> Unknown | None:
    """Return what a topic shows that the witness should know, None for nothing.

    Records of others count `without_numbers`, too. Raises MapUnreadable: what cannot be read is not
    known to be in order.
    """
    flow, where = internal.flow, f"{internal.flow.target} {internal.topic}"
    node = await zookeeper.get(internal.node(paths))
    if node is None:
        return None  # nobody has written it, or all that it holds is adopted
    known = MapWriters.decode(node.data)
    writers = WitnessWriters(
        zookeeper, paths, flow.source, flow.target, of_checkpoints=internal.of_checkpoints
    )
    with trio.move_on_after(READ_TIMEOUT_S):
        try:
            written = await read_writers(clusters[flow.target], internal.topic, registered=known)
            unbelieved = (
                await read_writers(
                    clusters[flow.target],
                    internal.topic,
                    writers,
                    None if internal.of_checkpoints else flow.mirrors,
                    registered=known,
                )
                if without_numbers
                else UnbelievedRecords()
            )
        except NetworkFault as fault:
            raise MapUnreadable(
                f"{where}: whether the witness knows all its writers is not known: {fault}"
            ) from fault
        number = written.numbers.get(known.registry, 0)
        if known.is_before(Registration(known.registry, number)):
            return Unknown(
                internal,
                f"the witness is an old copy: it knows of {known.number} writers, and writer"
                f" {number} has been at work. {told(written)}",
                is_outdated=True,
            )
        another = None if internal.of_checkpoints else _told_another(known, written)
        if without_numbers and another is not None:
            return Unknown(internal, another, is_outdated=True)
        return _told_unknown(internal, unbelieved) if unbelieved.count else None
    raise MapUnreadable(f"{where} was not read within {READ_TIMEOUT_S:g} s")


def _told_another(known: MapWriters, written: "WrittenBy") -> str | None:
    """Return how the log is another one than our programs have written, None if it is not."""
    if known.is_of_another_topic(written.topic_id):
        how = (
            f"the topic (id {written.topic_id}) is another one than our programs have written (id"
            f" {UUID(known.topic_id)}): it was made again. Have it believed only if all that it"
            " held was put back"
        )
    elif known.is_cut(written.end):
        how = (
            f"the topic ends at {written.end}, and was written up to {known.end}: it lost its end."
            " Have it believed only if all topics of the site were restored to the same moment"
        )
    elif not written.count and known.is_gone(is_there=written.end is not None):
        return (
            "nothing of the topic is there, and it was written: it was deleted. Have that believed"
            " only if all that was mirrored by it was deleted, too; else `mirror rebuild-map` finds"
            " it again"
        )
    else:
        return None
    return f"{how}: by a part of it, groups would pass over records. {told(written)}"


def _told_unknown(internal: Internal, unbelieved: UnbelievedRecords) -> Unknown:
    """Name those that a person may have believed: no mirror writes as a plain producer."""
    producers = frozenset(unbelieved.producers) - {WITHOUT_ID}
    why = f"{unbelieved.count} records are not believed: {'; '.join(unbelieved.describe())}"
    if WITHOUT_ID in unbelieved.producers:
        why += "; those of plain producers are no mirror's, and stay as they are"
    return Unknown(internal, why, producers=producers)


async def _believe(zookeeper: ZooKeeper, paths: WitnessPaths, unknown: Collection[Unknown]) -> None:
    outdated = {one.internal.flow.name: one.internal.flow for one in unknown if one.is_outdated}
    await adopt_maps(zookeeper, paths, outdated.values())
    for one in unknown:
        await _register(zookeeper, one.internal.node(paths), one.producers)


async def _register(zookeeper: ZooKeeper, path: str, producers: Collection[int]) -> None:
    """Register producers; a mirror may register another one at the same time."""
    while producers:
        node = await zookeeper.get(path)
        if node is None:
            return  # all that the topic holds is adopted
        known = MapWriters.decode(node.data)
        for producer_id in sorted(producers):
            known = known.with_producer(producer_id, now_ms())
        try:
            await zookeeper.set(path, known.encode(), version=node.version)
        except BadVersion:
            continue
        return


async def adopt_maps(
    zookeeper: ZooKeeper, paths: WitnessPaths, flows: Collection[FlowConfig]
) -> None:
    """Have maps and checkpoints adopted as they are at the next start of a mirror.

    The witness may not know who wrote them: an old copy lacks those that registered since.
    """
    for flow in flows:
        for of_checkpoints in (True, False):
            await _adopt(zookeeper, Internal(flow, of_checkpoints).node(paths))


async def _adopt(zookeeper: ZooKeeper, path: str) -> None:
    while True:
        node = await zookeeper.get(path)
        try:
            if node is None:
                await zookeeper.create(path, TO_ADOPT.encode(), make_parents=True)
                return
            try:
                known = MapWriters.decode(node.data)
            except WitnessGarbled:
                known = TO_ADOPT
            await zookeeper.set(path, known.adopting().encode(), version=node.version)
        except (NodeExists, BadVersion):
            continue  # a mirror has registered meanwhile
        return


async def told_writers(clusters: Mapping[str, Cluster], flow: FlowConfig) -> str:
    """Return who wrote a map that is going to be adopted: producers that are to be known again."""
    topic = map_topic_name(flow.source)
    with trio.move_on_after(READ_TIMEOUT_S):
        try:
            return told(await read_writers(clusters[flow.target], topic))
        except NetworkFault as fault:
            return f"Its writers are not known: {fault}"
    return f"Its writers are not known: it was not read within {READ_TIMEOUT_S:g} s"


@dataclass(slots=True)
class WrittenBy(UnbelievedRecords):
    """All records of a map by their producers, and the writers that have begun there."""

    numbers: dict[str, int] = field(default_factory=dict)
    """By registry the highest number."""
    topic_id: UUID = NO_ID
    """The topic's, zero where there is none or brokers tell none."""
    end: int | None = None


def told(written: WrittenBy) -> str:
    """Return who has written a map."""
    if not written.count:
        return "It is empty"
    return f"It holds {written.count} records: {'; '.join(written.describe())}"


async def read_writers(
    cluster: Cluster,
    topic: str,
    known: Writers | None = None,
    concerned: Callable[[str], bool] | None = None,
    *,
    registered: MapWriters | None = None,
) -> WrittenBy:
    """Return the producers of all records of an internal topic but those `known`.

    Of a map those count that write of topics that the caller is `concerned` with, or of none at
    all. Numbers are those of writers that are not `registered`. Raises NetworkFault.
    """
    written, reading = WrittenBy() if concerned is None else WrittenBy(concerned), MapReading()
    view = (await cluster.metadata([topic], refresh=True)).topics.get(topic)
    if view is None or view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return written
    if view.error_code != ErrorCode.NONE:
        raise MapUnreadable(f"{topic}: {describe(view.error_code)}")
    written.topic_id = view.topic_id
    where = TopicPartition(topic, 0)
    start = (await list_offsets(cluster, [where], EARLIEST))[where]
    end = (await list_offsets(cluster, [where], LATEST))[where]
    for bound in (start, end):
        if isinstance(bound, ErrorCode):
            raise MapUnreadable(f"{topic}: {bound.name}")
    assert isinstance(start, int), "checked above"
    assert isinstance(end, int), "checked above"
    written.end = end
    try:
        async for header, batch in read_partition(cluster, *where, start, end):
            producer_id, first = header.producer_id, header.base_offset
            is_known = known is not None and await known.believes(producer_id, first, reading)
            is_registered = registered is not None and registered.believes(producer_id, first)
            for record in iterate_records(batch):
                one = number_in(record.key, record.value)
                if not is_known:
                    about = frozenset() if concerned is None else partition_of(record.key)
                    is_elsewhere = (
                        one is not None and registered is not None and registered.is_of_another(one)
                    )
                    written.note(producer_id, record.offset, about, is_elsewhere=is_elsewhere)
                if one is not None and not is_registered:
                    highest = max(written.numbers.get(one.registry, 0), one.number)
                    written.numbers[one.registry] = highest
    except CorruptBatch as fault:
        raise MapUnreadable(f"{topic}: {fault}") from fault
    return written
