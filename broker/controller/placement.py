"""Kafka's rule for spreading replicas over brokers and racks (`AdminUtils`). Pure.

Leaders go round robin from a random start; the followers of one partition lie at a shift from its
leader that grows by one after every full round, so that a broker's followers are spread too.

    3 brokers, factor 2, start 0, shift 0:   p0: 0 1   p1: 1 2   p2: 2 0   p3: 0 2   p4: 1 0 ...

With racks the brokers are first ordered so that neighbours are in different racks, and a follower
goes to a rack that has no replica yet as long as there is one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest


class RacksIncomplete(ValueError):
    """Some brokers say which rack they are in and others do not; the message names those."""


def place(
    racks: Mapping[int, str | None],
    *,
    partitions: range,
    replication_factor: int,
    start: int,
    shift: int,
) -> dict[int, tuple[int, ...]]:
    """Return the brokers of each partition index, the preferred leader first.

    `racks` has every live broker. `start` and `shift` are random numbers at creation; when a topic
    grows, both are the place of partition 0's leader. The replication factor is at most the number
    of brokers. Raises RacksIncomplete.
    """
    assert 1 <= replication_factor <= len(racks), "checked by the caller"
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    if known and len(known) < len(racks):
        missing = sorted(racks.keys() - known.keys())
        raise RacksIncomplete(
            "Not all brokers have rack information for replica rack aware assignment: "
            f"broker.rack is missing on {missing}"
        )
    ordered = alternated(known) if known else sorted(racks)
    placed: dict[int, tuple[int, ...]] = {}
    for index in partitions:
        if index > 0 and index % len(ordered) == 0:
            shift += 1
        leader = (index + start) % len(ordered)
        placed[index] = _replicas(ordered, known, leader, shift, replication_factor)
    return placed


def alternated(racks: Mapping[int, str]) -> list[int]:
    """Return the brokers, lowest first, each rack's in its turn."""
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for one_round in rounds for broker in one_round if broker is not None]


def _replicas(
    ordered: Sequence[int], racks: Mapping[int, str], leader: int, shift: int, factor: int
) -> tuple[int, ...]:
    count, rack_count = len(ordered), len(set(racks.values()))
    chosen = [ordered[leader]]
    used_racks = {racks.get(ordered[leader])}
    turn = 0
    while len(chosen) < factor:
        step = 1 + (shift * max(rack_count, 1) + turn) % (count - 1)
        broker = ordered[(leader + step) % count]
        turn += 1
        is_rack_free = len(used_racks) >= rack_count or racks[broker] not in used_racks
        if is_rack_free and broker not in chosen:
            chosen.append(broker)
            used_racks.add(racks.get(broker))
    return tuple(chosen)
