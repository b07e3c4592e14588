"""Lanes: the connections to one broker, more of them where an answer takes long.

One TCP connection carries a window of a few megabytes per round trip, and a fetcher asks for the
next chunk only when it has the last one. Between neighbours that is more than we can use, and each
connection makes requests smaller, which costs; over 80 ms it would be a fraction. A partition
always goes the same lane, so its order is kept. A topic's partitions spread over lanes evenly only
to one more or less (12 over 8 are 2 2 2 2 1 1 1 1). So the size of a lane's fetch goes by how many
of its partitions are behind.

A target broker has two lanes at least. A broker reads the next request of a connection only when
the last one is answered, so with one connection it never reads and appends at the same time: a
mirror got one of its processors, while the others idled a third.
"""

import logging
from dataclasses import field
from typing import Final
from zlib import crc32

import trio

from mirror.state.partition import MirroredPartition
from wire.messages.api_versions import ApiVersionsRequest
from wire.net.connection import Connection
from wire.values import frozen

_LOG = logging.getLogger(__name__)

NEAR_S: Final = 0.030
"""Up to this round trip one connection does it."""
LANE_S: Final = 0.010
MAX_LANES: Final = 8
LEAST_TO_TARGET: Final = 2
"""With one a fresh Apache Kafka took 308 358 390 MB/s of a mirror pinned to one core, with two 355
439 489; a warm one took the same of both. Processor time: 1.00 at 16 KiB plain, 1.04 lz4, 0.99 at
100 KiB."""
TRIES: Final = 4
"""The shortest of these is the way's; the others are a busy processor's."""
AGAIN_S: Final = 0.25
"""Between as many more where all of them were long: what was busy may have been this process, which
has just started. A near broker taken for a far one costs twice the memory, and 40 % more processor
time, until the flow starts again."""


@frozen(kw_only=False)
class Lane:
    """One of several connections to a broker."""

    number: int = 0
    count: int = 1
    behind: dict[int, int] = field(default_factory=dict)
    """Of all lanes to the broker, by number: how many partitions are behind."""

    def carries(self, partition: MirroredPartition) -> bool:
        """Whether the partition goes this way."""
        return self.count == 1 or lane_of(partition, self.count) == self.number

    def share(self, behind: int, whole_bytes: int, each_bytes: int) -> tuple[int, int]:
        """Return how many bytes to ask for at once, in all and of each partition.

        ``behind`` of this lane's partitions have more to be fetched than was; ``whole_bytes`` may
        be under way over all lanes and ``each_bytes`` of a partition. With the same for each lane,
        those of 12 partitions over 8 lanes that have a lane to themselves were done when the
        others were half through: from then on 250 MB/s of 450.
        """
        self.behind[self.number] = max(1, behind)
        of_all = sum(self.behind.get(number, 1) for number in range(self.count))
        most = whole_bytes * self.behind[self.number] // of_all
        return most, min(each_bytes, whole_bytes // of_all)


def lanes_to_broker(count: int) -> list[Lane]:
    """Return so many lanes to one broker."""
    behind: dict[int, int] = {}
    return [Lane(number, count, behind) for number in range(count)]


def lane_of(partition: MirroredPartition, count: int) -> int:
    """Return the partition's lane; a topic's partitions are spread evenly."""
    return (crc32(partition.topic.encode()) + partition.index) % count


def lanes_for(round_trip_s: float) -> int:
    """Return how many connections a round trip of this length wants."""
    if round_trip_s <= NEAR_S:
        return 1
    return min(MAX_LANES, 1 + int(round_trip_s / LANE_S))


async def count_lanes(connection: Connection) -> int:
    """Return how many connections the other end's distance wants, and log those of a far one.

    Raises NetworkFault.
    """
    round_trip_s = await measure_round_trip(connection)
    count = lanes_for(round_trip_s)
    if count > 1:
        told = "%s is %.0f ms away: %d connections, and more under way"
        _LOG.info(told, connection.name, round_trip_s * 1_000, count)
    return count


async def measure_round_trip(connection: Connection) -> float:
    """Return the seconds of the quickest of a few questions; raises NetworkFault."""
    quickest = float("inf")
    for pause_s in (0.0,) * TRIES + (AGAIN_S,) * TRIES:
        if pause_s and quickest <= NEAR_S:
            break
        await trio.sleep(pause_s)
        began = trio.current_time()
        await connection.request(ApiVersionsRequest(), version=0)
        quickest = min(quickest, trio.current_time() - began)
    return quickest
