"""The assignment as it lies in the witness, and its changes in two phases. Pure.

    version 7    orders-3 owned by a
    version 8    orders-3 leaves a            a sees it, settles what is under way, lets go, and
                                              confirms version 8 in its own node
    version 9    orders-3 owned by b          b takes it; nobody else is disturbed

The worker that leads the flow writes the node, against the version of it that was read. A worker
may write a partition from the version that gives it until it has confirmed one that takes it away.
A worker whose node is gone has let go of nothing: it may be asleep. Its partitions become free once
its writer, the producer id by which it writes the offset map, is fenced.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from mirror.state.orders import Restart
from mirror.workers.assignment import Loads, assign
from offset_translation.map_records import MirrorProducer
from runtime.coordination import standstill
from runtime.coordination.standstill import Standstill
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from runtime.untrusted_json import LARGEST_INT32, rate, text, unpack_json, whole_number
from wire.topic_partition import TopicPartition
from wire.values import frozen

MAX_PRODUCER_EPOCH: Final = 2**15 - 1
RESTARTED: Final = "obeyed"
"""The key as workers of every version write it."""


@frozen
class WorkerNode:
    """A worker's report on itself in its ephemeral node."""

    info: WorkerInfo
    writer: MirrorProducer
    """By whom it writes the offset map; of no other worker, and of none that it was before."""
    confirmed: int = 0
    """The last version whose partitions it has, and no others."""
    bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    gone: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The written end on the target of each of its partitions that the source has no more."""
    doubted: frozenset[TopicPartition] = frozenset()
    """Its partitions whose map may not speak of the log that is on the target."""
    restarted: frozenset[Restart] = frozenset()
    """Restarts in force that it has done to all of its partitions that they concern."""
    standing: tuple[Standstill, ...] = ()
    """Those of its partitions that stand still until somebody decides; not all, where many do."""

    def encode(self) -> bytes:
        """Return the JSON of the node, compressed."""
        rates = [[*partition, round(rate)] for partition, rate in sorted(self.bytes_per_s.items())]
        return _pack(
            {
                "info": json.loads(self.info.encode()),
                "writer": [self.writer.producer_id, self.writer.producer_epoch],
                "confirmed": self.confirmed,
                "rates": rates,
                "gone": [[*partition, end] for partition, end in sorted(self.gone.items())],
                "doubted": sorted(self.doubted),
                RESTARTED: [one.plain() for one in sorted(self.restarted, key=_age)],
                standstill.KEY: standstill.told(self.standing),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what a node says; raises WitnessGarbled."""
        try:
            found = unpack_json(data)
            return cls(
                info=WorkerInfo.decode(json.dumps(found["info"]).encode()),
                writer=_writer(found["writer"]),
                confirmed=whole_number(found["confirmed"]),
                bytes_per_s={
                    _place(topic, index): rate(told) for topic, index, told in found["rates"]
                },
                gone={
                    _place(topic, index): whole_number(end)
                    for topic, index, end in found.get("gone", ())
                },
                doubted=frozenset(
                    _place(topic, index) for topic, index in found.get("doubted", ())
                ),
                restarted=frozenset(Restart.of(one) for one in found.get(RESTARTED, ())),
                standing=standstill.heard(found),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WitnessGarbled(f"witness: no valid member: {data[:80]!r}: {error}") from error


def _age(restart: Restart) -> int:
    return restart.at_ms


class Leaving(NamedTuple):
    """A move: the worker that has to let go, since which version, and the worker that gets it."""

    holder: str
    since: int
    heir: str


@frozen
class Assignment:
    """One version of the assignment."""

    version: int = 0
    owners: Mapping[TopicPartition, str] = field(default_factory=dict)
    leaving: Mapping[TopicPartition, Leaving] = field(default_factory=dict)
    writers: Mapping[str, MirrorProducer] = field(default_factory=dict)
    """The map writers of workers that own something or have to let go of it."""

    def of(self, member: str) -> frozenset[TopicPartition]:
        """Return the partitions that a worker owns."""
        return frozenset(partition for partition, owner in self.owners.items() if owner == member)

    @property
    def mirrored_by(self) -> dict[TopicPartition, str]:
        """Return the worker that mirrors each partition now, until it has let go of it."""
        return {**self.owners, **{partition: one.holder for partition, one in self.leaving.items()}}

    @property
    def holders(self) -> frozenset[str]:
        """Return the workers that own something or have to let go of it."""
        return frozenset(self.owners.values()) | {one.holder for one in self.leaving.values()}

    def encode(self) -> bytes:
        """Return the JSON of the node, compressed: it must stay far below a mebibyte."""
        return _pack(
            {
                "version": self.version,
                "owners": _by_holder(self.owners),
                "leaving": [
                    [*partition, *held] for partition, held in sorted(self.leaving.items())
                ],
                "writers": {
                    name: [writer.producer_id, writer.producer_epoch]
                    for name, writer in sorted(self.writers.items())
                },
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what a node says; raises WitnessGarbled."""
        try:
            found = unpack_json(data)
            read = cls(
                version=whole_number(found["version"]),
                owners={
                    _place(topic, index): owner
                    for owner, topics in found["owners"].items()
                    for topic, indexes in topics.items()
                    for index in indexes
                },
                leaving={
                    _place(topic, index): Leaving(text(holder), whole_number(since), text(heir))
                    for topic, index, holder, since, heir in found["leaving"]
                },
                writers={name: _writer(one) for name, one in found["writers"].items()},
            )
            unknown = read.holders - read.writers.keys()
            if unknown:
                raise ValueError(f"no writer of {min(unknown)}")  # noqa: TRY301 - as all the rest
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WitnessGarbled(f"witness: no valid assignment: {data[:80]!r}: {error}") from error
        return read


def to_fence(now: Assignment, members: Collection[str]) -> dict[str, MirrorProducer]:
    """Return the writers of workers that are gone and had something."""
    return {name: now.writers[name] for name in sorted(now.holders) if name not in members}


def vouched(
    before: frozenset[TopicPartition], now: Assignment, members: Mapping[str, WorkerNode]
) -> frozenset[TopicPartition]:
    """Return the partitions whose owners vouch for their maps.

    Where an owner has not confirmed yet, or has died, the last word about the map counts.
    """
    found = set()
    for partition, owner in now.owners.items():
        member = members.get(owner)
        if member is None or member.confirmed < now.version:
            is_vouched = partition in before
        else:
            is_vouched = partition not in member.doubted
        if is_vouched:
            found.add(partition)
    return frozenset(found)


def is_carried_out(now: Assignment, members: Mapping[str, WorkerNode], restart: Restart) -> bool:
    """Whether every worker has done a restart to all that it has.

    A worker that is asleep has not, until its partitions are another's, who has not either. So the
    order stays in the witness until each worker has said so in its node: after any fixed time, a
    worker that takes a sleeper's partitions over would not know of it.
    """
    return not now.leaving and all(
        one.confirmed == now.version and restart in one.restarted for one in members.values()
    )


def next_assignment(
    now: Assignment,
    members: Mapping[str, WorkerNode],
    partitions: Collection[TopicPartition],
    *,
    fenced: Collection[str],
    loads: Loads,
    pinned: Mapping[str, str] = MappingProxyType({}),
) -> Assignment | None:
    """Return the next version, None if the present one may stay.

    ``fenced`` are workers without a node whose writers cannot write the map any more; ``pinned``
    are topics that one worker is to have whole.
    """
    version = now.version + 1
    holders = _holders(now, members, fenced)
    heirs = {partition: one.heir for partition, one in now.leaving.items()}
    before = {**now.owners, **heirs}
    wanted = assign(
        partitions, members, before=before, bytes_per_s=loads.bytes_per_s, at_rest=loads.at_rest
    )
    wanted |= {partition: pinned[partition[0]] for partition in wanted if partition[0] in pinned}
    owners: dict[TopicPartition, str] = {}
    leaving: dict[TopicPartition, Leaving] = {}
    for partition in wanted.keys() | holders.keys():
        holder, heir = holders.get(partition), wanted.get(partition)
        if partition in now.leaving and holder is not None:
            leaving[partition] = now.leaving[partition]._replace(heir=heir or holder)
        elif holder is None or holder == heir:
            if heir is not None:
                owners[partition] = heir
        elif holder in members:
            leaving[partition] = Leaving(holder, version, heir or holder)
        else:
            owners[partition] = holder  # it is gone, and not fenced yet
    held = set(owners.values()) | {one.holder for one in leaving.values()}
    writers = {
        name: members[name].writer if name in members else now.writers[name] for name in held
    }
    is_same = (owners, leaving, writers) == (now.owners, now.leaving, now.writers)
    if is_same and now.version:
        return None  # of an empty flow there is a first version, too
    return Assignment(version=version, owners=owners, leaving=leaving, writers=writers)


def _holders(
    now: Assignment, members: Mapping[str, WorkerNode], fenced: Collection[str]
) -> dict[TopicPartition, str]:
    """Return who may still write each partition."""

    def may_write(holder: str, since: int | None) -> bool:
        if holder not in members:
            return holder not in fenced
        return since is None or members[holder].confirmed < since

    owned = {partition: owner for partition, owner in now.owners.items() if may_write(owner, None)}
    left = {
        partition: one.holder
        for partition, one in now.leaving.items()
        if may_write(one.holder, one.since)
    }
    return owned | left


def _by_holder(owners: Mapping[TopicPartition, str]) -> dict[str, dict[str, list[int]]]:
    grouped: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (topic, index), owner in sorted(owners.items()):
        grouped[owner][topic].append(index)
    return {owner: dict(topics) for owner, topics in grouped.items()}


def _writer(found: Any) -> MirrorProducer:  # noqa: ANN401 - JSON
    producer_id, producer_epoch = found
    return MirrorProducer(
        producer_id=whole_number(producer_id),
        producer_epoch=whole_number(producer_epoch, MAX_PRODUCER_EPOCH),
    )


def _place(topic: object, index: object) -> TopicPartition:
    return TopicPartition(text(topic), whole_number(index, LARGEST_INT32))


def _pack(value: Any) -> bytes:  # noqa: ANN401 - JSON
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)
