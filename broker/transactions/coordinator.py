"""The transaction coordinator of one broker: writes what is decided, answers when it is safe.

Every answer waits until everything decided before it is safe, also when it wrote nothing itself.
The markers of an end are written only then, by one task for each transaction, which the next
coordinator begins anew where this one dies.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import trio

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.coordinator_log import wait_safe
from broker.led_partition import TRANSACTION_STATE, LedPartition, NotLeader
from broker.log.results import StorageError
from broker.metadata_cache import MetadataCache
from broker.transactions import decisions, ending
from broker.transactions.decisions import Decided, NeedsProducerId, Producer
from broker.transactions.ending import EndAsked
from broker.transactions.loading import load
from broker.transactions.marking import TransactionEnd
from broker.transactions.settings import MOST_ID_BYTES, TransactionSettings
from broker.transactions.shard import CoordinatedLog, TransactionRecord, Transactions
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition
from wire.transaction_state import TransactionMetadata, TransactionStatus
from wire.values import frozen

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 1.0
SLOW_LOAD_MS: Final = 1_000

Result = TypeVar("Result")


class TransactionDecision(NamedTuple):
    """The answer, and the records that have to be safe before it is given."""

    answer: object
    records: tuple[TransactionRecord, ...] = ()


Decide: TypeAlias = Callable[[Transactions, int], TransactionDecision]
"""Given the transactions and the time of day in milliseconds."""


@frozen
class InitProducer:
    """One InitProducerId; `expected` is who asks, if it is somebody already."""

    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None


class Sender(Protocol):
    """Has the ends of transactions written; `broker.transactions.marking.MarkerSender`."""

    async def send(self, ended: TransactionEnd, partitions: frozenset[TopicPartition]) -> bool:
        """Return once every partition that is there has the marker; False when replaced."""


class Host(Protocol):
    """The part of its node that the coordinator uses."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def metadata(self) -> MetadataCache: ...
    async def next_producer_id(self) -> int:
        """Return a producer id that nobody has; raises ZooKeeperFault."""


class TransactionCoordinator:
    """Coordinates the ids whose partition of `__transaction_state` this broker leads.

    `run` has to be running before the first partition is led.
    """

    def __init__(self, node: Host, sender: Sender) -> None:
        self._node = node
        self._sender = sender
        self._settings = TransactionSettings.of(node.config)
        self._logs: dict[int, CoordinatedLog] = {}
        self._nursery: trio.Nursery | None = None
        self._one_load = trio.Lock()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Abort what takes too long and forget old ids, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._every, self._settings.timed_out_interval_ms, self._abort_late)
            nursery.start_soon(self._every, self._settings.expired_interval_ms, self._forget_old)
            task_status.started()
            await trio.sleep_forever()

    # What requests ask

    async def init_producer(self, asked: InitProducer) -> Producer | ErrorCode:
        """Give a producer its id and epoch. Raises ZooKeeperFault when no id can be had."""
        if not 0 < asked.timeout_ms <= self._settings.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return await self._who(asked.transactional_id, partial(_init, asked))

    async def _who(
        self,
        transactional_id: str,
        decide: Callable[[int | None, Transactions, int], TransactionDecision],
    ) -> Producer | ErrorCode:
        """Decide who a producer is, with a producer id that nobody has where that is needed."""
        fresh_id: int | None = None
        while True:
            decided = await self.ask(transactional_id, partial(decide, fresh_id))
            if isinstance(decided, ErrorCode | Producer):
                return decided
            assert isinstance(decided, NeedsProducerId)
            fresh_id = await self._node.next_producer_id()

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        *,
        client_version: int = 0,
    ) -> ErrorCode:
        """Make partitions part of the transaction."""
        return _code(
            await self.ask(
                transactional_id,
                lambda known, now: _code_of(
                    transactional_id,
                    decisions.add_partitions(
                        known.get(transactional_id),
                        producer,
                        partitions,
                        now,
                        client_version=client_version,
                    ),
                ),
            )
        )

    async def end(self, transactional_id: str, asked: EndAsked) -> Producer | ErrorCode:
        """Commit or abort, and return who the producer is from now on.

        The answer comes when that is safe; the markers follow. Raises ZooKeeperFault when no id can
        be had for a producer whose epochs are used up.
        """
        return await self._who(transactional_id, partial(_end, transactional_id, asked))

    async def verify(
        self, transactional_id: str, producer: Producer, partition: TopicPartition
    ) -> ErrorCode:
        """Say whether a partition is part of the producer's open transaction (KIP-890)."""
        return _code(
            await self.ask(
                transactional_id,
                lambda known, _: TransactionDecision(
                    decisions.verify(known.get(transactional_id), producer, partition)
                ),
            )
        )

    async def describe(self, transactional_id: str) -> TransactionMetadata | ErrorCode:
        """Return what is kept of an id; TRANSACTIONAL_ID_NOT_FOUND where that is nothing."""
        found = await self.ask(
            transactional_id, lambda known, _: TransactionDecision(known.get(transactional_id))
        )
        if found is None:
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert isinstance(found, TransactionMetadata | ErrorCode)
        return found

    async def list_all(self) -> dict[str, TransactionMetadata] | ErrorCode:
        """Return all that is coordinated here; one log still loading is an error for the whole."""
        collected: dict[str, TransactionMetadata] = {}
        for log in list(self._logs.values()):
            if log.transactions is None:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            part = dict(log.transactions.all())
            error = await wait_safe(log.led, log.last_written, self._settings.safe_within_ms)
            if error is ErrorCode.NONE:
                collected |= part
            elif error is not ErrorCode.NOT_COORDINATOR:  # then another one lists them
                return error
        return collected

    async def ask(self, transactional_id: str, decide: Decide) -> object:
        """Decide, write and replay at once; return the answer when it is safe, or why not.

        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_REQUEST for an id that cannot be;
        COORDINATOR_NOT_AVAILABLE when the decision could not be written, or not be made safe in
        time (then it may still hold).
        """
        log = self._log_of(transactional_id)
        if isinstance(log, ErrorCode):
            return log
        answer, records = decide(log.loaded, self._node.clock.wall_ms())
        error = self._write(log, records)
        if error is ErrorCode.NONE:
            error = await wait_safe(log.led, log.last_written, self._settings.safe_within_ms)
        return answer if error is ErrorCode.NONE else error

    def _log_of(self, transactional_id: str) -> CoordinatedLog | ErrorCode:
        size = len(transactional_id.encode(errors="replace"))
        if not 0 < size <= MOST_ID_BYTES:
            return ErrorCode.INVALID_REQUEST
        count = self._node.metadata.partition_count(TRANSACTION_STATE)
        log = self._logs.get(partition_for(transactional_id, count)) if count else None
        if log is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if log.transactions is None else log

    def _write(self, log: CoordinatedLog, records: Iterable[TransactionRecord]) -> ErrorCode:
        """Append and replay; what has begun to end is brought to its end. Never waits."""
        written = tuple(records)
        error = log.write(written, self._node.clock.wall_ms())
        if error is ErrorCode.NONE:
            for transactional_id, kept in written:
                self._finish_soon(log, transactional_id, kept)
        return error

    # Leadership

    def on_leader(self, partition: LedPartition) -> None:
        """Begin to coordinate a partition's ids: load them first."""
        known = self._logs.get(partition.index)
        if known is not None and known.transactions is not None:
            known.led = partition  # led again in a new epoch; nobody wrote in between
            return
        assert self._nursery is not None, "led before the coordinator runs"
        if known is not None:
            known.abandon()
        log = self._logs[partition.index] = CoordinatedLog(led=partition)
        self._nursery.start_soon(self._load, log)

    def on_resigned(self, topic: str, index: int) -> None:
        """Leave this partition's ids, and what is under way for them, to the next coordinator."""
        log = self._logs.pop(index, None)
        if log is not None:
            log.abandon()
            _LOG.debug("no longer coordinates the transactions of %s-%d", topic, index)

    async def _load(self, log: CoordinatedLog) -> None:
        led, began_ms = log.led, self._node.clock.monotonic_ms()
        with log.under_way():
            while log.transactions is None:
                try:
                    async with self._one_load:
                        transactions = await load(led)
                except NotLeader:
                    return  # on_resigned follows
                except (StorageError, CorruptBatch) as fault:
                    _LOG.error("%s-%d: %s", led.topic, led.index, fault)
                    await trio.sleep(RETRY_S)
                    continue
                self._loaded(log, transactions, began_ms)

    def _loaded(self, log: CoordinatedLog, transactions: Transactions, began_ms: int) -> None:
        log.transactions = transactions
        log.last_written = log.led.log_end_offset - 1
        for transactional_id, kept in transactions.all().items():
            self._finish_soon(log, transactional_id, kept)
        took_ms = self._node.clock.monotonic_ms() - began_ms
        _LOG.log(
            logging.INFO if took_ms >= SLOW_LOAD_MS else logging.DEBUG,
            "coordinates %d transactional ids of %s-%d, loaded in %d ms",
            len(transactions.all()),
            log.led.topic,
            log.led.index,
            took_ms,
        )

    # Ends

    def _finish_soon(
        self, log: CoordinatedLog, transactional_id: str, kept: TransactionMetadata | None
    ) -> None:
        if kept is not None and kept.status in decisions.ENDING:
            assert self._nursery is not None
            self._nursery.start_soon(self._finish, log, transactional_id, kept)

    async def _finish(
        self, log: CoordinatedLog, transactional_id: str, kept: TransactionMetadata
    ) -> None:
        """Have the markers written once the end is safe, and note that it is complete."""
        with log.under_way():
            await self._finish_led(log, transactional_id, kept)

    async def _finish_led(
        self, log: CoordinatedLog, transactional_id: str, kept: TransactionMetadata
    ) -> None:
        written = log.last_written
        while (error := await wait_safe(log.led, written, self._settings.safe_within_ms)) is not (
            ErrorCode.NONE
        ):
            if error is ErrorCode.NOT_COORDINATOR:
                return
        ended = TransactionEnd(
            producer_id=kept.producer_id,
            producer_epoch=kept.producer_epoch,
            is_commit=kept.status is TransactionStatus.PREPARE_COMMIT,
            coordinator_epoch=log.led.leader_epoch,
        )
        if not await self._sender.send(ended, kept.partitions):
            return
        assert log.loaded.get(transactional_id) is kept, "only its completion follows an end"
        done = ending.complete(kept, self._node.clock.wall_ms())
        error = self._write(log, [(transactional_id, done)])
        if error is not ErrorCode.NONE:  # whoever loads the log next has the markers written again
            _LOG.error("the end of %r is not noted: %s", transactional_id, error.name)

    # Time

    async def _every(
        self, interval_ms: int, look: Callable[[Transactions], list[TransactionRecord]]
    ) -> None:
        while True:
            await trio.sleep(interval_ms / 1000)
            for log in [each for each in self._logs.values() if each.transactions is not None]:
                if self._logs.get(log.led.index) is log:
                    self._write(log, look(log.loaded))
                await trio.lowlevel.checkpoint()

    def _abort_late(self, transactions: Transactions) -> list[TransactionRecord]:
        """Abort transactions that take longer than their producers asked for, and fence those."""
        now_ms, age_ms = self._node.clock.wall_ms(), self._node.clock.age_ms()
        late = [
            (transactional_id, decisions.fence(kept, now_ms))
            for transactional_id, kept in transactions.all().items()
            if decisions.has_timed_out(kept, age_ms)
        ]
        for transactional_id, kept in late:
            _LOG.info(
                "the transaction of %r (producer %d) is aborted: it took longer than %d ms",
                transactional_id,
                kept.producer_id,
                kept.timeout_ms,
            )
        return [*late]

    def _forget_old(self, transactions: Transactions) -> list[TransactionRecord]:
        expiration_ms, age_ms = self._settings.id_expiration_ms, self._node.clock.age_ms()
        return [
            (transactional_id, None)
            for transactional_id, kept in transactions.all().items()
            if decisions.has_expired(kept, expiration_ms, age_ms)
        ]


def _end(
    transactional_id: str,
    asked: EndAsked,
    fresh_id: int | None,
    known: Transactions,
    now_ms: int,
) -> TransactionDecision:
    before = known.get(transactional_id)
    decided = ending.end(before, asked, fresh_id, now_ms)
    if isinstance(decided, NeedsProducerId):
        return TransactionDecision(decided)
    after = decided.kept or before
    if decided.error is not ErrorCode.NONE or after is None:
        return _code_of(transactional_id, decided)
    return TransactionDecision(ending.successor(after), _records(transactional_id, decided))


def _init(
    asked: InitProducer, fresh_id: int | None, known: Transactions, now_ms: int
) -> TransactionDecision:
    transactional_id = asked.transactional_id
    decided = decisions.init_producer(
        known.get(transactional_id), asked.expected, asked.timeout_ms, fresh_id, now_ms
    )
    if isinstance(decided, NeedsProducerId):
        return TransactionDecision(decided)
    if decided.error is not ErrorCode.NONE:
        return _code_of(transactional_id, decided)
    kept = decided.kept
    assert kept is not None
    producer = Producer(producer_id=kept.producer_id, epoch=kept.producer_epoch)
    return TransactionDecision(producer, ((transactional_id, kept),))


def _code_of(transactional_id: str, decided: Decided) -> TransactionDecision:
    return TransactionDecision(decided.error, _records(transactional_id, decided))


def _records(transactional_id: str, decided: Decided) -> tuple[TransactionRecord, ...]:
    return () if decided.kept is None else ((transactional_id, decided.kept),)


def _code(answer: object) -> ErrorCode:
    assert isinstance(answer, ErrorCode)
    return answer
