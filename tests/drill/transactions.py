"""A producer of transactions: most are committed, some aborted, some left open by its death."""

import random
import sys
from time import monotonic
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.drill.history import Aborted, Acked, content_of, value_of
from tests.drill.task import Task

VALUE_BYTES: Final = 200
LARGEST: Final = 40
ABORTED: Final = 0.25
FORSAKEN: Final = 0.03
"""So many are neither committed nor aborted: their producer is gone, another takes its name."""
COMMIT_S: Final = 30.0
LAST_WORDS_S: Final = 90.0


def transact(task: Task) -> None:
    """Write transactions over all partitions at the rate wanted, and note what became of them.

    The last thing that it does is to end what its last producer may have left open.
    """
    luck = random.Random(task.name)
    number = 0
    producer: Producer | None = None
    while not task.is_over():
        count = luck.randint(1, LARGEST)
        numbers = range(number, number + count)
        number += LARGEST
        try:
            producer = producer or _producer(task)
            wrote = _write(task, producer, numbers)
            fate = luck.random()
            if fate < FORSAKEN:
                producer.flush(COMMIT_S)
                producer = None  # it can never be committed: its successor aborts it
                _give_up(task, numbers)
            elif fate < FORSAKEN + ABORTED:
                producer.abort_transaction(COMMIT_S)
                _give_up(task, numbers)
            else:
                _commit(producer)
                for ack in wrote:
                    task.note(ack)
        except KafkaException as error:
            producer = _recover(task, producer, error, numbers)
        task.is_over(_pause_s(task.rate, luck))
    _settle(task)


def _settle(task: Task) -> None:
    deadline_s = monotonic() + LAST_WORDS_S
    while True:
        try:
            _producer(task)
        except KafkaException as error:
            sys.stderr.write(f"{task.name}: {monotonic():.3f} {error}\n")
            if monotonic() > deadline_s:
                raise
        else:
            return


def _give_up(task: Task, numbers: range) -> None:
    for number in numbers:
        task.note(
            Aborted(
                at_s=monotonic(),
                who=task.name,
                log=task.log(number % task.partitions),
                content=content_of(value_of(task.name, number, VALUE_BYTES)),
                number=number,
            )
        )


def _pause_s(rate: int, luck: random.Random) -> float:
    """Return how long to wait, so that the rate comes out in the long run."""
    return luck.expovariate(rate / (LARGEST / 2))


def _producer(task: Task) -> Producer:
    settings = {"transactional.id": task.name, "transaction.timeout.ms": 10_000, "linger.ms": 2}
    producer = Producer(task.settings(**settings))
    producer.init_transactions(COMMIT_S)
    return producer


def _write(task: Task, producer: Producer, numbers: range) -> list[Acked]:
    """Return what was written; safe only once the transaction is committed."""
    wrote: list[Acked] = []

    producer.begin_transaction()
    for which in numbers:
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


def _recover(
    task: Task, producer: Producer | None, error: KafkaException, numbers: range
) -> Producer | None:
    """Abort, or leave it to the successor of this producer to do so."""
    sys.stderr.write(f"{task.name}: {monotonic():.3f} {error}\n")
    if producer is None or not _said(error).txn_requires_abort():
        return None
    try:
        producer.abort_transaction(COMMIT_S)
    except KafkaException:
        return None
    _give_up(task, numbers)
    return producer


def _said(error: KafkaException) -> KafkaError:
    said = error.args[0]
    assert isinstance(said, KafkaError), "transactions fail with nothing else"
    return said
