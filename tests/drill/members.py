"""Members of the drill's groups, and who watches their positions; `clients` runs them.

One group is of the classic protocol and one of the new one (KIP-848).

What a member has been given is on disk before it is committed, so that one that is killed leaves no
gap in the history that is not one.
"""

import sys
from collections.abc import Mapping
from time import monotonic
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.drill.history import Committed, Position, Read, Took, content_of
from tests.drill.task import Task

CLASSIC: Final = "classic"
NEWER: Final = "newer"
COMMIT_EVERY_S: Final = 0.3
SESSION_MS: Final = 6_000
REBALANCE_MS: Final = 10_000
"""So long the coordinator waits for members that are alive and do not join again: one that waits in
its commit for a coordinator that is away gives heartbeats all the while, and stops the others."""
PROTOCOLS: Final[Mapping[str, Mapping[str, str | int]]] = {
    CLASSIC: {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1_000},
    NEWER: {"group.protocol": "consumer"},
}
"""The brokers have the times of the new protocol (`cluster.SETTINGS`)."""
MOST_AT_ONCE: Final = 500
ASK_EVERY_S: Final = 0.5
PATIENCE_S: Final = 5.0
DRAIN_S: Final = 60.0


class Member:
    """One consumer of a group; it commits what it has been given, and no more."""

    def __init__(self, task: Task, group: str) -> None:
        self._task = task
        self._group = group
        self._given: dict[int, int] = {}
        """By partition: the position behind what was given and is not committed."""
        self._consumer = Consumer(
            task.settings(
                **{
                    "group.id": group,
                    **PROTOCOLS[group],
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "max.poll.interval.ms": REBALANCE_MS,
                    "fetch.wait.max.ms": 100,
                    "enable.partition.eof": True,
                    "check.crcs": True,
                }
            )
        )

    def run(self) -> None:
        """Read and commit until told to end, then until the group has read everything."""
        task = self._task
        self._consumer.subscribe(
            [task.topic], on_assign=self._take, on_revoke=self._give_back, on_lost=self._lose
        )
        commit_s = monotonic()
        drained_by_s = None
        while drained_by_s is None or monotonic() < drained_by_s:
            self._read()
            if monotonic() >= commit_s:
                self._commit()
                if drained_by_s is not None and self._group_is_done():
                    break
                if drained_by_s is None and task.is_over():
                    drained_by_s = monotonic() + DRAIN_S
                commit_s = monotonic() + COMMIT_EVERY_S
        self._consumer.close()

    def _take(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        at_s = monotonic()
        for one in partitions:
            log = self._task.log(one.partition)
            self._task.note(Took(at_s=at_s, who=self._task.name, log=log, group=self._group))

    def _give_back(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._lose(_, partitions)

    def _lose(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._given.pop(one.partition, None)

    def _read(self) -> None:
        task = self._task
        for number in range(MOST_AT_ONCE):
            # One by one: what `consume` gathered before a rebalance it still gives after it.
            message = self._consumer.poll(0.0 if number else 0.1)
            at_s = monotonic()
            if message is None:
                return
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None and _is_end(message):
                self._given[partition] = offset  # behind markers, which nobody is given
                continue
            if message.error() is not None or partition is None or offset is None:
                sys.stderr.write(f"{task.name}: {at_s:.3f} {message.error()}\n")
                continue
            self._given[partition] = offset + 1
            content = content_of(message.value())
            log = task.log(partition)
            task.note(
                Read(
                    at_s=at_s,
                    who=task.name,
                    log=log,
                    offset=offset,
                    content=content,
                    in_group=True,
                    group=self._group,
                )
            )

    def _commit(self) -> None:
        if not self._given:
            return
        task = self._task
        task.history.flush()
        wanted = [
            TopicPartition(task.topic, partition, offset)
            for partition, offset in self._given.items()
        ]
        try:
            answered = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            sys.stderr.write(f"{task.name}: {monotonic():.3f} commit: {error}\n")
            return
        at_s = monotonic()
        for one in answered or ():
            if one.error is not None:
                continue
            if self._given.get(one.partition) == one.offset:
                del self._given[one.partition]
            log = task.log(one.partition)
            task.note(
                Committed(at_s=at_s, who=task.name, log=log, offset=one.offset, group=self._group)
            )

    def _group_is_done(self) -> bool:
        """Return whether the group's positions have reached the end of all logs."""
        task = self._task
        everything = [TopicPartition(task.topic, index) for index in range(task.partitions)]
        try:
            return all(
                one.offset >= self._consumer.get_watermark_offsets(one, PATIENCE_S)[1]
                for one in self._consumer.committed(everything, PATIENCE_S)
            )
        except KafkaException as error:
            sys.stderr.write(f"{task.name}: {monotonic():.3f} end: {error}\n")
            return False


def _is_end(message: Message) -> bool:
    """Return whether it says that a log has been read to its end, which is at its offset."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def be_member(group: str, task: Task) -> None:
    """Read and commit as one of the group."""
    Member(task, group).run()


def watch_positions(group: str, task: Task) -> None:
    """Ask again and again what the group has committed."""
    consumer = Consumer(task.settings(**{"group.id": group}))
    everything = [TopicPartition(task.topic, index) for index in range(task.partitions)]
    while not task.is_over(ASK_EVERY_S):
        asked_s = monotonic()
        try:
            found = consumer.committed(everything, PATIENCE_S)
        except KafkaException:
            continue
        at_s = monotonic()
        for one in found:
            if one.error is None:
                task.note(
                    Position(
                        asked_s=asked_s,
                        at_s=at_s,
                        who=task.name,
                        log=task.log(one.partition),
                        offset=max(one.offset, 0),
                        group=group,
                    )
                )
    consumer.close()
