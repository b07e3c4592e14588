"""Applications of a cluster, each a process of its own: librdkafka, as most of them use it.

`python -m tests.bench.rows.clients produce|consume|trickle BOOTSTRAP TOPIC COUNT CODEC` works,
prints one line of JSON and ends: `{"seconds": ...}`, or for `trickle` `{"p50": ..., "p99": ...}` in
ms.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.bench.measure.figures import percentile
from tests.bench.measure.ledger import RunFailed
from tests.bench.measure.workloads import KIB
from tests.bench.stage.filling import random_words
from tests.interop.peers.child import Child, start_child

RECORD_BYTES: Final = KIB
CHUNK: Final = 500
VALUES: Final = 200
"""Different ones: as many as lie in a few batches."""
TRICKLE_PER_S: Final = 1000
WARM_UP_S: Final = 20.0
TIMEOUT_S: Final = 120
PATIENCE_S: Final = 30.0
FULL_QUEUE_MS: Final = 10
"""How long a client rests whose queue is full: 1 s, as long as all of a test takes, unless told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one application does; `count` are records, or seconds for `trickle`."""

    what: str
    bootstrap: str
    topic: str
    count: int
    codec: str = "none"


def begin(task: Task, folder: Path) -> Child:
    """Start an application."""
    command = [
        sys.executable,
        "-m",
        "tests.bench.rows.clients",
        task.what,
        task.bootstrap,
        task.topic,
    ]
    command += [str(task.count), task.codec]
    return start_child(task.what, command, log=folder / f"{task.topic}-{task.what}.log")


def result_of(child: Child) -> dict[str, float]:
    """Wait for an application's end and return its figures. Raises RunFailed, TimeoutExpired."""
    try:
        status = child.process.wait(TIMEOUT_S)
    finally:
        child.kill()
    last = (child.said().splitlines() or ["it said nothing"])[-1]
    if status != 0:
        raise RunFailed(f"{child.name}: {last}")
    try:
        result: dict[str, float] = json.loads(last)
    except ValueError as error:
        raise RunFailed(f"{child.name} told no figures: {last}") from error
    return result


def produce(task: Task) -> dict[str, float]:
    """Write records as fast as they are taken; the time until the last is acknowledged by all."""
    producer = _producer(task)
    values = _values()
    chunks = [
        [{"value": values[(place + number) % VALUES]} for number in range(CHUNK)]
        for place in range(0, VALUES, 10)
    ]
    began, left = monotonic(), task.count
    while left:
        chunk = chunks[left % len(chunks)][:left]
        queued = producer.produce_batch(task.topic, chunk)
        left -= queued
        producer.poll(0 if queued == len(chunk) else 0.01)  # a full queue: wait for some room
    if producer.flush(PATIENCE_S):
        raise RunFailed(f"records were not acknowledged within {PATIENCE_S:g} s")
    return {"seconds": monotonic() - began}


def consume(task: Task) -> dict[str, float]:
    """Read records from the beginning; the time from the first to the last."""
    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": "bench-reader",
            "fetch.queue.backoff.ms": FULL_QUEUE_MS,
        }
    )
    metadata = consumer.list_topics(task.topic, timeout=PATIENCE_S)
    partitions = metadata.topics[task.topic].partitions
    consumer.assign([TopicPartition(task.topic, partition, 0) for partition in partitions])
    seen, began, last = 0, 0.0, monotonic()
    while seen < task.count:
        found = consumer.consume(min(CHUNK, task.count - seen), 0.1)
        now = monotonic()
        if any(message.error() for message in found):
            raise RunFailed(f"read: {found[0].error()}")
        if found:
            began, last = began or now, now
        elif now - last > PATIENCE_S:
            raise RunFailed(f"{seen} of {task.count} records, then nothing for {PATIENCE_S:g} s")
        seen += len(found)
    consumer.close()
    return {"seconds": last - began}


@dataclass(slots=True)
class Answers:
    """What became of records that were sent at a rate."""

    latencies_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def to(self, due: float) -> Callable[[KafkaError | None, Message], None]:
        """Return what takes the answer to a record that was due then."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self.errors.append(str(error))
            self.latencies_ms.append(1000 * (monotonic() - due))

        return delivered


def trickle(task: Task) -> dict[str, float]:
    """Write single records at a rate for so many seconds; from being due to being acknowledged."""
    producer = _producer(task, {"linger.ms": 0})
    _send_at_rate(producer, task.topic, WARM_UP_S)  # what piles up on cold brokers is waited for
    latencies_ms = _send_at_rate(producer, task.topic, task.count)
    return {"p50": percentile(latencies_ms, 0.5), "p99": percentile(latencies_ms, 0.99)}


def _send_at_rate(producer: Producer, topic: str, seconds: float) -> list[float]:
    """Write for so long, and wait for what is under way; raises RunFailed."""
    values, answers = _values(), Answers()
    began = monotonic()
    for number in range(int(seconds * TRICKLE_PER_S)):
        due = began + number / TRICKLE_PER_S
        while (early := due - monotonic()) > 0:
            producer.poll(early)
        producer.produce(topic, values[number % VALUES], on_delivery=answers.to(due))
    if producer.flush(PATIENCE_S) or answers.errors:
        raise RunFailed(f"not acknowledged: {answers.errors[:1]}")
    return answers.latencies_ms


def _producer(task: Task, settings: Mapping[str, Any] | None = None) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "acks": "all",
            "compression.type": task.codec,
            **(settings or {}),
        }
    )
    producer.list_topics(task.topic, timeout=PATIENCE_S)
    return producer


def _values() -> list[bytes]:
    chance = random.Random(RECORD_BYTES)
    return [random_words(chance, RECORD_BYTES) for _ in range(VALUES)]


TASKS: Final[Mapping[str, Callable[[Task], dict[str, float]]]] = {
    "produce": produce,
    "consume": consume,
    "trickle": trickle,
}


def main(what: str, bootstrap: str, topic: str, count: str, codec: str) -> int:
    """Do what the command line asks for."""
    task = Task(what=what, bootstrap=bootstrap, topic=topic, count=int(count), codec=codec)
    try:
        result = TASKS[what](task)
    except RunFailed as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
