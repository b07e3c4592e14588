"""The positions that a consumer takes along from site to site. Pure."""

from collections.abc import Mapping
from dataclasses import field

from offset_translation.offset_map import OffsetMap
from offset_translation.translation import translate_clamped
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class Carried:
    """Positions (the next record not yet read) in the offsets of the site they were gained on."""

    site: str
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)


def starts_on(
    site: str, carried: Carried, maps: Mapping[TopicPartition, OffsetMap]
) -> dict[TopicPartition, int]:
    """Return the offsets on `site` at which the carried positions lie.

    A position beyond the mirrored end becomes the mirrored end: the records between were lost with
    the old site. Partitions without a map are left out, and so are those that both sites have
    written to: there the group's own position counts, which the mirror has translated both ways.
    """
    if site == carried.site:
        return dict(carried.positions)
    starts: dict[TopicPartition, int] = {}
    for partition, position in carried.positions.items():
        offset_map = maps.get(partition)
        if offset_map is None or offset_map.runs:
            continue
        found = translate_clamped(offset_map, position)
        if found is not None:
            starts[partition] = found.target_offset
    return starts


def start_of(committed: int, start: int | None) -> int | None:
    """Return where to begin: the further of the two; None leaves it to the group's own position.

    `committed` is negative when the group has no position there.
    """
    if start is None or committed >= start:
        return None
    return start
