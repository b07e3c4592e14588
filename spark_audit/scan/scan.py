"""Reads stretches of partitions' logs with the wire client, inside a Spark Python worker.

A fault that keeps a log from being read becomes a row, not an exception: an exception in a worker
would reach the user as a Java stack trace, after Spark has tried the same again three times.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import trio

from runtime.configuration.config import load
from spark_audit.scan.committed import AbortedTransaction, CommittedLog, HoleReason
from spark_audit.scan.lanes import Lanes, LogUnreadable
from spark_audit.scan.scan_plan import AT_ONCE, ScanTask, each_of
from spark_audit.scan.scan_rows import ScanRow, failure_row
from spark_audit.scan.sinks import RangeSink, RecordSink, Sink
from wire.errors import ErrorCode, describe
from wire.hot.fetch import version_for
from wire.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from wire.net import Cluster, ConnectionClosed, NetworkFault, open_cluster
from wire.net.operations import list_offsets
from wire.net.security import PLAINTEXT, Security
from wire.net.side_by_side import ask_each
from wire.record_batch import Buffer, CorruptBatch

CLIENT_ID: Final = "spark-audit"
PATIENCE_S: Final = 30.0
"""So long a log may fail to answer, or to move on, before the audit cannot tell."""
MOST_ROUNDS: Final = 20
"""So often the end of a log is asked for that goes on while it is read to its end."""
_RETRY_S: Final = 0.2
_REQUEST_TIMEOUT_MS: Final = 15_000
_FETCH_WAIT_MS: Final = 500
_READ_COMMITTED: Final = 1
_EARLIEST: Final = -2
_LATEST: Final = -1
_T = TypeVar("_T")


class _Clusters:
    """The clusters of some tasks, each opened when it is first asked for."""

    def __init__(self, stack: AsyncExitStack, tasks: Sequence[ScanTask]) -> None:
        self._stack = stack
        self._open: dict[str, Cluster] = {}
        self._topics: defaultdict[str, set[str]] = defaultdict(set)
        for task in tasks:
            self._topics[task.cluster].add(task.place.topic)

    async def of(self, task: ScanTask) -> Cluster:
        """Return the cluster that has the task's log."""
        if task.cluster not in self._open:
            opened = open_cluster(
                task.bootstrap,
                client_id=CLIENT_ID,
                request_timeout_ms=_REQUEST_TIMEOUT_MS,
                security=_security_of(task),
            )
            cluster = await self._stack.enter_async_context(opened)
            self._open[task.cluster] = cluster
            with suppress(NetworkFault):  # each task asks again, and says so
                await cluster.metadata(sorted(self._topics[task.cluster] | {task.place.topic}))
        return self._open[task.cluster]


@asynccontextmanager
async def _clusters(tasks: Sequence[ScanTask]) -> AsyncIterator[_Clusters]:
    async with AsyncExitStack() as stack:
        yield _Clusters(stack, tasks)


Looking: TypeAlias = Generator[Sequence["Reading"], None, _T]
"""Asks for stretches to be read, takes their sinks when they are full, and ends with an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One stretch of a log, and what takes its content."""

    task: ScanTask
    sink: Sink


def scan(tasks: Sequence[ScanTask]) -> list[list[ScanRow]]:
    """Return the rows of each task, behind each those of the tasks that are read with it.

    Blocks; there is one call at a time in a worker.

    The tasks share connections and metadata: finding the leader is dearer than reading a small log.
    """
    return trio.run(_scan_all, tasks)


def look(logs: Sequence[ScanTask], lookings: Sequence[Looking[_T]]) -> list[_T | str]:
    """Return the answer of each, or why a log that it asked for cannot be read. Blocks.

    `logs` name the topics that are asked for, so that their leaders are looked up at once.
    """
    return trio.run(_look_all, logs, lookings)


def begin(task: ScanTask) -> tuple[CommittedLog, RangeSink | RecordSink]:
    """Return the pass over the log that a task asks for, and the sink of its rows."""
    if task.digests is not None:
        return committed(task), RecordSink(task.digests)
    sink = RangeSink(starts_log=task.starts_log, split_stop=task.stop)
    log = CommittedLog(
        task.start,
        task.log_stop,
        task.part,
        keeps_sealed=task.by_sections,
        range_start=task.range_start,
    )
    return log, sink


def committed(task: ScanTask) -> CommittedLog:
    """Return the pass over the task's stretch."""
    return CommittedLog(task.start, task.stop, task.part)


async def _scan_all(tasks: Sequence[ScanTask]) -> list[list[ScanRow]]:
    async with _clusters(tasks) as clusters:
        for task in tasks:
            await clusters.of(task)  # one after the other: each is opened once
        rows = await ask_each(
            range(len(tasks)),
            lambda number: _scan(clusters, tasks[number], len(tasks)),
            at_once=AT_ONCE,
        )
    return [of_task for number in range(len(tasks)) for of_task in rows[number]]


async def _look_all(logs: Sequence[ScanTask], lookings: Sequence[Looking[_T]]) -> list[_T | str]:
    async with _clusters(logs) as clusters:
        return [await _follow(clusters, looking) for looking in lookings]


async def _follow(clusters: _Clusters, looking: Looking[_T]) -> _T | str:
    try:
        wanted = next(looking)
        while True:
            failure = await _read_side_by_side(clusters, wanted)
            if failure is not None:
                looking.close()
                return failure
            wanted = looking.send(None)
    except StopIteration as ended:
        answer: _T = ended.value
        return answer


async def _read_side_by_side(clusters: _Clusters, wanted: Sequence[Reading]) -> str | None:
    """Read stretches into their sinks; return why the first of them cannot be read that cannot."""
    for reading in wanted:
        await clusters.of(reading.task)
    failures = await ask_each(
        range(len(wanted)),
        lambda number: _read_into(
            clusters,
            wanted[number].task,
            [_Pass(committed(wanted[number].task), wanted[number].sink)],
            beside=len(wanted),
        ),
        at_once=AT_ONCE,
    )
    return next((why for number in range(len(wanted)) if (why := failures[number])), None)


async def _scan(clusters: _Clusters, task: ScanTask, beside: int) -> list[list[ScanRow]]:
    sinks = [(one, *begin(one)) for one in each_of([task])]
    passes = [_Pass(log, sink) for _, log, sink in sinks]
    why = await _read_into(clusters, task, passes, beside=beside)
    failed = [] if why is None else [failure_row(passes[0].log.position, why)]
    return [[*sink.rows(), *failed] for _, _, sink in sinks]


async def _read_into(
    clusters: _Clusters, task: ScanTask, passes: Sequence["_Pass"], *, beside: int
) -> str | None:
    """Read a stretch; return why it cannot be read to its end."""
    cluster = await clusters.of(task)
    try:
        if task.to_end:
            await _read_to_end(cluster, task, passes, max(1, min(beside, AT_ONCE)))
        else:
            await _read(cluster, task, passes, max(1, min(beside, AT_ONCE)))
    except LogUnreadable as reason:
        at = max(one.log.position for one in passes)
        return f"{task.cluster}: {task.place} at offset {at}: {reason}"
    return None


def _security_of(task: ScanTask) -> Security:
    """Return how the cluster is reached; raises ConfigurationError if the file has changed."""
    if not task.configuration:
        return PLAINTEXT
    return load(Path(task.configuration)).clusters[task.cluster].security


@dataclass(slots=True)
class _Pass:
    """One pass over a log, and what takes its content."""

    log: CommittedLog
    sink: Sink
    is_over: bool = False
    """Nothing more is wanted."""

    def take(self, data: FetchPartitionData) -> None:
        """Move on by one Fetch answer."""
        self.is_over = not _feed(self.log, self.sink, data) or self.sink.is_past(self.log.position)

    def skip_to(self, start: int) -> None:
        """Move on to where the log begins by now."""
        for hole in self.log.skip_to(start, HoleReason.RETENTION):
            self.sink.take(hole)


async def _read_to_end(
    cluster: Cluster, task: ScanTask, passes: Sequence[_Pass], beside: int
) -> None:
    """Read a stretch and what lies behind it, until the log's end is where reading has come to.

    Where the end was when reading began is not enough: what a cleaner takes until it is read was
    superseded by a record behind that end. The active segment is not cleaned, and each round has
    only what was written during the one before.
    """
    for _ in range(MOST_ROUNDS):
        end = await _log_edge(cluster, task, _LATEST)
        for one in passes:
            one.log.extend(end)
        if all(one.is_over or one.log.is_done for one in passes):
            break
        await _read(cluster, task, passes, beside)


async def _read(cluster: Cluster, task: ScanTask, passes: Sequence[_Pass], beside: int) -> None:
    """Read a stretch once for all passes over it.

    Those that still want something are at the same offset: an answer takes each of them behind its
    last whole batch, whatever they make of the batches. `beside` logs are read at the same time.
    """
    fetch = partial(_fetch, cluster, task)
    failure: LogUnreadable | None = None
    async with trio.open_nursery() as nursery:
        lanes = Lanes(nursery, fetch, max(one.stop for one in each_of([task])), AT_ONCE // beside)
        try:
            await _read_by(lanes, cluster, task, passes)
        except LogUnreadable as why:
            failure = why  # as itself, and not in a group
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _read_by(lanes: Lanes, cluster: Cluster, task: ScanTask, passes: Sequence[_Pass]) -> None:
    while left := [one for one in passes if not (one.is_over or one.log.is_done)]:
        before = left[0].log.position
        assert all(one.log.position == before for one in left), "passes move on side by side"
        data = await lanes.answer(before)
        if data is None:
            start = await _log_edge(cluster, task, _EARLIEST)
            if start <= before:
                raise LogUnreadable("the log ends before this offset: it was truncated")
            for one in left:
                one.skip_to(start)
        else:
            for one in left:
                one.take(data)
            assert isinstance(data.records, Buffer), "they were fed"
            lanes.note(len(data.records), max(one.log.position for one in left) - before)


def _feed(log: CommittedLog, sink: Sink, data: FetchPartitionData) -> bool:
    """Move on by one Fetch answer and return whether more is wanted."""
    aborted = [
        AbortedTransaction(transaction.producer_id, transaction.first_offset)
        for transaction in data.aborted_transactions or ()
    ]
    before = log.position
    assert isinstance(data.records, Buffer), "an answer's records are one view into it"
    try:
        if not all(sink.take(content) for content in log.feed(memoryview(data.records), aborted)):
            return False
    except CorruptBatch as fault:
        raise LogUnreadable(str(fault)) from fault
    if log.position == before:
        raise LogUnreadable("what was fetched does not reach this offset")
    return True


async def _fetch(
    cluster: Cluster, task: ScanTask, position: int, most_bytes: int
) -> FetchPartitionData | None:
    """Return an answer with at least one batch; None if the log does not have the position.

    Leaders that move, brokers that restart and empty answers are waited for, PATIENCE_S long.
    """
    problem = "no data within the time"
    with trio.move_on_after(PATIENCE_S):
        while True:
            try:
                answer = await _ask_leader(cluster, task, _request(task, position, most_bytes))
            except NetworkFault as fault:
                problem = str(fault)
            else:
                partitions: Sequence[FetchPartitionData] = [
                    data for topic in answer.responses for data in topic.partitions
                ]
                code = partitions[0].error_code if partitions else answer.error_code
                if code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    return None
                if code == ErrorCode.NONE and partitions and partitions[0].records:
                    return partitions[0]
                if code != ErrorCode.NONE:
                    problem = describe(code)
                    cluster.forget(task.place.topic)
            await trio.sleep(_RETRY_S)
    raise LogUnreadable(problem)


async def _ask_leader(cluster: Cluster, task: ScanTask, request: FetchRequest) -> FetchResponse:
    leader = await cluster.leader(*task.place)
    version = version_for(leader.version_of(FetchRequest), (task.topic_id,))
    try:
        return await leader.request(request, version=version)
    except ConnectionClosed:
        cluster.forget(task.place.topic)
        raise


def _request(task: ScanTask, position: int, most_bytes: int) -> FetchRequest:
    partition = FetchPartition(
        partition=task.place.partition,
        fetch_offset=position,
        partition_max_bytes=most_bytes,
    )
    return FetchRequest(
        max_wait_ms=_FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=most_bytes,
        isolation_level=_READ_COMMITTED,
        topics=(
            FetchTopic(topic=task.place.topic, topic_id=task.topic_id, partitions=(partition,)),
        ),
    )


async def _log_edge(cluster: Cluster, task: ScanTask, timestamp: int) -> int:
    """Return where the log starts, or where its committed records end."""
    try:
        answers = await list_offsets(
            cluster, {task.place}, timestamp, isolation_level=_READ_COMMITTED
        )
    except NetworkFault as fault:
        raise LogUnreadable(str(fault)) from fault
    edge = answers[task.place]
    if isinstance(edge, ErrorCode):
        raise LogUnreadable(edge.name)
    return edge
