"""Tokens of 20 s while records are mirrored: nobody is refused, and nothing waits for a login.

All connections that are open when the drill begins have to be open at its end: a broker closes the
one that does not show another token in time. Then the other site is promoted, by tokens too.
"""

import os
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from runtime.process.clock import wall_ms
from tests.drill.cluster import DrillFailed
from tests.drill.tokens.applications import PARTITIONS, Applications, run_applications
from tests.drill.tokens.arrivals import Flow, flow_of
from tests.drill.tokens.sockets import Connection, connections_of
from tests.drill.tokens.stage import BROKERS, TOPIC, Stage, staged
from tests.forked import call_program

FIRST_S: Final = 90.0
SWITCHED_S: Final = 5.0
WARM_S: Final = 6.0
"""Until everybody has the connections that are used."""
ALL_READ_S: Final = 60.0
COMMAND_S: Final = 150.0
MARKS: Final = ("not let in", "the session of", "Traceback")
"""What brokers say of a client that has not logged in, or not in time."""
BAD_LINE: Final = re.compile(r" (WARNING|ERROR|CRITICAL) |Traceback")
MEANT: Final = (
    "is now closed for writes to",
    "carries no evidence of the pair",
    "pair-evidence.internal: its settings are not known: UNKNOWN_TOPIC_OR_PARTITION",
    "could not be promoted now",
)
"""What `failover serve` and the mirror warn of at the first start of a pair, and at a switch."""
STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ")
COUNTED: Final = re.compile(r"^(mirror_\w+_errors_total\S*) ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how long; with long tokens it is what the others are held against."""

    folder: Path
    seconds: float
    life_s: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """What came out."""

    seconds: float
    life_s: int
    mirrored: Flow
    delivered: Flow
    kept: Mapping[str, tuple[int, int]]
    """Of each process: its connections when the drill began, and how many of them it has yet."""
    asked: Mapping[str, int]
    promoted_s: float
    findings: Sequence[str]


async def drill(options: Options, tell: Callable[[str], None]) -> Drilled:
    """Run it. Raises DrillFailed where it could not begin."""
    async with staged(options.folder, options.life_s) as stage:
        await trio.to_thread.run_sync(_create_topic, stage)
        target = stage.by_password("dc2")
        with run_applications(stage.applications, target) as applications:
            return await _drill(options, stage, applications, tell)


async def _drill(
    options: Options, stage: Stage, applications: Applications, tell: Callable[[str], None]
) -> Drilled:
    with trio.move_on_after(FIRST_S) as waiting:
        while not (applications.mirrored and applications.delivered):
            applications.raise_faults()
            await trio.sleep(0.2)
    if waiting.cancelled_caught:
        raise DrillFailed(f"nothing was mirrored and read within {FIRST_S:g} s")
    await trio.sleep(WARM_S)
    before, from_ms, asked = _connections(stage), wall_ms(), stage.times_asked()
    tell(f"  begun: {sum(map(len, before.values()))} connections of {', '.join(before)}")
    await trio.sleep(options.seconds)
    applications.raise_faults()
    until_ms, after = wall_ms(), _connections(stage)
    asked = {name: count - asked[name] for name, count in stage.times_asked().items()}
    errors = await trio.to_thread.run_sync(_counted_errors, stage)
    findings = [f"counted by the mirror: {one}" for one in errors]
    promoted_s, said = await trio.to_thread.run_sync(_promote, stage)
    findings += said
    await trio.sleep(SWITCHED_S)  # the applications work at the other site
    applications.stop_writing()
    await _wait_read(applications)
    span = from_ms / 1_000, until_ms / 1_000
    return Drilled(
        seconds=span[1] - span[0],
        life_s=options.life_s,
        mirrored=flow_of(applications.mirrored, *span),
        delivered=flow_of(applications.delivered, *span),
        kept={name: (len(had), len(had & after[name])) for name, had in before.items()},
        asked=asked,
        promoted_s=promoted_s,
        findings=[*findings, *_complaints(stage, applications, (from_ms, until_ms))],
    )


def _create_topic(stage: Stage) -> None:
    admin = AdminClient({**stage.by_password("dc1"), "log_level": 0})
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, BROKERS)])[TOPIC].result(FIRST_S)
    except KafkaException as error:
        raise DrillFailed(f"topic {TOPIC}: {error}") from error


def _connections(stage: Stage) -> dict[str, set[Connection]]:
    """Return the connections of each process to listeners that ask who comes."""
    mirror, guard = stage.mirror.child, stage.guard.child
    assert mirror is not None
    assert guard is not None
    pids = {"mirror": mirror.pid, "failover serve": guard.pid, "applications": os.getpid()}
    brokers = {
        f"{name} broker {number}": pid
        for name, site in stage.sites.items()
        for number, pid in enumerate(site.pids)
    }
    return {name: connections_of(pid, stage.ports) for name, pid in {**pids, **brokers}.items()}


def _counted_errors(stage: Stage) -> list[str]:
    """Return the mirror's counters of requests that failed, where they are not zero."""
    with urllib.request.urlopen(stage.page, timeout=10) as page:  # noqa: S310 - our own page
        text = page.read().decode()
    return [f"{name} {value}" for name, value in COUNTED.findall(text) if float(value)]


def _promote(stage: Stage) -> tuple[float, list[str]]:
    """Move to the other site; return how long it took, and what was wrong."""
    began_ms = wall_ms()
    ended = call_program("failover.cli", "promote", "dc2", stage.file).finish(COMMAND_S)
    took_s = (wall_ms() - began_ms) / 1_000
    (stage.folder / "promote.log").write_text(ended.stdout + ended.stderr)
    if ended.returncode == 0:
        return took_s, []
    return took_s, [f"promote ended with {ended.returncode}: {ended.stdout}{ended.stderr}"]


async def _wait_read(applications: Applications) -> None:
    with trio.move_on_after(ALL_READ_S):
        while {*applications.acked} - {one.value for one in [*applications.delivered]}:
            applications.raise_faults()
            await trio.sleep(0.5)


def _complaints(
    stage: Stage, applications: Applications, span_ms: tuple[int, int]
) -> Iterator[str]:
    """Return what was lost, given twice, refused or warned of."""
    yield from applications.complaints
    readers = {"consumer": applications.delivered, "target": applications.mirrored}
    for name, arrivals in readers.items():
        values = [one.value for one in arrivals]
        missing = len({*applications.acked} - {*values})
        if missing:
            yield f"{name}: {missing} acknowledged records never came"
        if len(values) != len({*values}):
            yield f"{name}: {len(values) - len({*values})} records came twice"
    for line in stage.broker_lines(*MARKS):
        yield f"broker: {line}"
    for daemon in (stage.mirror, stage.guard):
        for line in daemon.log.read_text().splitlines():
            if is_bad(line, *span_ms):
                yield f"{daemon.log.stem}: {line}"


def is_bad(line: str, from_ms: int, until_ms: int) -> bool:
    """Tell whether a daemon should not have said this.

    What it may warn of at the first start and around the promotion is bad in between.
    """
    if not BAD_LINE.search(line):
        return False
    stamp = STAMP.match(line)
    if stamp is None or not any(meant in line for meant in MEANT):
        return True
    at_ms = datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S").astimezone().timestamp() * 1_000
    return from_ms <= at_ms + int(stamp[2]) <= until_ms


def offences(drilled: Drilled, most_gap_s: float) -> list[str]:
    """Return all that was not kept."""
    found = list(drilled.findings)
    for name, flow in (("target", drilled.mirrored), ("consumer", drilled.delivered)):
        if flow.longest_gap_s > most_gap_s:
            found.append(f"{name}: {flow.longest_gap_s:.2f} s without a record")
    found += [
        f"{name}: {had - has} of {had} connections ended"
        for name, (had, has) in drilled.kept.items()
        if has < had
    ]
    least = int(drilled.seconds / drilled.life_s)
    found += [
        f"the {name} was asked {count} times"
        for name, count in drilled.asked.items()
        if count < least
    ]
    return found


def report(drilled: Drilled, most_gap_s: float) -> Iterator[str]:
    """Yield the lines that a person reads."""
    yield f"tokens of {drilled.life_s} s for {drilled.seconds:.0f} s"
    for name, flow in (("target", drilled.mirrored), ("consumer", drilled.delivered)):
        yield (
            f"  {name}: {flow.records} records, longest time without any "
            f"{flow.longest_gap_s:.3f} s; half came within {flow.half_within_s * 1e3:.0f} ms, "
            f"99 of 100 within {flow.most_within_s * 1e3:.0f} ms, the slowest within "
            f"{flow.slowest_s * 1e3:.0f} ms"
        )
    for name, (had, has) in drilled.kept.items():
        yield f"  {name}: {has} of {had} connections lasted over all"
    asked = ", ".join(f"the {name} {count}" for name, count in drilled.asked.items())
    yield f"  asked for tokens: {asked} times"
    yield f"  the promotion took {drilled.promoted_s:.1f} s"
    found = offences(drilled, most_gap_s)
    yield from (f"  {one}" for one in found[:40])
    yield "FAILED" if found else "PASSED: nobody was refused, nothing waited"
