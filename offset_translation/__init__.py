"""Exact offset translation between a source log and its mirrored copy: no I/O, no clock.

For applications that keep offsets themselves: feed ``MapState`` the records of the map topic, tell
it the target's log ends, ask ``translate``. docs/positions.md has the whole of it.
"""

from offset_translation.both_ways import translate_both_ways
from offset_translation.map_records import MapState, map_topic_name
from offset_translation.offset_map import OffsetMap
from offset_translation.translation import (
    NotYet,
    Position,
    translate,
    translate_back,
    translate_clamped,
)

__all__ = [
    "MapState",
    "NotYet",
    "OffsetMap",
    "Position",
    "map_topic_name",
    "translate",
    "translate_back",
    "translate_both_ways",
    "translate_clamped",
]
