"""Two clusters with a mirror between them; everything fails; who compares reads both logs itself.

Sources of three kinds are mirrored by a single worker, by two programs, and by a program beside one
of two workers: each for a third of the time, or one of them by the seed where that is short. What
is paused wakes up when another has long taken its part over.
"""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from time import monotonic
from typing import Final

import trio

from tests.drill import faults
from tests.drill.checker import Kind, Offence, Promises, Story, check, story_of
from tests.drill.cluster import DrillFailed
from tests.drill.drill import LAST_WORDS_S, READ_S, wait_first_acks
from tests.drill.faults import Targets
from tests.drill.history import Acked, Fault, Read, Refused, line_of, read_events
from tests.drill.injecting import inject
from tests.drill.level import speak, wait_level
from tests.drill.mirror_stage import COMPACTED, TRANSACTIONAL, Stage, run_stage
from tests.drill.mirrored import compare, compare_compacted
from tests.drill.workload import TOPIC, Clients, Progress, open_clients

PRODUCERS: Final = {"p0": TOPIC, "transacting0": TRANSACTIONAL, "keyed0": COMPACTED}
READER: Final = "reread0"
"""Reads the plain topic's target again and again: an offset keeps its record, even where an unclean
election has taken it away and the mirror has sent it anew."""
WITNESS: Final = "witness-zookeeper"
LEVEL_WITHIN_S: Final = 90.0
WORKERS: Final = (("mirror-a",), ("mirror-a", "mirror-b"), ("mirror-b", "mirror-c"))
"""Which programs mirror, one time after the other."""
SHORT_S: Final = 90.0
"""A shorter drill has one of these times only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how."""

    seed: int
    seconds: float
    folder: Path
    rate: int = 400
    is_secured: bool = False
    """Whether everybody comes over TLS and SASL, between bundled brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out; the records of each topic on the source and on the target."""

    faults: Sequence[Fault]
    offences: Sequence[Offence]
    began_s: float
    held: Mapping[str, tuple[int, int]]
    level_after_s: float | None
    transacted: int
    """Records of transactions that were told to be committed."""


async def drill_mirror(options: Options) -> Result:
    """Run one drill. Raises DrillFailed when it could not be carried out."""
    options.folder.mkdir(parents=True)
    async with run_stage(options.folder, is_secured=options.is_secured) as stage:
        return await _drill(options, stage)


async def _drill(options: Options, stage: Stage) -> Result:
    with open_clients(options.folder, stage.source.client, options.rate) as clients:
        producers = {name: topic for name, topic in PRODUCERS.items() if topic in stage.topics}
        for name, topic in producers.items():
            does = "transact" if topic == TRANSACTIONAL else "produce"
            clients.start(does, name, topic=topic)
        await wait_first_acks(Progress(options.folder, ("p0", "keyed0")), ("p0", "keyed0"))
        began_s = monotonic()
        with (options.folder / "faults.jsonl").open("w") as file:
            await _hurt(options, stage, clients, lambda fault: _note(file.write, fault))
        for name in producers:
            await clients.finish(name, LAST_WORDS_S)
        quiet_s = monotonic()
        if not await trio.to_thread.run_sync(speak, stage.source.client, stage.topics):
            raise DrillFailed("the source takes no more records")
        level_s = await wait_level(stage.target.client, stage.topics, LEVEL_WITHIN_S)
        await clients.finish(READER, LAST_WORDS_S)
        for name, cluster in (("source", stage.source), ("target", stage.target)):
            for topic in stage.topics:
                clients.start("read", f"final-{name}-{topic}", cluster.client, topic)
                await clients.finish(f"final-{name}-{topic}", READ_S, lets_go=False)
    return _judge(
        options.folder, stage.topics, began_s, None if level_s is None else level_s - quiet_s
    )


def _note(write: Callable[[str], object], fault: Fault) -> None:
    write(line_of(fault))


async def _hurt(
    options: Options, stage: Stage, clients: Clients, note: Callable[[Fault], None]
) -> None:
    """Have one set of workers after the other, each under faults of its own."""
    is_short = options.seconds < SHORT_S
    times = WORKERS[options.seed % 3 :][:1] if is_short else WORKERS
    running: set[str] = set()
    for number, mirrors in enumerate(times):
        for name in running - set(mirrors):
            await stage.all.stop(name, signal.SIGTERM)
        for name in sorted(set(mirrors) - running):
            stage.all.start(name)
        running = set(mirrors)
        if number == 0:
            await _wait_copied(stage)
            clients.start("consume", READER, stage.target.client)
        brokers = (*stage.source.brokers, *stage.target.brokers)
        targets = Targets(
            processes=(*mirrors, *mirrors, *brokers),
            bystanders=(WITNESS,),
            together=2,
            pairs=(
                *product(mirrors, (WITNESS, *brokers)),
                *combinations(stage.source.brokers, 2),
                *combinations(stage.target.brokers, 2),
            ),
            replicas=tuple(stage.target.brokers),
        )
        seconds = options.seconds / len(times)
        await inject(stage.all, faults.plan(options.seed * 10 + number, seconds, targets), note)


async def _wait_copied(stage: Stage) -> None:
    """Wait until each target log has records, so that there are copies to be told from."""
    if await wait_level(stage.target.client, stage.topics, LEVEL_WITHIN_S, is_last=False) is None:
        raise DrillFailed("nothing was mirrored before the first fault")


def _judge(
    folder: Path, topics: Sequence[str], began_s: float, level_after_s: float | None
) -> Result:
    ends = {
        name: _story(folder, [f"final-{name}-{topic}" for topic in topics])
        for name in ("source", "target")
    }
    producers = [name for name, topic in PRODUCERS.items() if topic in topics]
    told = _story(folder, (*producers, "faults", *(f"final-source-{topic}" for topic in topics)))
    given = _story(folder, (READER, f"final-target-{TOPIC}"))
    nothing = Promises(logs=frozenset(), progress_within_s=float("inf"))
    kept = _without(told, COMPACTED)
    source, target = ends["source"].final, ends["target"].final
    offences = [
        *check(kept, nothing),
        *check(given, nothing),
        *compare(_but(source, COMPACTED), _but(target, COMPACTED)),
        *compare_compacted(
            _only(source, COMPACTED), _only(target, COMPACTED), _written(told.acked)
        ),
    ]
    if level_after_s is None:
        says = f"the target has not caught up within {LEVEL_WITHIN_S:g} s"
        offences.append(Offence(Kind.NO_PROGRESS.name, "all topics", -1, says))
    return Result(
        faults=told.faults,
        offences=offences,
        began_s=began_s,
        held={topic: (_count(source, topic), _count(target, topic)) for topic in topics},
        level_after_s=level_after_s,
        transacted=sum(ack.log.startswith(f"{TRANSACTIONAL}-") for ack in told.acked),
    )


Contents = Mapping[str, Mapping[int, str]]


def _only(contents: Contents, topic: str) -> Contents:
    return {log: found for log, found in contents.items() if log.rpartition("-")[0] == topic}


def _but(contents: Contents, topic: str) -> Contents:
    return {log: found for log, found in contents.items() if log.rpartition("-")[0] != topic}


def _count(contents: Contents, topic: str) -> int:
    return sum(map(len, _only(contents, topic).values()))


def _without(story: Story, topic: str) -> Story:
    """Return the story of the other topics."""
    events: list[Acked | Refused | Read] = [*story.acked, *story.refused, *story.reads]
    kept = (event for event in events if event.log.rpartition("-")[0] != topic)
    return story_of((*kept, *story.faults))


def _written(acked: Sequence[Acked]) -> dict[str, dict[int, str]]:
    """Return what was acknowledged where, as far as that was told."""
    written: dict[str, dict[int, str]] = {}
    for ack in acked:
        if ack.offset >= 0:
            written.setdefault(ack.log, {})[ack.offset] = ack.content
    return written


def _story(folder: Path, names: Sequence[str]) -> Story:
    return story_of(read_events([folder / f"{name}.jsonl" for name in names]))


def report(result: Result, options: Options) -> Iterator[str]:
    """Return the lines that a person reads."""
    yield f"mirror drill SEED={options.seed} SECONDS={options.seconds:g}"
    for fault in sorted(result.faults, key=lambda one: one.at_s):
        begins, ends = fault.at_s - result.began_s, fault.ended_s - result.began_s
        yield f"  {begins:7.2f} s - {ends:7.2f} s  {fault.what}"
    kinds = Counter(_kind(fault.what) for fault in result.faults)
    yield "  " + ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))
    for topic, (produced, mirrored) in result.held.items():
        yield f"  {topic}: {produced} records on the source, {mirrored} on the target"
    if TRANSACTIONAL in result.held:
        yield f"  {result.transacted} records were told to be committed by transactions"
    else:
        yield "  NO TRANSACTIONS: Apache Kafka cannot be had here"
    if result.level_after_s is not None:
        yield f"  level {result.level_after_s:.1f} s after the last fault"
    yield from (f"  {offence}" for offence in result.offences[:50])
    if len(result.offences) > 50:
        yield f"  ... {len(result.offences)} offences"
    yield "PASSED: each record once, in order" if not result.offences else "FAILED"


def _kind(what: str) -> str:
    """Return what was done, without to whom."""
    kinds = sorted((kind.value for kind in faults.Kind), key=len, reverse=True)
    return next(kind for kind in kinds if what.startswith(kind))
