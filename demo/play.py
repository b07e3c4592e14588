"""`make demo`: the whole story by itself, from an empty folder to a judged failover."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from demo import verdict
from demo.findings import read_lost
from demo.folder import empty_folder
from demo.ledger import read_acknowledgements, read_commits, read_deliveries
from demo.measure import PlainReader, create_topic, resident_mb, sample_mirror
from demo.stack import FREE, GROUP, PARTITIONS, TOPIC, Stack, StackFailed, run_stack
from demo.verdict import DemoEvidence, DemoVerdict, RecordOffset
from wire.values import frozen

CONSUMERS: Final = 2
RATE: Final = 20_000
STORY_TIMEOUT_S: Final = 280
POLL_S: Final = 0.05


@frozen
class Ending:
    """The facts that only the running story knew."""

    started_ns: int
    mirror_cpu_s_per_gib: float
    survivors: Mapping[int, tuple[int, ...]]
    audit: str
    listed: frozenset[RecordOffset]


class Narrator:
    """Prints each chapter with the seconds since the beginning."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self._started:6.1f} s] {text}", flush=True)


async def play(folder: Path, *, disaster: bool, is_secured: bool = False) -> int:
    """Play the story in an empty `folder`; returns 0 only if every promise held.

    `is_secured`: over TLS, with a login at every door.
    """
    narrator = Narrator()
    how = " behind TLS and logins" if is_secured else ""
    narrator.say(f"starting two clusters of three brokers and the witness{how}")
    with empty_folder(folder):
        with _time_limit():
            async with run_stack(folder, FREE, is_secured=is_secured) as stack:
                ending = await _story(stack, narrator, disaster=disaster)
        evidence = _gather(folder, ending)
    result = _judge(evidence, ending)
    broken = verdict.broken_promises(
        result,
        disaster=disaster,
        misnamed=verdict.misnamed(evidence),
        skipped=verdict.skipped(evidence),
    )
    for sentence in broken:
        narrator.say(f"PROMISE BROKEN: {sentence}")
    print(result.json(), flush=True)
    return 1 if broken else 0


@contextmanager
def _time_limit() -> Iterator[None]:
    try:
        with trio.fail_after(STORY_TIMEOUT_S):
            yield
    except trio.TooSlowError as error:
        raise StackFailed(f"the story did not end within {STORY_TIMEOUT_S} s") from error


async def _story(stack: Stack, narrator: Narrator, *, disaster: bool) -> Ending:
    await _begin(stack, narrator)
    mirror = stack.children["mirror"]
    sample = partial(sample_mirror, mirror.pid, stack.folder / "dc2", TOPIC)
    before = sample()
    producer = await stack.start_program(
        "producer",
        "demo.producer",
        *_files(stack),
        "--rate",
        str(RATE),
        "--ledger",
        str(stack.folder / "acknowledged.csv"),
    )
    await _wait_half(stack, narrator)
    after = sample()
    await _read_pages(stack, narrator)
    narrator.say(f"the mirror holds {resident_mb(mirror.pid):.0f} MB")
    started_ns = time.monotonic_ns()
    await _move(stack, narrator, disaster=disaster)
    status = await producer.wait()
    if status != 0:
        raise StackFailed(f"the producer failed: {stack.last_words('producer')}")
    narrator.say("every departure is acknowledged; the group reads to the end of dc2")
    survivors = await _finish_reading(stack)
    if disaster:
        narrator.say("dc1's machines are started again, to see what they still hold")
        await stack.start_site("dc1")
    audit = await _audit(stack, narrator)
    return Ending(
        started_ns=started_ns,
        mirror_cpu_s_per_gib=after.cpu_s_per_gib(before),
        survivors=survivors,
        audit=audit,
        listed=read_lost(stack.folder / "audit" / "findings"),
    )


async def _begin(stack: Stack, narrator: Narrator) -> None:
    dc1 = stack.sites["dc1"]
    narrator.say(f"dc1 is {dc1.bootstrap}, dc2 is {stack.sites['dc2'].bootstrap}")
    await trio.to_thread.run_sync(create_topic, stack.client("dc1"), TOPIC, PARTITIONS)
    await stack.start_program("mirror", "mirror", "run", str(stack.configuration))
    for number in range(CONSUMERS):
        name = f"consumer-{number}"
        await stack.start_program(
            name,
            "demo.consumer",
            *_files(stack),
            "--deliveries",
            str(stack.folder / f"{name}.deliveries.csv"),
            "--commits",
            str(stack.folder / f"{name}.commits.csv"),
        )
    narrator.say(f"mirror, {CONSUMERS} consumers of group {GROUP!r} and the producer are started")


async def _wait_half(stack: Stack, narrator: Narrator) -> None:
    """Return in mid-stream: half of the 336,776 departures are acknowledged."""
    ledger = stack.folder / "acknowledged.csv"
    lines = 0
    while lines < 336_776 // 2:
        _require_running(stack)
        await trio.sleep(POLL_S)
        if ledger.exists():
            lines = await trio.to_thread.run_sync(_count_lines, ledger)
    narrator.say(f"{lines} departures are acknowledged by dc1: mid-stream")


async def _read_pages(stack: Stack, narrator: Narrator) -> None:
    """Have `mirror status` read the mirror's page, for which it needs what guards it."""
    status = await stack.run_program("status", "mirror", "status", str(stack.configuration))
    if status != 0:
        raise StackFailed(f"mirror status failed: {stack.last_words('status')}")
    narrator.say("mirror status has read the mirror's page")


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _require_running(stack: Stack) -> None:
    for name, process in stack.children.items():
        status = process.poll()
        if status:
            raise StackFailed(f"{name} ended with status {status}: {stack.last_words(name)}")


async def _move(stack: Stack, narrator: Narrator, *, disaster: bool) -> None:
    """Promote dc2, after killing all of dc1 when it is to be a disaster."""
    how = []
    if disaster:
        await stack.kill_site("dc1")
        narrator.say("DISASTER: every process of dc1 is killed")
        how = ["--source-lost"]
    narrator.say(f"failover promote dc2 {' '.join(how)}")
    status = await stack.run_program(
        "promote", "failover", "promote", "dc2", "--yes", str(stack.configuration), *how
    )
    for line in (stack.folder / "promote.log").read_text().splitlines():
        print(f"             {line}")
    if status != 0:
        raise StackFailed(f"failover promote failed: {stack.last_words('promote')}")
    narrator.say("dc2 is the active site")


async def _finish_reading(stack: Stack) -> dict[int, tuple[int, ...]]:
    reader = PlainReader(stack.client("dc2"), GROUP, TOPIC)
    try:
        while not await trio.to_thread.run_sync(reader.group_is_at_the_end):
            _require_running(stack)
            await trio.sleep(POLL_S)
        for number in range(CONSUMERS):
            await stack.end(f"consumer-{number}")
        return await trio.to_thread.run_sync(reader.read_all)
    finally:
        await trio.to_thread.run_sync(reader.close)


async def _audit(stack: Stack, narrator: Narrator) -> str:
    narrator.say("spark-audit compares both logs record by record")
    status = await stack.run_program("audit", "spark-audit", "run", str(stack.configuration))
    for line in (stack.folder / "audit.log").read_text().splitlines():
        print(f"             {line}")
    verdict_file = stack.folder / "audit" / "verdict.json"
    if status not in (0, 1) or not verdict_file.exists():
        raise StackFailed(f"spark-audit could not tell: {stack.last_words('audit')}")
    narrator.say(f"spark-audit report {stack.folder / 'audit'} lists every finding")
    return str(json.loads(verdict_file.read_text())["verdict"])


def _gather(folder: Path, ending: Ending) -> DemoEvidence:
    deliveries = sorted(
        (
            delivery
            for number in range(CONSUMERS)
            for delivery in read_deliveries(folder / f"consumer-{number}.deliveries.csv")
        ),
        key=lambda delivery: delivery.at_ns,
    )
    committed: dict[int, int] = {}
    for number in range(CONSUMERS):
        for commit in read_commits(folder / f"consumer-{number}.commits.csv"):
            if commit.site == "dc1":
                committed[commit.partition] = max(commit.offset, committed.get(commit.partition, 0))
    return DemoEvidence(
        acknowledged={
            line.number: (line.partition, line.offset)
            for line in read_acknowledgements(folder / "acknowledged.csv")
        },
        deliveries=tuple(deliveries),
        survivors=ending.survivors,
        committed=committed,
        listed=ending.listed,
        left_site="dc1",
    )


def _judge(evidence: DemoEvidence, ending: Ending) -> DemoVerdict:
    moved_ns = [delivery.at_ns for delivery in evidence.deliveries if delivery.site == "dc2"]
    return DemoVerdict(
        records=len(evidence.acknowledged),
        consumed=verdict.consumed(evidence),
        lost=verdict.lost(evidence),
        listed_lost=len(evidence.listed),
        duplicated=verdict.duplicated(evidence),
        reordered=verdict.reordered(evidence),
        reread=verdict.reread(evidence),
        uncommitted=verdict.uncommitted(evidence),
        rto_s=round((min(moved_ns) - ending.started_ns) / 1e9, 2),
        mirror_cpu_s_per_gib=round(ending.mirror_cpu_s_per_gib, 2),
        audit=ending.audit,
    )


def _files(stack: Stack) -> list[str]:
    return ["--config", str(stack.configuration)]
