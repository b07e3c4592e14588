"""The writers of one flow, and the way from a fetched chunk to the one that sends it."""

import trio

from mirror.clusters.links import Links
from mirror.forward.flow_parts import ProduceParts
from mirror.forward.routing import Routed
from mirror.forward.target import TargetWriter
from mirror.state.partition import MirroredPartition


class TargetWriters:
    """A writer for each target broker that leads a partition, made once it is needed."""

    def __init__(self, parts: ProduceParts, links: Links) -> None:
        """Begin with none; ``run`` lets them work."""
        self._parts = parts
        self._links = links
        self._writers: dict[int, TargetWriter] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Let the writers send for ever."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for writer in self._writers.values():
                nursery.start_soon(writer.run)
            task_status.started()
            await trio.sleep_forever()

    def forward(self, partition: MirroredPartition, routed: Routed) -> None:
        """Hand routed batches to the writer of the partition's target leader.

        While the flow drains, a fetch that was under way may still bring some: they come again.
        """
        if not routed.forwards or not partition.is_flowing or not self._parts.gate.is_open:
            return
        partition.in_flight.enqueue(routed.forwards)
        node = partition.leaders.target
        writer = self._writers.get(node)
        if writer is None:
            writer = self._writers[node] = TargetWriter(node, self._parts, self._links)
            if self._nursery is not None:
                self._nursery.start_soon(writer.run)
        writer.put(partition)
