"""One producer or consumer as a process of its own, writing down what it is told and shown.

python -m tests.drill.clients WHAT NAME CLIENT TOPIC PARTITIONS FILE [RATE]

CLIENT is a file with the settings of a client, as JSON. WHAT is produce, transact, consume, read,
or what one of a group does: `classic-member`, `newer-positions` and so on. It ends when its
standard input does: then a producer waits for what is still on its way, a member of a group until
that has read everything.
"""

import faulthandler
import json
import random
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.drill.history import UNTOLD, Acked, Read, Refused, content_of, keyed, value_of
from tests.drill.members import PROTOCOLS, be_member, watch_positions
from tests.drill.task import Task
from tests.drill.transactions import transact

VALUE_BYTES: Final = 200
KEYS: Final = 60
"""A multiple of the partitions, so that a key stays in its partition."""
TICK_S: Final = 0.01
LAST_WORDS_S: Final = 40.0
FINAL_READ_S: Final = 180.0
REREAD_EVERY_S: Final = 4.0


def produce(task: Task) -> None:
    """Produce unlike records at the rate wanted, idempotently, and note each acknowledgement.

    One whose name begins with `keyed` uses few keys again and again.
    """
    producer = _producer(task)
    has_keys = task.name.startswith("keyed")
    number = 0
    began_s = monotonic()
    while not task.is_over():
        due = int((monotonic() - began_s) * task.rate)
        try:
            while number < due:
                producer.produce(
                    task.topic,
                    value_of(task.name, number, VALUE_BYTES),
                    partition=number % task.partitions,
                    key=b"%d" % (number % KEYS) if has_keys else None,
                    on_delivery=_noting(task, number),
                )
                number += 1
        except BufferError:
            producer.poll(0.1)
        except KafkaException as error:
            # Its id is spent. What it had under way may be there or not: nobody was told.
            sys.stderr.write(f"{task.name}: begins anew after {error}\n")
            producer.purge()
            producer.flush(1)
            producer = _producer(task)
        producer.poll(TICK_S)
        if number < due - task.rate:  # it was held up: what was missed is not made up for
            began_s = monotonic() - number / task.rate
    producer.flush(LAST_WORDS_S)


def _producer(task: Task) -> Producer:
    return Producer(
        task.settings(
            **{
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "request.timeout.ms": 5_000,
                "message.timeout.ms": 120_000,
                "queue.buffering.max.messages": 20_000,
            }
        )
    )


def _noting(task: Task, number: int) -> Callable[[KafkaError | None, Message], None]:
    def delivered(error: KafkaError | None, message: Message) -> None:
        at_s, log, offset = monotonic(), task.log(message.partition()), message.offset()
        if error is not None:
            said = error.name()
            task.note(Refused(at_s=at_s, who=task.name, log=log, number=number, error=said))
            return
        task.note(
            Acked(
                at_s=at_s,
                who=task.name,
                log=log,
                offset=UNTOLD if offset is None else offset,
                content=keyed(content_of(message.value()), message.key()),
                number=number,
            )
        )

    return delivered


def consume(task: Task) -> None:
    """Read everything as it comes; one whose name begins with `re` reads much of it again.

    Of what it has been given before it writes down what differs, and one record at a time of the
    rest: that it is being served.
    """
    consumer = _consumer(task)
    rereads = task.name.startswith("re")
    again_s = monotonic() + REREAD_EVERY_S
    known: dict[tuple[str, int], str] = {}
    while not task.is_over():
        given = [_read(task, one) for one in _whole(task, consumer.consume(500, 0.1))]
        for number, read in enumerate(given):
            place = (read.log, read.offset)
            if number == 0 or known.get(place) != read.content:
                task.note(read)
            known[place] = read.content
        if rereads and monotonic() > again_s:
            consumer.assign(_from_somewhere(task, known))
            again_s = monotonic() + REREAD_EVERY_S
    consumer.close()


def _from_somewhere(task: Task, known: Collection[tuple[str, int]]) -> list[TopicPartition]:
    ends = dict(sorted(known))
    return [
        TopicPartition(task.topic, index, random.randint(0, ends.get(task.log(index), 0)))
        for index in range(task.partitions)
    ]


def read(task: Task) -> None:
    """Read all logs from the first record to the end, where a marker may lie, then end."""
    consumer = _consumer(task, **{"enable.partition.eof": True})
    ends = {index: _end(consumer, task, index) for index in range(task.partitions)}
    positions = dict.fromkeys(range(task.partitions), 0)
    deadline_s = monotonic() + FINAL_READ_S
    while any(positions[index] < ends[index] for index in ends) and monotonic() < deadline_s:
        given = consumer.consume(1_000, 0.2)
        records = _whole(task, [one for one in given if not _is_end(one)])
        for message in records:
            task.note(_read(task, message, is_final=True))
            positions[message.partition() or 0] = (message.offset() or 0) + 1
        for message in filter(_is_end, given):
            positions[message.partition() or 0] = message.offset() or 0
    consumer.close()
    left = {index: end for index, end in ends.items() if positions[index] < end}
    if left:
        sys.exit(f"{task.name}: read up to {positions}, not up to {left}")


def _is_end(message: Message) -> bool:
    """Whether it says that everything before its offset has been given, and nothing is there."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def _end(consumer: Consumer, task: Task, index: int) -> int:
    deadline_s = monotonic() + FINAL_READ_S
    while True:
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(task.topic, index), 5)
        except KafkaException:
            if monotonic() > deadline_s:
                raise
        else:
            return int(end)


def _consumer(task: Task, **more: bool) -> Consumer:
    consumer = Consumer(
        task.settings(
            **{
                "group.id": task.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "check.crcs": True,
                **more,
            }
        )
    )
    consumer.assign(_everything(task))
    return consumer


def _everything(task: Task) -> list[TopicPartition]:
    return [TopicPartition(task.topic, index, OFFSET_BEGINNING) for index in range(task.partitions)]


def _whole(task: Task, messages: list[Message]) -> list[Message]:
    """Return the records, without what are errors."""
    for error in filter(None, (message.error() for message in messages)):
        sys.stderr.write(f"{task.name}: {monotonic():.3f} {error}\n")
    return [message for message in messages if message.error() is None]


def _read(task: Task, message: Message, *, is_final: bool = False) -> Read:
    return Read(
        at_s=monotonic(),
        who=task.name,
        log=task.log(message.partition()),
        offset=message.offset() or 0,
        content=keyed(content_of(message.value()), message.key()),
        is_final=is_final,
    )


DOES: Final[Mapping[str, Callable[[Task], None]]] = {
    "produce": produce,
    "transact": transact,
    "consume": consume,
    "read": read,
    **{f"{group}-member": partial(be_member, group) for group in PROTOCOLS},
    **{f"{group}-positions": partial(watch_positions, group) for group in PROTOCOLS},
}


def main() -> None:
    """Do what the command line says. SIGABRT ends it, and it says what all its threads were at."""
    faulthandler.enable()
    what, name, client, topic, partitions, file, *rate = sys.argv[1:]
    with Path(file).open("a") as history:
        task = Task(
            name=name,
            client=json.loads(Path(client).read_text()),
            topic=topic,
            partitions=int(partitions),
            history=history,
            rate=int(rate[0]) if rate else 500,
        )
        DOES[what](task)


if __name__ == "__main__":
    main()
