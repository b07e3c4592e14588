"""A producer of transactions: most are committed, some aborted, some left open by its death."""

import random
import sys
from time import monotonic
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.drill.history import Acked, content_of, value_of
from tests.drill.task import Task

VALUE_BYTES: Final = 200
LARGEST: Final = 40
ABORTED: Final = 0.25
FORSAKEN: Final = 0.03
"""So many are neither committed nor aborted: their producer is gone, another takes its name."""
COMMIT_S: Final = 30.0


def transact(task: Task) -> None:
    """Write transactions over all partitions at the rate wanted, and note what was committed."""
    luck = random.Random(task.name)
    number = 0
    producer: Producer | None = None
    while not task.is_over():
        try:
            producer = producer or _producer(task)
            count = luck.randint(1, LARGEST)
            wrote = _write(task, producer, number, count)
            number += count
            fate = luck.random()
            if fate < FORSAKEN:
                producer.flush(COMMIT_S)
                producer = None
            elif fate < FORSAKEN + ABORTED:
                producer.abort_transaction(COMMIT_S)
            else:
                _commit(producer)
                for ack in wrote:
                    task.note(ack)
        except KafkaException as error:
            number += LARGEST
            producer = _recover(task, producer, error)
        task.is_over(_pause_s(task.rate, luck))


def _pause_s(rate: int, luck: random.Random) -> float:
    """Return how long to wait, so that the rate comes out in the long run."""
    return luck.expovariate(rate / (LARGEST / 2))


def _producer(task: Task) -> Producer:
    settings = {"transactional.id": task.name, "transaction.timeout.ms": 10_000, "linger.ms": 2}
    producer = Producer(task.settings(**settings))
    producer.init_transactions(COMMIT_S)
    return producer


def _write(task: Task, producer: Producer, number: int, count: int) -> list[Acked]:
    """Return what was written; safe only once the transaction is committed."""
    wrote: list[Acked] = []

    producer.begin_transaction()
    for which in range(number, number + count):
        value = value_of(task.name, which, VALUE_BYTES)
        partition = which % task.partitions
        producer.produce(
            task.topic, value, partition=partition, on_delivery=_Delivered(task, which, wrote)
        )
    return wrote


class _Delivered:
    """Takes a delivery report of one record."""

    def __init__(self, task: Task, number: int, wrote: list[Acked]) -> None:
        self._task, self._number, self._wrote = task, number, wrote

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None and offset >= 0:
            self._wrote.append(
                Acked(
                    at_s=monotonic(),
                    who=self._task.name,
                    log=self._task.log(message.partition()),
                    offset=offset,
                    content=content_of(message.value()),
                    number=self._number,
                )
            )


def _commit(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(COMMIT_S)
        except KafkaException as error:
            if not _said(error).retriable():
                raise
        else:
            return


def _recover(task: Task, producer: Producer | None, error: KafkaException) -> Producer | None:
    """Abort, or leave it to the successor of this producer to do so."""
    sys.stderr.write(f"{task.name}: {monotonic():.3f} {error}\n")
    if producer is None or not _said(error).txn_requires_abort():
        return None
    try:
        producer.abort_transaction(COMMIT_S)
    except KafkaException:
        return None
    return producer


def _said(error: KafkaException) -> KafkaError:
    said = error.args[0]
    assert isinstance(said, KafkaError), "transactions fail with nothing else"
    return said
