"""`mirror check`: the distance of brokers, and whether far ones allow enough bytes under way.

On a TCP connection no more is under way than the buffers of its two sockets hold, and a round trip
later as much again. Kafka gives them 100 KiB (`socket.send.buffer.bytes`, which counts for what is
read from a broker, `socket.receive.buffer.bytes` for what is written to it), of which Linux makes
twice as much to send; with -1 the system lets them grow. The default made 145 MB/s of a connection
to a process nearby that acknowledges at once; over 80 ms it would make 2.5.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from mirror.forward.lanes import NEAR_S, lanes_for, measure_round_trip
from wire.errors import ErrorCode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net.cluster import Cluster
from wire.values import frozen

BROKER_RESOURCE: Final = 4
SEND: Final = "socket.send.buffer.bytes"
RECEIVE: Final = "socket.receive.buffer.bytes"
UNDER_WAY: Final[Mapping[str, int]] = {SEND: 2, RECEIVE: 1}
"""The multiple of a buffer's size that may be under way."""
ENOUGH_MB_S: Final = 100.0
MEGABYTE: Final = 1_000_000


@frozen
class Distance:
    """One broker, as seen from here."""

    node: int
    round_trip_s: float
    buffers: Mapping[str, int]
    """Bytes by setting, -1 where the system decides; without those that are not told."""

    def most_mb_s(self, setting: str) -> float | None:
        """Return what a buffer lets through over all connections; None: it is not the limit."""
        size = self.buffers.get(setting, -1)
        if size < 0 or self.round_trip_s <= NEAR_S:
            return None
        under_way = UNDER_WAY[setting] * size * lanes_for(self.round_trip_s)
        return under_way / self.round_trip_s / MEGABYTE


def told_distances(cluster: str, distances: Iterable[Distance], setting: str) -> list[str]:
    """Return a line for each broker that is far, and a warning where a buffer is too small."""
    lines = []
    for each in distances:
        if each.round_trip_s <= NEAR_S:
            continue
        away = f"{cluster}: broker {each.node} is {each.round_trip_s * 1_000:.0f} ms away"
        most = each.most_mb_s(setting)
        if most is None or most >= ENOUGH_MB_S:
            lines.append(away)
        else:
            lines.append(
                f"warning: {away}: its {setting}={each.buffers[setting]} lets about {most:.0f} MB/s"
                f" through; with -1 the system decides"
            )
    return lines


async def measure_distances(cluster: Cluster, nodes: Iterable[int]) -> list[Distance]:
    """Ask each broker; raises NetworkFault if one does not answer."""
    found = []
    for node in sorted(nodes):
        round_trip_s = await measure_round_trip(await cluster.connection(node))
        buffers = await _buffers(cluster, node) if round_trip_s > NEAR_S else {}
        found.append(Distance(node=node, round_trip_s=round_trip_s, buffers=buffers))
    return found


async def _buffers(cluster: Cluster, node: int) -> dict[str, int]:
    """Return the broker's settings; those it would not say are left out."""
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(node), configuration_keys=tuple(UNDER_WAY)
    )
    answer = await cluster.request(DescribeConfigsRequest(resources=(resource,)), node=node)
    return {
        config.name: int(config.value)
        for result in answer.results
        if result.error_code == ErrorCode.NONE
        for config in result.configs
        if config.name in UNDER_WAY and config.value is not None
    }
