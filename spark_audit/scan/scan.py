"""Reads stretches of partitions' logs with the wire client, inside a Spark Python worker.

A fault that keeps a log from being read becomes a row, not an exception: an exception in a worker
would reach the user as a Java stack trace, after Spark has tried the same again three times.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import trio

from runtime.config import load
from spark_audit.scan.committed import AbortedTransaction, CommittedLog, HoleReason
from spark_audit.scan.scan_plan import ScanTask
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
from wire.record_batch import Buffer, CorruptBatch
from wire.topic_partition import TopicPartition

CLIENT_ID: Final = "spark-audit"
PATIENCE_S: Final = 30.0
"""So long a log may fail to answer, or to move on, before the audit cannot tell."""
_RETRY_S: Final = 0.2
_REQUEST_TIMEOUT_MS: Final = 15_000
_FETCH_BYTES: Final = 4 * 1024 * 1024
_FETCH_WAIT_MS: Final = 500
_READ_COMMITTED: Final = 1
_EARLIEST: Final = -2
_LATEST: Final = -1


class _LogUnreadable(Exception):
    """The stretch cannot be read to its end; says why in one line."""


def scan(tasks: Sequence[ScanTask]) -> list[list[ScanRow]]:
    """Return the rows of each task. Blocks; there is one call at a time in a worker.

    The tasks share connections and metadata: finding the leader is dearer than reading a small log.
    """
    return trio.run(_scan_all, tasks)


def begin(task: ScanTask) -> tuple[CommittedLog, Sink]:
    """Return the pass over the log that a task asks for, and the sink of its records."""
    if not task.wants_ranges:
        return CommittedLog(task.start, task.stop, task.part), RecordSink()
    sink = RangeSink(starts_log=task.starts_log, split_stop=task.stop)
    return CommittedLog(task.start, task.log_stop, task.part), sink


async def _scan_all(tasks: Sequence[ScanTask]) -> list[list[ScanRow]]:
    clusters: dict[str, Cluster] = {}
    topics: defaultdict[str, set[str]] = defaultdict(set)
    async with AsyncExitStack() as stack:
        for task in tasks:
            topics[task.cluster].add(task.log.topic)
            if task.cluster not in clusters:
                opened = open_cluster(
                    task.bootstrap,
                    client_id=CLIENT_ID,
                    request_timeout_ms=_REQUEST_TIMEOUT_MS,
                    security=_security_of(task),
                )
                clusters[task.cluster] = await stack.enter_async_context(opened)
        for name, cluster in clusters.items():
            with suppress(NetworkFault):  # each task asks again, and says so
                await cluster.metadata(sorted(topics[name]))
        return [await _scan(clusters[task.cluster], task) for task in tasks]


async def _scan(cluster: Cluster, task: ScanTask) -> list[ScanRow]:
    log, sink = begin(task)
    try:
        if task.to_end:
            log.extend(await _log_edge(cluster, task, _LATEST))
        await _read(cluster, task, log, sink)
    except _LogUnreadable as reason:
        partition = TopicPartition(task.log.topic, task.log.partition)
        failure = f"{task.cluster}: {partition} at offset {log.position}: {reason}"
        return [*sink.finish(), failure_row(log.position, failure)]
    return sink.finish()


def _security_of(task: ScanTask) -> Security:
    """Return how the cluster is reached; raises ConfigurationError if the file has changed."""
    if not task.configuration:
        return PLAINTEXT
    return load(Path(task.configuration)).clusters[task.cluster].security


async def _read(cluster: Cluster, task: ScanTask, log: CommittedLog, sink: Sink) -> None:
    while not log.is_done:
        data = await _fetch(cluster, task, log.position)
        if data is None:
            start = await _log_edge(cluster, task, _EARLIEST)
            if start <= log.position:
                raise _LogUnreadable("the log ends before this offset: it was truncated")
            for hole in log.skip_to(start, HoleReason.RETENTION):
                sink.take(hole)
        elif not _feed(log, sink, data) or sink.is_past(log.position):
            return


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
        raise _LogUnreadable(str(fault)) from fault
    if log.position == before:
        raise _LogUnreadable("what was fetched does not reach this offset")
    return True


async def _fetch(cluster: Cluster, task: ScanTask, position: int) -> FetchPartitionData | None:
    """Return an answer with at least one batch; None if the log does not have the position.

    Leaders that move, brokers that restart and empty answers are waited for, PATIENCE_S long.
    """
    problem = "no data within the time"
    with trio.move_on_after(PATIENCE_S):
        while True:
            try:
                answer = await _ask_leader(cluster, task, position)
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
                    cluster.forget(task.log.topic)
            await trio.sleep(_RETRY_S)
    raise _LogUnreadable(problem)


async def _ask_leader(cluster: Cluster, task: ScanTask, position: int) -> FetchResponse:
    leader = await cluster.leader(task.log.topic, task.log.partition)
    version = version_for(leader.version_of(FetchRequest), (task.topic_id,))
    try:
        return await leader.request(_request(task, position), version=version)
    except ConnectionClosed:
        cluster.forget(task.log.topic)
        raise


def _request(task: ScanTask, position: int) -> FetchRequest:
    partition = FetchPartition(
        partition=task.log.partition,
        fetch_offset=position,
        partition_max_bytes=_FETCH_BYTES,
    )
    return FetchRequest(
        max_wait_ms=_FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=_READ_COMMITTED,
        topics=(FetchTopic(topic=task.log.topic, topic_id=task.topic_id, partitions=(partition,)),),
    )


async def _log_edge(cluster: Cluster, task: ScanTask, timestamp: int) -> int:
    """Return where the log starts, or where its committed records end."""
    key = TopicPartition(task.log.topic, task.log.partition)
    try:
        answers = await list_offsets(cluster, {key}, timestamp, isolation_level=_READ_COMMITTED)
    except NetworkFault as fault:
        raise _LogUnreadable(str(fault)) from fault
    edge = answers[key]
    if isinstance(edge, ErrorCode):
        raise _LogUnreadable(edge.name)
    return edge
