"""One drill: a cluster, its clients, faults from a seed, and the verdict on what happened."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Final

import trio

from tests.drill import faults
from tests.drill.checker import Offence, Promises, Story, check, story_of
from tests.drill.cluster import (
    CLIENTS,
    ZOOKEEPER,
    Cluster,
    DrillFailed,
    create_topic,
    run_cluster,
)
from tests.drill.faults import Planned, Targets
from tests.drill.history import Acked, Fault, Read, event_of, line_of, read_events
from tests.drill.injecting import inject
from tests.drill.links import Links

TOPIC: Final = "drilled"
PARTITIONS: Final = 3
PRODUCERS: Final = ("p0", "p1")
CONSUMERS: Final = ("c0", "reread0")
PROGRESS_S: Final = 15.0
FIRST_ACKS_S: Final = 30.0
LAST_WORDS_S: Final = 45.0
READ_S: Final = 90.0
POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how."""

    seed: int
    seconds: float
    folder: Path
    brokers: int = 3
    factor: int = 3
    min_in_sync: int = 2
    rate: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out."""

    planned: Sequence[Planned]
    story: Story
    offences: Sequence[Offence]
    began_s: float
    died: Sequence[str]
    seconds: float


@dataclass(slots=True, kw_only=True)
class Clients:
    """The processes that produce and consume; each writes its own history."""

    folder: Path
    bootstrap: str
    rate: int
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, does: str, name: str) -> None:
        command = [
            *(sys.executable, "-m", "tests.drill.clients", does, name, self.bootstrap, TOPIC),
            *(str(PARTITIONS), str(self.folder / f"{name}.jsonl"), str(self.rate)),
        ]
        with (self.folder / "clients.log").open("ab") as said:
            self.running[name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=said, stderr=said
            )

    async def finish(self, name: str, patience_s: float, *, lets_go: bool = True) -> None:
        """Let a client come to its end. Raises DrillFailed when it does not, or fails."""
        child = self.running[name]
        assert child.stdin is not None, "started with a pipe"
        if lets_go:
            child.stdin.close()
        try:
            status = await trio.to_thread.run_sync(partial(child.wait, patience_s))
        except subprocess.TimeoutExpired as error:
            raise DrillFailed(f"client {name} does not end") from error
        child.stdin.close()
        del self.running[name]
        if status and lets_go:
            raise DrillFailed(f"client {name} ended with status {status}")

    def kill(self) -> None:
        for child in self.running.values():
            child.kill()
            child.wait()
            assert child.stdin is not None, "started with a pipe"
            child.stdin.close()


async def drill(options: Options) -> Result:
    """Run one drill. Raises DrillFailed when it could not be carried out."""
    options.folder.mkdir(parents=True)
    links = Links()
    async with run_cluster(options.folder, links, options.brokers, options.factor) as cluster:
        await create_topic(
            cluster,
            TOPIC,
            partitions=PARTITIONS,
            factor=options.factor,
            min_in_sync=options.min_in_sync,
        )
        return await _drill(options, cluster)


async def _drill(options: Options, cluster: Cluster) -> Result:
    targets = Targets(processes=(*cluster.brokers, ZOOKEEPER), bystanders=(CLIENTS,))
    planned = faults.plan(options.seed, options.seconds, targets)
    died: list[str] = []
    with _clients(options, cluster) as clients:
        for name in CONSUMERS:
            clients.start("consume", name)
        for name in PRODUCERS:
            clients.start("produce", name)
        progress = Progress(options.folder, (*PRODUCERS, *CONSUMERS))
        await _wait_first_acks(progress)
        began_s = monotonic()
        with (options.folder / "faults.jsonl").open("w") as file:

            def note(fault: Fault) -> None:
                file.write(line_of(fault))
                died.extend(name for name in cluster.died() if name not in died)

            await inject(cluster, planned, note)
        quiet_s = monotonic()
        progress.follow()
        with trio.move_on_after(PROGRESS_S):
            await _wait_progress(progress, quiet_s)
        seconds = monotonic() - began_s
        for name in (*PRODUCERS, *CONSUMERS):
            await clients.finish(name, LAST_WORDS_S)
        died.extend(name for name in cluster.died() if name not in died)
        clients.start("read", "final")
        await clients.finish("final", READ_S, lets_go=False)
        for name in cluster.brokers:
            await cluster.stop(name, signal.SIGTERM)
    story = story_of(read_events(sorted(options.folder.glob("*.jsonl"))))
    logs = frozenset(f"{TOPIC}-{index}" for index in range(PARTITIONS))
    return Result(
        planned=planned,
        story=story,
        offences=check(story, Promises(logs=logs, progress_within_s=PROGRESS_S)),
        began_s=began_s,
        died=died,
        seconds=seconds,
    )


@contextmanager
def _clients(options: Options, cluster: Cluster) -> Iterator[Clients]:
    clients = Clients(folder=options.folder, bootstrap=cluster.bootstrap, rate=options.rate)
    try:
        yield clients
    finally:
        clients.kill()


class Progress:
    """Follows histories as they are written: when was each client last told about each log."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._files = {name: folder / f"{name}.jsonl" for name in names}
        self._read_bytes = dict.fromkeys(names, 0)
        self._last_s: dict[tuple[str, str], float] = {}

    def logs(self, name: str, since_s: float) -> set[str]:
        """Return the logs of which a client has been told something since then."""
        return {log for (who, log), at_s in self._last_s.items() if who == name and at_s > since_s}

    def follow(self) -> None:
        """Take in what was written since the last time."""
        for name, file in self._files.items():
            if not file.exists():
                continue
            with file.open("rb") as lines:
                lines.seek(self._read_bytes[name])
                fresh = lines.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._read_bytes[name] += len(whole)
            for line in whole.splitlines():
                event = event_of(line)
                if isinstance(event, Acked | Read):
                    self._last_s[name, event.log] = event.at_s


async def _wait_first_acks(progress: Progress) -> None:
    with trio.move_on_after(FIRST_ACKS_S):
        while any(not progress.logs(name, 0.0) for name in PRODUCERS):
            await trio.sleep(POLL_S)
            progress.follow()
        return
    raise DrillFailed("the producers were not acknowledged anything before the first fault")


async def _wait_progress(progress: Progress, quiet_s: float) -> None:
    """Wait until every log takes records and every consumer is given some."""
    while len(
        set().union(*(progress.logs(name, quiet_s) for name in PRODUCERS))
    ) < PARTITIONS or any(not progress.logs(name, quiet_s) for name in CONSUMERS):
        await trio.sleep(POLL_S)
        progress.follow()


def report(result: Result, options: Options) -> Iterator[str]:
    """Return the lines that a person reads."""
    yield f"drill SEED={options.seed} SECONDS={options.seconds:g}, factor {options.factor}"
    for fault in sorted(result.story.faults, key=lambda one: one.at_s):
        begins, ends = fault.at_s - result.began_s, fault.ended_s - result.began_s
        yield f"  {begins:7.2f} s - {ends:7.2f} s  {fault.what}"
    acked = len(result.story.acked)
    yield f"  {acked} records acknowledged, {acked / result.seconds:.0f} a second"
    yield f"  {len(result.story.refused)} given up by producers, {_longest_gap(result.story)}"
    for name in result.died:
        yield f"  {name} ended by itself"
    for offence in result.offences[:50]:
        yield f"  {offence}"
    if len(result.offences) > 50:
        yield f"  ... {len(result.offences)} offences"
    kept = "PASSED" if not result.offences and not result.died else "FAILED"
    yield f"{kept}: 0 lost, 0 duplicates" if kept == "PASSED" else kept


def _longest_gap(story: Story) -> str:
    times = sorted(ack.at_s for ack in story.acked)
    longest = max((late - early for early, late in pairwise(times)), default=0)
    return f"longest time without any acknowledgement {longest:.1f} s"
