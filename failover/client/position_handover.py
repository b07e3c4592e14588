"""Members of a group tell each other through the witness how far they got, when a site is lost.

Commits of the last moments may not have reached the other site, and the first member to join there
is given the partitions of all. So every member writes down how far it got, and waits a moment for
the members that it knows of, before it joins: nothing that any living member had committed is read
again.

    <path>/groups/<group>/<member>      Handover, ephemeral; the group's name is percent-encoded
"""

import json
from collections.abc import Iterable, Mapping
from typing import Self

from failover.client.carried import Carried
from runtime.untrusted_json import LARGEST_INT32, read_json, text, whole_number
from wire.topic_partition import TopicPartition
from wire.values import frozen


class HandoverGarbled(ValueError):
    """A member's node holds something else than its JSON."""


@frozen
class Handover:
    """The progress of one member on `site` when the site of `epoch` became active."""

    epoch: int
    carried: Carried

    def encode(self) -> bytes:
        """Return the JSON of the member's node."""
        positions = [
            [*partition, offset] for partition, offset in sorted(self.carried.positions.items())
        ]
        node = {"epoch": self.epoch, "site": self.carried.site, "positions": positions}
        return json.dumps(node, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the value of a member's node; raises HandoverGarbled."""
        try:
            node = read_json(data)
            positions = {
                TopicPartition(text(topic), whole_number(partition, LARGEST_INT32)): whole_number(
                    offset
                )
                for topic, partition, offset in node["positions"]
            }
            carried = Carried(site=text(node["site"]), positions=positions)
            return cls(epoch=whole_number(node["epoch"]), carried=carried)
        except (ValueError, KeyError, TypeError) as error:
            raise HandoverGarbled(f"witness: not a handover: {data[:200]!r}") from error


def is_complete(handovers: Iterable[Handover], epoch: int) -> bool:
    """Tell whether every member has told what it carries to the site of this epoch."""
    return all(handover.epoch >= epoch for handover in handovers)


def merge(own: Carried, handovers: Iterable[Handover], epoch: int) -> Carried:
    """Return the furthest position of any member, in the offsets of the site that was left."""
    positions: dict[TopicPartition, int] = dict(own.positions)
    for handover in handovers:
        if handover.epoch == epoch and handover.carried.site == own.site:
            _advance(positions, handover.carried.positions)
    return Carried(site=own.site, positions=positions)


def _advance(positions: dict[TopicPartition, int], others: Mapping[TopicPartition, int]) -> None:
    for partition, offset in others.items():
        positions[partition] = max(offset, positions.get(partition, offset))
