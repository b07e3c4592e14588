"""The programs around a promotion in tests: a mirror, the command, an application, the witness."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, TypeAlias

from kazoo.client import KazooClient
from kazoo.protocol.states import WatchedEvent

from failover.client import SiteConsumer, SiteProducer
from failover.journal.journal import Journal, decode_journal
from failover.journal.steps import StepName
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.commands import run_failover_command
from tests.failover.two_sites import (
    QUIET,
    Sites,
    pause,
    read_all,
    values_of,
)
from tests.forked import Call, Process, call_program, start_program
from tests.zookeeper import assert_ours_alone, look

CONSUMER: dict[str, Any] = {"auto.offset.reset": "earliest", "session.timeout.ms": 6_000, **QUIET}
PARTITIONS = 3
PROMOTE_TIMEOUT_S = 240


At: TypeAlias = Callable[[str, Callable[[], None]], None]
"""Has something done as soon as a promotion in this process has ended a step."""


def die() -> None:
    """End the controller without another word, as a kill would."""
    raise KeyboardInterrupt


@contextmanager
def run_mirror(file: Path) -> Iterator[Process]:
    """Run the daemon until the block ends."""
    with (file.parent / "mirror.log").open("ab") as log:
        daemon = start_program("mirror.cli", "run", str(file), output=log)
    try:
        yield daemon
    finally:
        daemon.terminate()
        try:
            daemon.wait(60)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def failover(*arguments: str, niceness: int = 0) -> Call:
    """Start the program; with a niceness, everybody else comes before it."""
    return call_program("failover.cli", *arguments, niceness=niceness)


@dataclass(frozen=True, slots=True)
class Ended:
    """What the program left."""

    status: int
    output: str
    complaint: str


def finish(program: Call) -> Ended:
    """Wait for the program to end."""
    done = program.finish(PROMOTE_TIMEOUT_S)
    return _ended(done.returncode, done.stdout, done.stderr)


def tell(*arguments: str) -> Ended:
    """Run a command in this process: one that nobody kills, and that works on no application."""
    done = run_failover_command(*arguments)
    return _ended(done.returncode, done.stdout, done.stderr)


def _ended(status: int, output: str, complaint: str) -> Ended:
    lines = [line for line in complaint.splitlines() if line.startswith("failover: ")]
    return Ended(status, output, "\n".join(lines) or complaint)


@dataclass(slots=True)
class Application:
    """A producer and a consumer that never stop working while the site changes."""

    file: Path
    topic: str
    group: str
    sent: int = 0
    delivered: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)

    def work_until(
        self, producer: SiteProducer, consumer: SiteConsumer, done: Any, timeout_s: float = 180
    ) -> None:
        """Produce, 400 records a second at most, and consume until `done()`."""
        deadline, due = monotonic() + timeout_s, 0.0
        while not done():
            assert monotonic() < deadline, f"{self.sent} sent, {len(self.read)} read"
            if len(producer) < 500 and monotonic() >= due:
                due = monotonic() + 0.05
                for _ in range(20):
                    self._send(producer)
            producer.poll(0)
            self.read += values_of(consumer.consume(100, 0.05))

    def catch_up(self, producer: SiteProducer, consumer: SiteConsumer) -> None:
        """Read until everything that was sent is here, or nothing more comes."""
        assert producer.flush(60) == 0
        deadline = monotonic() + 120
        while len(self.read) < self.sent and monotonic() < deadline:
            self.read += values_of(consumer.consume(500, 0.2))
        self.read += values_of(consumer.consume(500, 1.0))

    def _send(self, producer: SiteProducer) -> None:
        number = self.sent
        self.sent += 1

        def told(error: Any, message: Any) -> None:
            assert error is None, str(error)
            self.delivered[number] = (producer.site, message.partition(), message.offset())

        producer.produce(self.topic, b"%d" % number, b"key %d" % (number % 50), on_delivery=told)


def numbers_in_order_per_partition(sites: Sites, topic: str) -> list[int]:
    """All records of dc2; each key's numbers must ascend."""
    found: list[int] = []
    for partition in range(PARTITIONS):
        last: dict[Any, int] = {}
        for message in read_all(sites.dc2, topic, partition):
            [number] = values_of([message])
            assert last.get(message.key(), -1) < number, "a key's records are out of order"
            last[message.key()] = number
            found.append(number)
    return found


@dataclass(frozen=True, slots=True)
class WitnessView:
    """What lies in the witness under one path."""

    client: KazooClient
    paths: WitnessPaths

    def active(self) -> ActiveSite:
        """The active site."""
        return ActiveSite.decode(self.client.get(self.paths.active)[0])

    def journals(self) -> list[Journal]:
        """All journals, oldest first."""
        names = sorted(self.client.get_children(self.paths.journals))
        return [decode_journal(self.client.get(f"{self.paths.journals}/{n}")[0]) for n in names]


@contextmanager
def open_witness(hosts: str, path: str, **settings: Any) -> Iterator[WitnessView]:
    """Look into the witness; whatever a test has left there is for nobody but our login."""
    client = look(hosts, **settings)
    client.start()
    try:
        yield WitnessView(client, WitnessPaths(root=path))
        assert_ours_alone(client, path)
    finally:
        client.stop()
        client.close()


@contextmanager
def serving(file: Path) -> Iterator[None]:
    """Run `failover serve` until the block ends."""
    program = failover("serve", str(file))
    try:
        yield
    finally:
        program.process.terminate()
        program.finish(60)


def wait_mirroring(file: Path, seconds: float = 20) -> None:
    """Wait until a daemon has announced itself for the flow to dc2.

    The witness is asked, where a command of `failover` would look at both sites each time.
    """
    at = load(file).coordination
    worker, deadline = at.paths.worker("dc1", "dc2"), monotonic() + seconds
    client = look(at.zookeeper)
    client.start()
    try:
        while client.exists(worker) is None:
            assert monotonic() < deadline, (file.parent / "mirror.log").read_text()[-2000:]
            pause(0.05)
    finally:
        client.stop()
        client.close()


def end_lease(witness: WitnessView) -> None:
    """Take a dead controller's lease away, as the end of its session does some seconds later."""
    if witness.client.exists(witness.paths.lease):
        witness.client.delete(witness.paths.lease)


def kill_at(witness: WitnessView, program: Call, step: StepName, epoch: int = 1) -> bool:
    """Kill the controller as soon as the journal of this epoch says that the step has begun.

    Returns False when the program was faster.
    """
    client, path, written = witness.client, witness.paths.journal(epoch), Event()

    def note(_: WatchedEvent) -> None:
        written.set()

    deadline = monotonic() + 120
    while program.process.poll() is None and monotonic() < deadline:
        written.clear()
        if client.exists(path, note) and step in decode_journal(client.get(path)[0]).step_states:
            break
        written.wait(0.05)
    was_running = program.process.poll() is None
    program.process.kill()
    program.finish(PROMOTE_TIMEOUT_S)
    return was_running
