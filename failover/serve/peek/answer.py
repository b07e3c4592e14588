"""Read what a question asks for: both sites are read, and nothing is written anywhere."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from failover.serve.peek.bounds import PeekBounds, first_offset, read_bounds
from failover.serve.peek.counterparts import Counterpart, find_counterparts
from failover.serve.peek.look import Ended, FoundBatch, PeekLook
from failover.serve.peek.question import PeekQuestion
from failover.sites.opening import open_site
from failover.sites.site import Site, brief
from runtime.configuration.config import Configuration
from runtime.process.clock import monotonic_ms
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.errors import RequestRefused
from wire.net.operations import READ_COMMITTED, read_partition
from wire.net.retries import code_of
from wire.record_batch import CorruptBatch
from wire.record_batch.committed import Aborted, CommittedFilter
from wire.topic_partition import TopicPartition

RECORDS_S: Final = 4.0
COUNTERPARTS_S: Final = 3.0
"""Both together are less than a page may take (`runtime.pages.room.REQUEST_TIMEOUT_S`)."""
MARGIN_MS: Final = 500
"""So long before a look is cut off it ends by itself, and says how far it is."""
FETCH_BYTES: Final = 1024 * 1024
GROUP_BYTES: Final = 256 * 1024
MOST_IN_GROUP: Final = 200
"""Batches are unpacked in a thread, several at a time."""


@dataclass(slots=True, kw_only=True)
class PeekAnswer:
    """What was read for a question; what is None is not known, and `fault` says why."""

    question: PeekQuestion
    bounds: PeekBounds | None = None
    look: PeekLook | None = None
    note: str | None = None
    """Where the look does not begin where the question says."""
    fault: str | None = None
    code: ErrorCode | None = None
    """By what the brokers refuse."""
    principal: str | None = None
    """Whom the brokers of the site take us for; None where that is not known."""
    counterparts: Mapping[int, Sequence[Counterpart]] | None = None
    """By offset; None where there was no time for them."""
    took_ms: int = 0


async def answer_question(configuration: Configuration, question: PeekQuestion) -> PeekAnswer:
    """Read the records and their counterparts; faults of the sites are part of the answer."""
    cluster = configuration.clusters[question.site]
    answer = PeekAnswer(question=question, principal=cluster.security.principal)
    began_ms = monotonic_ms()
    try:
        async with open_site(cluster) as site:
            with trio.move_on_after(RECORDS_S) as limit:
                await _read(site.cluster, answer)
            if limit.cancelled_caught and answer.look is None:
                answer.fault = f"no answer within {RECORDS_S:g} s"
            elif answer.look is not None:
                answer.look.finish(Ended.TIME)
                await _compare(configuration, site, answer)
    except RequestRefused as refused:
        answer.fault, answer.code = str(refused), refused.code
    except NetworkFault as fault:
        answer.fault = brief(fault)
    except CorruptBatch as corrupt:
        answer.fault = f"the log is damaged: {corrupt}"
    answer.took_ms = monotonic_ms() - began_ms
    return answer


async def _read(cluster: Cluster, answer: PeekAnswer) -> None:
    """Read the log; what was read so far stays in the answer when the time is over."""
    question = answer.question
    deadline_ms = monotonic_ms() + round(RECORDS_S * 1_000) - MARGIN_MS
    view = await cluster.metadata((question.place.topic,))
    partitions = view.topics[question.place.topic].partitions
    if partitions and question.place.partition not in partitions:
        answer.fault = f"its partitions are 0 to {max(partitions)}"
        return
    if code := code_of(view.topics[question.place.topic].error_code):
        raise RequestRefused(f"topic {question.place.topic}", code)
    bounds = answer.bounds = await read_bounds(cluster, question.place)
    start, answer.note = await first_offset(cluster, question, bounds)
    look = answer.look = PeekLook(
        start=start, end=bounds.end, stable_end=bounds.stable_end, key=question.key
    )
    await _look(cluster, question.place, look, lambda: monotonic_ms() >= deadline_ms)


async def _look(
    cluster: Cluster, place: TopicPartition, look: PeekLook, is_over: Callable[[], bool]
) -> None:
    """Go on until the look ends; raises NetworkFault and CorruptBatch."""
    group: list[FoundBatch] = []
    size = 0
    async for found in _batches(cluster, place, look):
        group.append(found)
        size += found.header.batch_bytes
        if size >= GROUP_BYTES or len(group) >= MOST_IN_GROUP:
            await trio.to_thread.run_sync(_take_all, look, group, is_over)
            group, size = [], 0
        if look.ended is not None:
            return
    await trio.to_thread.run_sync(_take_all, look, group, is_over)
    look.finish(Ended.END)


def _take_all(look: PeekLook, group: Sequence[FoundBatch], is_over: Callable[[], bool]) -> None:
    for found in group:
        look.take(found, is_over)


async def _batches(
    cluster: Cluster, place: TopicPartition, look: PeekLook
) -> AsyncIterator[FoundBatch]:
    """Yield each batch; up to the stable end brokers say which transactions were aborted."""
    stable = min(look.end, max(look.start, look.stable_end))
    reader = read_partition(cluster, *place, look.start, stable, isolation_level=READ_COMMITTED)
    reader.fetch_bytes = FETCH_BYTES
    told: object = None
    committed = CommittedFilter(())
    async for header, batch in reader:
        if reader.aborted is not told:
            told = reader.aborted
            committed = CommittedFilter(
                [
                    Aborted(producer_id=one.producer_id, first_offset=one.first_offset)
                    for one in reader.aborted
                ]
            )
        is_left_out = committed.is_left_out(header)
        yield FoundBatch(header, batch, is_left_out and not header.is_control)
    reader = read_partition(cluster, *place, max(stable, reader.position), look.end)
    reader.fetch_bytes = FETCH_BYTES
    async for header, batch in reader:
        yield FoundBatch(header, batch, is_aborted=False)


async def _compare(configuration: Configuration, site: Site, answer: PeekAnswer) -> None:
    """Find the counterparts, as far as the time reaches."""
    look = answer.look
    assert look is not None, "records were read"
    place = answer.question.place
    with trio.move_on_after(COUNTERPARTS_S):
        answer.counterparts = await find_counterparts(configuration, site, place, look.records)
