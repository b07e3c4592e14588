"""The durable offset map: its topic on the target, read once, then written ahead of the data.

Every worker writes it under a producer id of its own, and announces its own partitions only: a
broker takes a batch with sequences that it remembers for a repetition, and acknowledges it although
another worker has written them. Before the partitions of a worker that is gone go to others, its id
is written with the next epoch: from then on the broker refuses whatever it sends, should it be
asleep and wake up, and what it has announced can be read to the end. What the topic says does not
depend on order, so writing the same again is harmless.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from secrets import randbelow
from typing import Final, TypeAlias

import trio

from mirror.clusters.admin import SetConfigs, apply, topic_configs
from mirror.clusters.malformed_records import OddRecords
from mirror.clusters.tail_reader import TailReader, TopicUnreadable
from offset_translation import map_records
from offset_translation.map_records import MirrorProducer
from offset_translation.map_state import MapState
from runtime.coordination.map_writers import (
    NOBODY,
    MapReading,
    Registration,
    UnbelievedRecords,
    Writers,
    note_unbelieved,
    number_in,
    number_record,
)
from runtime.process.clock import now_ms
from runtime.producer_ids import MOST_OWNER, mirror_id
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault
from wire.net.operations import LATEST, append, list_offsets, new_producer_id, read_partition
from wire.net.retries import code_of
from wire.net.topic_creation import TopicRefused, ensure_topic
from wire.record_batch import CorruptBatch, Record, build_batch, iterate_records
from wire.record_batch.header import SEQUENCES
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

MapRecord: TypeAlias = tuple[bytes, bytes | None]

MAP_SETTINGS: Final = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
"""A map that lost its last pieces would place records wrongly, and nobody would see it."""
WRITE_TRIES: Final = 6
FIRST_PAUSE_S: Final = 0.05
RECORDS_A_WRITE: Final = 3_000
"""They go in one batch: of topics with the longest names these are less than the megabyte that a
broker takes unless it is told otherwise."""
NOTED_AGAIN_MS: Final = 60_000
"""So often the witness is told how far the topic has come: it tells a topic that lost its end."""
KEYS_A_WRITE: Final = RECORDS_A_WRITE // 2
"""A producer's key may take two records."""
FENCED: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""A broker's answers to the first sequence of an epoch that it takes, or has seen."""


class MapUnwritable(NetworkFault):
    """The map topic could not be written; nothing behind it may be produced."""


class ProducerIdTaken(MapUnwritable):
    """The broker has taken what we wrote for a repetition of what another producer had written."""


class MapLog:
    """The map topic of one flow."""

    def __init__(
        self,
        target: Cluster,
        source_name: str,
        replication_factor: int | None,
        writers: Writers,
        odd: OddRecords | None = None,
        concerned: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Know where the topic is; ``load`` reads it. ``odd`` is told what makes no sense.

        Unbelieved records count that speak of topics that the flow is ``concerned`` with.
        """
        self.topic: Final = map_records.map_topic_name(source_name)
        self.state = MapState()
        self.unbelieved_records: Final = UnbelievedRecords(concerned)
        """The records that none of our programs has written; they are no part of ``state``."""
        self._overwritten: set[bytes] = set()
        """Keys of ours that unbelieved records have as well."""
        self._newest: Registration = NOBODY
        """The newest of our registry that is in the log: it tells that a witness is an old copy."""
        self._producers_in_log: set[int] = set()
        self._registry = writers
        self._target = target
        self._odd = odd
        self._replication_factor = replication_factor
        self._reader = TailReader(target, self.topic, is_map=True)
        self._writer: MirrorProducer | None = None
        self._next_sequence = 0
        self._written_end = 0
        """Before this offset, what we have written ourselves is part of ``state`` already."""
        self._noted_ms: int | None = None
        """The time at which the witness was told of the log's end; None before the first time."""
        self._is_unsure = False
        """The log's end must be read before the next write: an answer is missing."""
        self._writing = trio.Lock()

    @property
    def producer(self) -> MirrorProducer:
        """The producer of the mirrored records; known once loaded."""
        assert self.state.producer is not None, "the map is loaded first"
        return self.state.producer

    @property
    def writer(self) -> MirrorProducer:
        """The producer by which this worker alone writes the map; known once loaded."""
        assert self._writer is not None, "the map is loaded first"
        return self._writer

    @property
    def registry(self) -> str:
        """The id of the registry of our writers; "" before it is loaded."""
        return self._newest.registry

    async def load(self) -> None:
        """Create the topic if need be, read it, and get a producer id to write it with."""
        await ensure_map_topic(self._target, self.topic, self._replication_factor)
        await self._set_right()
        await self._begin_registry()
        await self.catch_up()
        for attempt in range(1, WRITE_TRIES + 1):
            try:
                await self._begin_to_write()
            except ProducerIdTaken:
                if attempt == WRITE_TRIES:
                    raise
                continue
            break
        _LOG.info("%s: written by producer id %d", self.topic, self.writer.producer_id)

    async def _begin_to_write(self) -> None:
        """Get a producer id and write the first record by it; raises ProducerIdTaken."""
        writer = await self._new_producer()
        registration = await self._registry.register(writer.producer_id, self._producers_in_log)
        self._writer, self._next_sequence = writer, 0
        self._newest = registration
        await self.write(lambda: [number_record(registration)])
        await self._registry.note_end(self._written_end)
        self._noted_ms = now_ms()

    async def _set_right(self) -> None:
        """Give a topic that somebody else has made the settings of a map; raises TopicRefused."""
        own = (await topic_configs(self._target, [self.topic])).get(self.topic)
        wrong = {} if own is None else _differing(own)
        if not wrong:
            return
        told = ", ".join(f"{name}={value}" for name, value in sorted(wrong.items()))
        try:
            await apply(self._target, SetConfigs(topic=self.topic, configs=wrong))
        except TopicRefused as refused:
            reason = (
                f"a map cannot be kept without {told}, and setting that is refused:"
                f" {refused.reason}; set it with `kafka-configs.sh --alter --topic {self.topic}"
                f" --add-config {told.replace(', ', ',')}`"
            )
            raise TopicRefused(self.topic, refused.code, reason) from refused
        _LOG.warning("%s: was there without %s: set", self.topic, told)

    async def _begin_registry(self) -> None:
        """Have a registry of writers before anything is read; raises NetworkFault."""
        where = TopicPartition(self.topic, 0)
        end = (await list_offsets(self._target, [where], LATEST))[where]
        if isinstance(end, ErrorCode):
            raise MapUnwritable(f"{self.topic}: {end.name}")
        if not end:
            # Begun anew, it would not name the mirrors of before, whose records would be sent back.
            await self._registry.require_unwritten(is_there=True)
        seen = (await self._target.metadata([self.topic])).topics[self.topic]
        adopted_before = await self._registry.begin(end=end, topic_id=seen.topic_id)
        if adopted_before:
            _LOG.warning(
                "%s: adopted: what it holds before offset %d was written when nobody registered,"
                " and is believed, whoever wrote it",
                self.topic,
                adopted_before,
            )

    async def ensure_producer(self) -> None:
        """Have a producer of the mirrored records; for the worker that leads the flow alone.

        Its id is none that a broker gives out: a producer that comes from a lost site with its own
        would be taken for the mirror, by the brokers and by the flow back.
        """
        if self.state.producer is None:
            await self.catch_up()
        if self.state.producer is None:
            given = await self._new_producer()
            marked = mirror_id(given.producer_id, luck=1 + randbelow(MOST_OWNER))
            producer = replace(given, producer_id=marked)
            await self.write(lambda: [map_records.mirror_producer(producer)])

    async def catch_up(self) -> None:
        """Replay what other workers have written by now. Raises NetworkFault."""
        async with self._writing:
            was_unsure = self._is_unsure
            await self._catch_up()
            self._is_unsure = was_unsure

    async def fence(self, writer: MirrorProducer) -> None:
        """Return when nothing that this writer still sends can be appended. Raises NetworkFault.

        Brokers refuse an epoch older than one that they have seen of the same producer id
        (ProducerAppendInfo.checkProducerEpoch); the first sequence of an epoch is 0.
        """
        key, value = map_records.mirror_producer(self.producer)
        batch = build_batch(
            [Record(0, now_ms(), key, value)],
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch + 1,
            base_sequence=0,
        )
        answer = await append(self._target, self.topic, 0, batch)
        code = code_of(answer.error_code)
        if code not in FENCED:
            raise MapUnwritable(f"{self.topic}: fencing a worker that is gone: {code.name}")

    async def forget_topic(self, topic: str) -> None:
        """Take back the ids of the source topic and of its copy, and where it was begun.

        What is mirrored anew begins at the first record. Raises MapUnwritable.
        """
        copies = [one for one in self.state.target_ids if one.topic == topic]
        await self.write_many(
            [
                *self.state.begins.withdrawals(topic),
                *(
                    map_records.withdrawal(
                        map_records.TargetTopicKey(topic=topic, partition=one.partition)
                    )
                    for one in copies
                ),
            ]
        )
        if topic in self.state.topic_ids:
            key = map_records.SourceTopicKey(topic=topic)
            await self.write(lambda: [map_records.withdrawal(key)])

    async def settle(self) -> None:
        """Make sure that ``state`` is what the topic says, and that no lost write arrives later.

        A write of ours whose answer is missing may still be on its way. Another write takes its
        sequence, so that it is refused. Raises MapUnwritable.
        """
        if self._is_unsure:
            await self.write(lambda: [map_records.mirror_producer(self.producer)])

    async def restore_overwritten(self) -> None:
        """Write records of ours again whose keys unbelieved records have.

        The cleaner keeps the last record of a key, whoever has written it. Raises MapUnwritable.
        """
        keys = list(self._overwritten)
        for first in range(0, len(keys), KEYS_A_WRITE):
            some = keys[first : first + KEYS_A_WRITE]
            await self.write(partial(self._of_keys, some))
            self._overwritten.difference_update(some)

    def _of_keys(self, keys: Sequence[bytes]) -> list[MapRecord]:
        return [record for key in keys for record in self._said_by_us(key)]

    def _said_by_us(self, key: bytes) -> list[MapRecord]:
        number = number_record(self._newest)
        return [number] if key == number[0] else [*self.state.records_of(key)]

    def _note_number(self, record: Record) -> None:
        one = number_in(record.key, record.value)
        if one is not None and one.registry == self._newest.registry:
            self._newest = max(self._newest, one)

    async def _new_producer(self) -> MirrorProducer:
        producer_id, producer_epoch = await new_producer_id(self._target)
        return MirrorProducer(producer_id=producer_id, producer_epoch=producer_epoch)

    async def write(self, compose: Callable[[], Sequence[MapRecord]]) -> None:
        """Return once the composed records are durable and part of ``state``.

        ``compose`` is called when it is this writer's turn and ``state`` is up to date, again for
        every try, because a fact of before the wait may not hold any more. All that it composes, no
        more than RECORDS_A_WRITE, is written, or nothing. Raises MapUnwritable.
        """
        async with self._writing:
            if self._reader.is_another:
                raise MapUnwritable(self._made_again)
            last: object = None
            for attempt in range(WRITE_TRIES):
                if attempt:
                    await trio.sleep(FIRST_PAUSE_S * 2**attempt)
                try:
                    last = await self._write_once(compose)
                except ProducerIdTaken:
                    raise
                except NetworkFault as fault:
                    last = fault
                    continue
                if last is ErrorCode.NONE:
                    return
            raise MapUnwritable(f"{self.topic}: {getattr(last, 'name', last)}")

    async def write_many(self, records: Sequence[MapRecord]) -> None:
        """Write records that do not belong together, however many, in their order."""
        for first in range(0, len(records), RECORDS_A_WRITE):
            await self.write(partial(tuple, records[first : first + RECORDS_A_WRITE]))

    async def _write_once(self, compose: Callable[[], Sequence[MapRecord]]) -> ErrorCode:
        """Append at the next sequence. Unsure before means read back after."""
        was_unsure = self._is_unsure
        if was_unsure:
            await self._catch_up()
        records = compose()
        if not records:
            return ErrorCode.NONE
        await self._registry.register(self.writer.producer_id)
        if self._noted_ms is not None and abs(now_ms() - self._noted_ms) >= NOTED_AGAIN_MS:
            await self._registry.note_end(self._written_end)
            self._noted_ms = now_ms()
        batch = self._batch(records)
        self._is_unsure = True
        answer = await append(self._target, self.topic, 0, batch)
        code = code_of(answer.error_code)
        if code is not ErrorCode.NONE:
            return code
        if was_unsure and not await self._is_there(records, answer.base_offset):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if not was_unsure and answer.base_offset < self._reader.next_offset:
            self._is_unsure = False
            raise await self._why_before_the_end(answer.base_offset)
        for key, value in records:
            self.state.replay(key, value)
        self._written_end = max(self._written_end, answer.base_offset + len(records))
        if self._reader.next_offset == answer.base_offset:
            self._reader.next_offset += len(records)
        self._next_sequence = (self._next_sequence + len(records)) % SEQUENCES
        self._is_unsure = False
        return code

    async def _why_before_the_end(self, offset: int) -> MapUnwritable:
        """Return why an offset was acknowledged that had been read already; raises NetworkFault."""
        where = TopicPartition(self.topic, 0)
        end = (await list_offsets(self._target, [where], LATEST))[where]
        read = self._reader.next_offset
        if not isinstance(end, ErrorCode) and end < read:
            return MapUnwritable(
                f"{self.topic}: ends at {end}, and was read up to {read}: it has lost its end while"
                " the mirror ran: stop every worker of the flow and delete the topic, and `mirror"
                " rebuild-map --write` finds the map again from both logs"
            )
        return ProducerIdTaken(
            f"{self.topic}: offset {offset} was acknowledged for what lies behind {read}: producer"
            f" id {self.writer.producer_id} is another writer's, and the brokers hand out again"
            " what they had given"
        )

    def _batch(self, records: Sequence[MapRecord]) -> bytes:
        stamp = now_ms()
        return build_batch(
            [Record(number, stamp, key, value) for number, (key, value) in enumerate(records)],
            producer_id=self.writer.producer_id,
            producer_epoch=self.writer.producer_epoch,
            base_sequence=self._next_sequence,
        )

    async def _is_there(self, records: Sequence[MapRecord], offset: int) -> bool:
        """Whether the log holds these very records there.

        A broker takes a batch with a sequence it remembers for a repetition and acknowledges it;
        but what it remembers may be a write of ours whose answer was lost. It may have compressed
        the batch or stamped it with its own time, so bytes and checksums say nothing.
        """
        try:
            async for header, batch in read_partition(
                self._target, self.topic, 0, offset, offset + 1
            ):
                is_ours = header.producer_id == self.writer.producer_id
                found = [(one.key, one.value) for one in iterate_records(batch)]
                return is_ours and header.base_offset == offset and found == list(records)
        except CorruptBatch:
            return False
        return False

    async def _catch_up(self) -> None:
        """Replay what was written since the last look, and learn the sequence that comes next."""
        seen, reading = len(self.state.rejected), MapReading()
        async for header, record in self._reader.read_new():
            self._require_same_topic()
            writer = self._writer
            is_ours = writer is not None and header.producer_id == writer.producer_id
            if not await self._registry.believes(header.producer_id, header.base_offset, reading):
                await self._note_unbelieved(header.producer_id, record)
                continue
            self._producers_in_log.add(header.producer_id)
            self._note_number(record)
            if not is_ours or record.offset >= self._written_end:
                self.state.replay(record.key, record.value)
            if is_ours:
                last = header.base_sequence + header.last_offset_delta
                self._next_sequence = (last + 1) % SEQUENCES
        self._require_same_topic()
        self._is_unsure = False
        if self._odd is not None:
            for rejected in self.state.rejected[seen:]:
                self._odd.note(rejected)

    def _require_same_topic(self) -> None:
        """Raise TopicUnreadable where the topic was made again: it lacks what we have written."""
        if self._reader.is_another:
            raise TopicUnreadable(self._made_again)

    @property
    def _made_again(self) -> str:
        return (
            f"{self.topic}: was made again while the mirror ran, and lacks what was written before:"
            " stop every worker of the flow and delete the topic, and `mirror rebuild-map --write`"
            " finds the map again from both logs"
        )

    async def _note_unbelieved(self, producer_id: int, record: Record) -> None:
        about = map_records.partition_of(record.key)
        await note_unbelieved(self._registry, self.unbelieved_records, producer_id, record, about)
        if record.key is not None and self._said_by_us(record.key):
            self._overwritten.add(record.key)


async def ensure_map_topic(cluster: Cluster, topic: str, replication_factor: int | None) -> None:
    """Create a map topic where it is not there yet; raises NetworkFault."""
    await ensure_topic(cluster, topic, replication_factor=replication_factor, configs=MAP_SETTINGS)


def _differing(own: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in MAP_SETTINGS.items() if own.get(name) != value}
