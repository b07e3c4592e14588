"""Kafka's rule for spreading replicas over brokers (`AdminUtils`, without racks). Pure.

Leaders go round robin from a random start; the followers of one partition lie at a shift from its
leader that grows by one after every full round, so that a broker's followers are spread too.

    3 brokers, factor 2, start 0, shift 0:   p0: 0 1   p1: 1 2   p2: 2 0   p3: 0 2   p4: 1 0 ...
"""

from collections.abc import Sequence


def place(
    brokers: Sequence[int],
    *,
    partitions: range,
    replication_factor: int,
    start: int,
    shift: int,
) -> dict[int, tuple[int, ...]]:
    """Return the brokers of each partition index, the preferred leader first.

    `start` and `shift` are random numbers at creation; when a topic grows, both are the place of
    partition 0's leader. The replication factor is at most the number of brokers.
    """
    assert 1 <= replication_factor <= len(brokers), "checked by the caller"
    ordered = sorted(brokers)
    count = len(ordered)
    placed: dict[int, tuple[int, ...]] = {}
    for index in partitions:
        if index > 0 and index % count == 0:
            shift += 1
        leader = (index + start) % count
        followers = [
            ordered[(leader + 1 + (shift + turn) % (count - 1)) % count]
            for turn in range(replication_factor - 1)
        ]
        placed[index] = (ordered[leader], *followers)
    return placed
