"""The registries of writers in the witness, and map records written under a registered producer."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID, uuid4

from runtime.coordination.map_writers import (
    CONFIRM_AGAIN_MS,
    NOBODY,
    TO_ADOPT,
    WITHOUT_ID,
    MapCut,
    MapGone,
    MapMadeAgain,
    MapReading,
    MapWriters,
    Registration,
    WitnessOutdated,
    Writers,
    WritersUnknown,
    begun_writers,
    number_record,
)
from runtime.coordination.witness import WitnessGarbled, WitnessPaths, assigned_writers
from runtime.coordination.zookeeper import (
    BadVersion,
    NodeExists,
    NoNode,
    ZNode,
    ZooKeeper,
    ZooKeeperFault,
)
from runtime.process.clock import now_ms
from runtime.set_option import set_option
from wire.errors import ErrorCode, describe
from wire.net import Cluster, NetworkFault
from wire.net.operations import LATEST, append, list_offsets, new_producer_id
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

LOOK_AGAIN_MS: Final = 1_000
MOST_UNKNOWN: Final = 10_000
"""The witness is asked once about a producer that it does not know; so many are remembered. About
those beyond it is asked once a reading."""
RECORDS_A_BATCH: Final = 1_000
ID_TRIES: Final = 6
"""So many producer ids are asked for while each was another writer's before."""
ID_TAKEN: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""A broker's answers to the first batch by an id that has written there before."""


class MapNotWritten(NetworkFault):
    """A broker has refused records of a map; the message names the topic."""


class WitnessWriters:
    """The registry of one topic in the witness, with a memory of what it said last."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        paths: WitnessPaths,
        source: str,
        target: str,
        *,
        of_checkpoints: bool = False,
    ) -> None:
        """Know where the node of the flow from `source` to `target` is; it is read when needed.

        Of checkpoints, all that is there at the first start is adopted: MirrorMaker's count, too.
        """
        self._zookeeper = zookeeper
        self._of_checkpoints = of_checkpoints
        path = paths.checkpoint_writers if of_checkpoints else paths.map_writers
        self._path: Final = path(source, target)
        self._flow: Final = (source, target)
        self._topic_set: Final = paths.topic_set
        self._assignment: Final = paths.of_pair.assignment(source, target)
        self._known: MapWriters | None = None
        self._looked_ms = 0
        self._unknown: set[int] = {WITHOUT_ID}
        self._confirmed_ms: dict[int, int] = {}

    async def begin(self, *, end: int, topic_id: UUID) -> int:
        """Adopt the map where a mirror ran before anybody registered; see `Writers`.

        The assignment of the flow shows that a mirror ran. A topic of another id was made again:
        nothing that it holds was adopted.
        """
        adopted_before: int = await _understood(self._path, lambda: self._begin(end, topic_id))
        return adopted_before

    async def _read(self, node: ZNode | None) -> MapWriters:
        """Return what a node says; without one, of a flow that ran, that all is to be adopted."""
        if node is not None:
            return MapWriters.decode(node.data)
        if self._of_checkpoints:
            return TO_ADOPT
        return MapWriters(adopts=await self._zookeeper.exists(self._assignment))

    async def _begin(self, end: int, topic_id: UUID) -> int:
        await self._zookeeper.sync()  # a server that lags behind is no old copy
        while True:
            node = await self._zookeeper.get(self._path)
            known = await self._read(node)
            self._require_newer(known)
            if end:
                self._require_same_log(known, topic_id, end)
            begun = _with_id(begun_writers(known, end, topic_id.hex, now_ms()))
            if known.adopts:
                for producer_id in await self._at_work():
                    begun = begun.with_producer(producer_id, now_ms())
            try:
                if node is None or begun != known:
                    await self._put(node, begun)
            except (NodeExists, NoNode, BadVersion):
                continue
            self._remember(begun)
            return end if known.adopts else 0

    async def _at_work(self) -> frozenset[int]:
        """Return the writers of workers that have partitions: of an earlier version, unregistered.

        Such a worker goes on to write while the others are started anew.
        """
        if self._of_checkpoints:
            return frozenset()  # those versions wrote them without an id
        node = await self._zookeeper.get(self._assignment)
        return frozenset() if node is None else assigned_writers(node.data)

    async def _put(self, node: ZNode | None, wanted: MapWriters) -> None:
        """Write the node, if it is as it was read; raises NodeExists, NoNode or BadVersion."""
        if node is None:
            await self._zookeeper.create(self._path, wanted.encode(), make_parents=True)
        else:
            await self._zookeeper.set(self._path, wanted.encode(), version=node.version)

    async def register(
        self, producer_id: int, in_log: Collection[int] | None = None
    ) -> Registration:
        """Write the id to the witness, unless that was done within CONFIRM_AGAIN_MS."""
        at_ms = now_ms()
        if at_ms - self._confirmed_ms.get(producer_id, -CONFIRM_AGAIN_MS) >= CONFIRM_AGAIN_MS:
            await _understood(self._path, lambda: self._register(producer_id, at_ms, in_log))
            self._confirmed_ms[producer_id] = at_ms
        return NOBODY if self._known is None else self._known.newest

    async def _register(self, producer_id: int, at_ms: int, in_log: Collection[int] | None) -> None:
        await self._zookeeper.sync()
        while True:
            node = await self._zookeeper.get(self._path)
            before = (self._known or MapWriters()) if node is None else await self._read(node)
            self._require_newer(before)
            known = _with_id(before.with_producer(producer_id, at_ms, in_log))
            try:
                await self._put(node, known)
            except (NodeExists, NoNode, BadVersion):
                continue
            self._remember(known)
            return

    async def note_end(self, end: int) -> None:
        """Write to the witness that the topic has come so far."""
        if not self._of_checkpoints:
            await _understood(self._path, lambda: self._note_end(end))

    async def _note_end(self, end: int) -> None:
        while True:
            node = await self._zookeeper.get(self._path)
            if node is None:
                return  # all that the topic holds is adopted
            known = await self._read(node)
            if known.end >= end or known.adopts:
                return
            try:
                await self._put(node, replace(known, end=end))
            except (NoNode, BadVersion):
                continue
            return

    async def require_unwritten(self, *, is_there: bool) -> None:
        """Ask the witness whether the topic was written; see `Writers`."""
        if self._of_checkpoints:
            return  # a group's next position tells as much
        known = await self._asked()
        if not known.is_gone(is_there=is_there):
            return
        up_to = f" up to {known.end}" if known.end else ""
        raise MapGone(
            f"{self._of_map} is not there, or holds nothing, and our programs have written"
            f" it{up_to}: where it was deleted, what one site has of the other's cannot be told"
            " from its own. Stop every mirror, and `mirror rebuild-map --write` finds the map again"
            " from both logs. If it was deleted on purpose, with all that was mirrored,"
            f" {self._believe}"
        )

    async def forget_log(self) -> None:
        """Have the witness expect no log of the topic."""
        await _understood(self._path, self._forget_log)

    async def _forget_log(self) -> None:
        while (node := await self._zookeeper.get(self._path)) is not None:
            known = MapWriters.decode(node.data)
            if known.adopts:
                return
            try:
                await self._put(node, known.unwritten())
            except (NoNode, BadVersion):
                continue
            self._known = known.unwritten()
            return

    async def believes(self, producer_id: int, offset: int, reading: MapReading) -> bool:
        """Ask the witness again, all its servers in step, before a producer is called unknown.

        What is to be adopted is believed. Whoever has written before the reading began had
        registered by then, so the witness is asked once a reading at most.
        """
        known = self._known
        if known is None or self._is_of_another_log(known, reading.topic_id, reading.end):
            known = await self._asked()
            reading.is_told = True
            self._require_same_log(known, reading.topic_id, reading.end)
        if not self._is_to_be_asked_again:
            if known.believes(producer_id, offset):
                return True
            if producer_id in self._unknown:
                return False
        if not reading.is_told:
            known = await self._asked()
            reading.is_told = True
            self._require_same_log(known, reading.topic_id, reading.end)
        if known.believes(producer_id, offset):
            return True
        if len(self._unknown) < MOST_UNKNOWN:
            self._unknown.add(producer_id)
        return False

    @property
    def _is_to_be_asked_again(self) -> bool:
        """Whether a map was still to be adopted when the witness was asked, and may not be now."""
        known = self._known
        return known is not None and known.adopts and now_ms() - self._looked_ms >= LOOK_AGAIN_MS

    async def _asked(self) -> MapWriters:
        """Return what the witness says now; raises WritersUnknown."""
        known: MapWriters = await _understood(self._path, self._look)
        return known

    async def _look(self) -> MapWriters:
        self._looked_ms = now_ms()
        await self._zookeeper.sync()
        known = await self._read(await self._zookeeper.get(self._path))
        self._remember(known)
        return known

    async def is_elsewhere(self, one: Registration) -> bool:
        """Ask the witness again, all its servers in step, before it is called an old copy."""
        known = self._known
        if known is None or known.is_before(one):
            known = await self._asked()
            if known.is_before(one):
                raise self._outdated(one, known)
        return known.is_of_another(one)

    def _remember(self, known: MapWriters) -> None:
        self._require_newer(known)
        self._known = known

    def _require_newer(self, known: MapWriters) -> None:
        """Raise WitnessOutdated where the witness knows less than it has told before."""
        if self._known is not None and known.is_before(self._known.newest):
            raise self._outdated(self._known.newest, known)

    def _is_of_another_log(self, known: MapWriters, topic_id: UUID, end: int | None) -> bool:
        """Tell whether our programs have written another log; checkpoints are no memory."""
        is_another = known.is_of_another_topic(topic_id) or known.is_cut(end)
        return is_another and not self._of_checkpoints

    def _require_same_log(self, known: MapWriters, topic_id: UUID, end: int | None) -> None:
        """Raise MapMadeAgain where the witness knows another topic, and MapCut a longer log."""
        if not self._is_of_another_log(known, topic_id, end):
            return
        of_map, believe, target = self._of_map, self._believe, self._flow[1]
        rebuild = (
            "by which groups would pass over records. Stop every mirror, delete the topic, and"
            " `mirror rebuild-map --write` finds the map again from both logs"
        )
        if known.is_of_another_topic(topic_id):
            raise MapMadeAgain(
                f"{of_map} is another topic (id {topic_id}) than our programs have written (id"
                f" {UUID(known.topic_id)}): it was made again, and may hold a part of what it held,"
                f" {rebuild}. If all of it was put back, {believe}"
            )
        raise MapCut(
            f"{of_map} ends at {end}, and our programs have written it up to {known.end}: it has"
            " lost its end, as on a disk that was restored, and lacks the newest pieces,"
            f" {rebuild}. If all topics of {target} were restored to one moment, {believe}"
        )

    @property
    def _of_map(self) -> str:
        source, target = self._flow
        return f"the map on {target} of what comes from {source}"

    @property
    def _believe(self) -> str:
        return (
            f"`failover recover --believe-maps{set_option(self._topic_set)}` shows it, and has it"
            " believed with --write"
        )

    def _outdated(self, one: Registration, known: MapWriters) -> WitnessOutdated:
        return WitnessOutdated(
            f"{self._path}: the witness is an old copy: writer {one.number} of the topic has"
            f" registered, and it knows of {known.number}, so it takes records of the mirror for"
            f" somebody else's; `failover recover{set_option(self._topic_set)}` shows it, and with"
            " --write the topic is believed as it is"
        )


class Anybody:
    """What stands for a registry while the witness does not answer: nothing is told apart."""

    def __init__(self, reason: str) -> None:
        """Know why nobody can tell."""
        self._reason: Final = reason

    async def begin(self, **_: object) -> int:
        """Raise WritersUnknown."""
        raise WritersUnknown(self._reason)

    async def register(self, _: int, __: Collection[int] | None = None) -> Registration:
        """Raise WritersUnknown: nothing may be written."""
        raise WritersUnknown(self._reason)

    async def note_end(self, _: int) -> None:
        """Raise WritersUnknown."""
        raise WritersUnknown(self._reason)

    async def require_unwritten(self, **_: bool) -> None:
        """Return: nobody knows better."""

    async def forget_log(self) -> None:
        """Raise WritersUnknown."""
        raise WritersUnknown(self._reason)

    async def is_elsewhere(self, _: Registration) -> bool:
        """Return False: nobody is called unknown."""
        return False

    async def believes(self, _: int, __: int, ___: MapReading) -> bool:
        """Return True."""
        return True


def _with_id(known: MapWriters) -> MapWriters:
    return known if known.registry else replace(known, registry=uuid4().hex)


async def _understood(path: str, step: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
    """Return what the step returns; raises WritersUnknown."""
    try:
        return await step()
    except ZooKeeperFault as fault:
        raise WritersUnknown(f"{path}: who writes the topic is not known: {fault}") from fault
    except WitnessGarbled as fault:
        raise WritersUnknown(
            f"{path}: who writes the topic is not known: {fault}; stop the flow, delete the node,"
            " and start it again: the topic is adopted as it is then"
        ) from fault


async def append_to_map(
    cluster: Cluster,
    topic: str,
    records: Sequence[tuple[bytes, bytes | None]],
    writers: Writers,
) -> None:
    """Append records to a map under a new, registered producer id; raises NetworkFault.

    For who writes now and then. Each call has an id of its own, so no sequence is ever used twice.
    """
    where = TopicPartition(topic, 0)
    end = (await list_offsets(cluster, [where], LATEST))[where]
    if isinstance(end, ErrorCode):
        raise MapNotWritten(f"{where}: {end.name}")
    seen = (await cluster.metadata([topic])).topics[topic]
    await writers.begin(end=end, topic_id=seen.topic_id)
    for _ in range(ID_TRIES):
        if await _append_by_new_id(cluster, where, end, records, writers):
            return
    raise MapNotWritten(
        f"{where}: the brokers hand out producer ids that others have written with: what is written"
        " by them would be taken for a repetition"
    )


async def _append_by_new_id(
    cluster: Cluster,
    where: TopicPartition,
    end: int,
    records: Sequence[tuple[bytes, bytes | None]],
    writers: Writers,
) -> bool:
    """Append behind `end`; return False where the id had been given before, to another writer.

    A broker takes the first batch by it for a repetition, and acknowledges what it does not write.
    Raises NetworkFault.
    """
    producer_id, producer_epoch = await new_producer_id(cluster)
    numbered = [number_record(await writers.register(producer_id)), *records]
    stamp, written = now_ms(), end
    for first in range(0, len(numbered), RECORDS_A_BATCH):
        batch = build_batch(
            [
                Record(number, stamp, key, value)
                for number, (key, value) in enumerate(numbered[first : first + RECORDS_A_BATCH])
            ],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=first,
        )
        answer = await append(cluster, *where, batch)
        if answer.error_code in ID_TAKEN and not first:
            return False
        if answer.error_code != ErrorCode.NONE:
            raise MapNotWritten(f"{where}: {describe(answer.error_code)}")
        if answer.base_offset < end:
            return False
        written = answer.base_offset + min(RECORDS_A_BATCH, len(numbered) - first)
    await writers.note_end(written)
    return True
