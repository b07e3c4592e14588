"""A mirror that is killed in mid-stream and started again: what is there twice afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from tests.bench.measure.figures import duplicates
from tests.bench.measure.ledger import Cell, Ledger
from tests.bench.measure.racers import Mirror
from tests.bench.measure.results import DUPLICATES
from tests.bench.measure.rounds import all_at_once, repeat
from tests.bench.stage.clusters import Stage
from tests.bench.stage.served import Served, create_topic
from tests.bench.stage.steady import Stream, receive, send, wait_arrived

TOPIC: Final = "bench-kill"
RECORD_BYTES: Final = 200
RECORDS_PER_BATCH: Final = 50
BATCHES_PER_S: Final = 50
COMES_UP_S: Final = 120
ARRIVES_S: Final = 180
GOES_ON_S: Final = 3.0
"""Traffic behind the kill."""
TRAILS_S: Final = 2.0
"""Copies that are still on their way when the last record has arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """SIGKILL after so many seconds of mirroring; traffic goes on."""

    after_s: float

    @property
    def name(self) -> str:
        return f"{RECORDS_PER_BATCH * BATCHES_PER_S:,}/s, SIGKILL after {self.after_s:g} s"


def run_killing(
    stage: Stage, kill: Kill, systems: Sequence[str], runs: int, ledger: Ledger
) -> None:
    """Kill each system in mid-stream and count what is there twice.

    All systems are at it at once: what is counted does not depend on speed.
    """

    row = (kill.name, DUPLICATES)

    def attempt(system: str, turn: int) -> bool:
        def run() -> Mapping[Cell, float]:
            return {row: _kill_and_count(stage, system, kill, ledger)}

        return ledger.try_run(system, turn, [row], run)

    with ledger.guard(systems, [row]):
        repeat(runs, systems, [row], all_at_once(attempt, stage.clean), ledger)


def _kill_and_count(stage: Stage, system: str, kill: Kill, ledger: Ledger) -> int:
    """Return the records that are on the target once too often. Raises one of `ledger.FAULTS`.

    What it made stays on the clusters: others may be at work there.
    """
    names = stage.next_names()
    topic = f"{TOPIC}-{names.source}"
    create_topic(stage.source, topic, 1)
    mirror = stage.mirror(system, names, [topic])
    on_target = names.topic_on_target(system, topic)
    try:
        mirror.start()
        stream = ledger.run(_kill, mirror, kill, (stage.source, topic), (stage.target, on_target))
        return duplicates(number for number, _ in stream.seen)
    finally:
        mirror.kill()


async def _kill(
    mirror: Mirror, kill: Kill, source: tuple[Served, str], target: tuple[Served, str]
) -> Stream:
    stream = Stream(record_bytes=RECORD_BYTES, per_batch=RECORDS_PER_BATCH)
    ended = trio.Event()
    async with trio.open_nursery() as reading:
        reading.start_soon(receive, stream, *target)
        async with trio.open_nursery() as writing:
            writing.start_soon(send, stream, *source, BATCHES_PER_S, ended)
            await wait_arrived(stream, [0], COMES_UP_S)
            await trio.sleep(kill.after_s)
            mirror.kill()
            await trio.to_thread.run_sync(mirror.start)
            await trio.sleep(GOES_ON_S)
            ended.set()
        # All that was sent is acknowledged by now, so it has to arrive.
        await wait_arrived(stream, stream.acknowledged, ARRIVES_S)
        await trio.sleep(TRAILS_S)
        reading.cancel_scope.cancel()
    return stream
