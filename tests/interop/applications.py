"""Applications of foreign clients that write and read all the while, whatever becomes of the sites.

Each is a producer of numbers, a hundred in a second, and a member of a group that reads them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, KafkaError, Message, Producer

from runtime.process.clock import wall_ms
from tests.failover.two_sites import QUIET
from tests.interop.foreign.clients import ForeignClient
from tests.interop.matrix import Peer
from tests.interop.peers.child import Child, start_child
from tests.interop.peers.java_program import QUICK_START, JavaProgram
from tests.interop.peers.tools import VERIFIABLE_CONSUMER, VERIFIABLE_PRODUCER
from tests.mirror.daemon import wait_until

PATIENCE_S: Final = 120
RATE: Final = ("--throughput", "100", "--acks", "-1")


class ToldRecords:
    """What a child has told of records so far; each line is read once, as there may be many."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._by_name: dict[str, list[tuple[int, int]]] = {}
        self._read_to = child.log_start

    def of(self, name: str) -> list[tuple[int, int]]:
        """Return number and time (ms) of each event of this name."""
        with self.child.log.open("rb") as log:
            log.seek(self._read_to)
            whole, _, _ = log.read().rpartition(b"\n")
        self._read_to += len(whole) + bool(whole)
        for line in whole.splitlines():
            if line.startswith(b"{") and line.endswith(b"}"):
                event = json.loads(line)
                if "value" in event:
                    told = int(event["value"]), int(event["timestamp"])
                    self._by_name.setdefault(event["name"], []).append(told)
        return list(self._by_name.get(name, ()))


@dataclass(frozen=True, slots=True)
class ForeignApplications:
    """A producer and a member of a group, as children that tell of each record."""

    producer: ToldRecords
    consumer: ToldRecords

    def acknowledged(self) -> list[tuple[int, int]]:
        """Return number and time (ms) of each record that a broker has acknowledged."""
        return self.producer.of("producer_send_success")

    def failed(self) -> list[tuple[int, int]]:
        return self.producer.of("producer_send_error")

    def read(self) -> list[int]:
        return [number for number, _ in self.consumer.of("record_data")]

    def trouble(self) -> str:
        """Return what a person is to look at where they do not go on."""
        return f"see {self.producer.child.log} and {self.consumer.child.log}"

    def stop_writing(self) -> None:
        self.producer.child.stop(patience_s=PATIENCE_S)


@contextmanager
def run_java(
    java: Peer,
    address: str,
    topic: str,
    folder: Path,
    security: str = "",
    jvm_options: tuple[str, ...] = (),
) -> Iterator[ForeignApplications]:
    """Run Kafka's verifiable tools; `security` are more settings of both."""
    assert java.version is not None
    written, read = folder / f"{topic}-producer.properties", folder / f"{topic}-consumer.properties"
    written.write_text(f"{security}\nretries=2147483647\nenable.idempotence=true\n")
    read.write_text(f"{security}\nheartbeat.interval.ms=1000\n")
    where = ("--bootstrap-server", address, "--topic", topic)
    group = ("--group-id", group_of(topic), "--reset-policy", "earliest", "--verbose")
    commands = {}
    for name, main_class, more in (
        ("consumer", VERIFIABLE_CONSUMER, (*group, "--consumer.config", str(read))),
        ("producer", VERIFIABLE_PRODUCER, (*RATE, "--producer.config", str(written))),
    ):
        program = JavaProgram(
            version=java.version,
            main_class=main_class,
            heap_mb=256,
            jvm_options=(*QUICK_START, *jvm_options),
        )
        commands[name] = program.command(folder, *where, *more, is_quiet=True)
    with _run_children(commands, folder, topic) as applications:
        yield applications


@contextmanager
def run_foreign(
    client: ForeignClient,
    address: str,
    topic: str,
    folder: Path,
    login: Mapping[str, str] | None = None,
) -> Iterator[ForeignApplications]:
    """Run them by a client of another language; `login` is what it has in its environment."""
    who = ["env", *(f"{name}={value}" for name, value in (login or {}).items())]
    commands = {
        "consumer": [*who, *client.through(address, topic, "read")],
        "producer": [*who, *client.through(address, topic, "write")],
    }
    with _run_children(commands, folder, topic) as applications:
        yield applications


@contextmanager
def _run_children(
    commands: Mapping[str, list[str]], folder: Path, topic: str
) -> Iterator[ForeignApplications]:
    children = {
        name: start_child(f"{topic} {name}", command, log=folder / f"{topic}-{name}.out")
        for name, command in commands.items()
    }
    try:
        yield ForeignApplications(**{name: ToldRecords(one) for name, one in children.items()})
    finally:
        for child in children.values():
            child.stop(patience_s=PATIENCE_S)


class LibrdkafkaApplications:
    """The same with confluent-kafka, each in a thread of its own."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        where = {**settings, **QUIET, "error_cb": self._note}
        self._producer = Producer({**where, "enable.idempotence": True, "linger.ms": 0})
        self._consumer = Consumer(
            {
                **where,
                "group.id": group_of(topic),
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 1_000,
            }
        )
        self._acknowledged: list[tuple[int, int]] = []
        self._failed: list[tuple[int, int]] = []
        self._read: list[int] = []
        self._errors: list[str] = []
        """What the clients said of themselves, each at its time (ms)."""
        self._stop_writing, self._stop_reading = Event(), Event()
        self._threads = ThreadPoolExecutor(2)
        self._writing = self._threads.submit(self._write)
        self._reading = self._threads.submit(self._read_on)

    def acknowledged(self) -> list[tuple[int, int]]:
        return list(self._acknowledged)

    def failed(self) -> list[tuple[int, int]]:
        return list(self._failed)

    def read(self) -> list[int]:
        return list(self._read)

    def trouble(self) -> str:
        """Return what the clients said last of what went wrong."""
        return "; ".join(self._errors[-5:]) or "the clients named no error"

    def _note(self, error: KafkaError) -> None:
        self._errors.append(f"{wall_ms()}: {error}")

    def stop_writing(self) -> None:
        self._stop_writing.set()
        self._writing.result(PATIENCE_S)

    def close(self) -> None:
        self._stop_reading.set()
        self.stop_writing()
        self._reading.result(PATIENCE_S)
        self._threads.shutdown()

    def _write(self) -> None:
        for number in count():

            def told(error: KafkaError | None, _: Message, number: int = number) -> None:
                outcome = self._acknowledged if error is None else self._failed
                outcome.append((number, wall_ms()))

            self._producer.produce(self._topic, b"%d" % number, on_delivery=told)
            self._producer.poll(0)
            if self._stop_writing.wait(0.01):
                break
        assert self._producer.flush(PATIENCE_S) == 0

    def _read_on(self) -> None:
        self._consumer.subscribe([self._topic])
        while not self._stop_reading.is_set():
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            if (error := message.error()) is not None:
                self._note(error)
            else:
                self._read.append(int(message.value() or b"-1"))
        self._consumer.close()


@contextmanager
def run_librdkafka(settings: Mapping[str, Any], topic: str) -> Iterator[LibrdkafkaApplications]:
    """Run them in this process, by these settings of clients."""
    applications = LibrdkafkaApplications(settings, topic)
    try:
        yield applications
    finally:
        applications.close()


Applications: TypeAlias = ForeignApplications | LibrdkafkaApplications


def group_of(topic: str) -> str:
    """Return the group that reads a topic."""
    return f"{topic}-readers"


def wait_more(applications: Applications, more: int) -> None:
    """Return once so many more are acknowledged, and as many are read."""
    wanted = len(applications.acknowledged()) + more
    _wait_for(applications, "writing goes on", applications.acknowledged, wanted)
    _wait_for(applications, "reading goes on", applications.read, wanted)


def _wait_for(
    applications: Applications, what: str, records: Callable[[], Sized], wanted: int
) -> None:
    try:
        wait_until(what, lambda: len(records()) >= wanted, PATIENCE_S)
    except AssertionError as late:
        late.add_note(f"{len(records())} of {wanted} records; {applications.trouble()}")
        raise


def longest_gap_s(acknowledged: list[tuple[int, int]], from_ms: int = 0) -> float:
    """Return the longest time between two acknowledgements, since one that came at `from_ms`."""
    times = [time for _, time in acknowledged]
    gaps = [after - before for before, after in pairwise(times) if after >= from_ms]
    return max(gaps, default=0) / 1000
