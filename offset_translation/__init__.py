"""Exact offset translation between a source log and its mirrored copy: no I/O, no clock.

For applications that keep offsets themselves: feed ``MapState`` the records of the map topic, tell
it the target's log ends, ask ``translate``. docs/clients/own-offsets.md has the whole of it.

    >>> from offset_translation.map_records import piece_start
    >>> topic = [
    ...     piece_start("orders", 0, source_start=0, place=0),
    ...     piece_start("orders", 0, source_start=12, place=10),
    ... ]
    >>> state = MapState()
    >>> for key, value in topic:
    ...     state.replay(key, value)
    >>> state.advance({("orders", 0): 50})
    >>> [translate(state.maps["orders", 0], at) for at in (3, 11, 12, 52)]
    [3, 10, 10, 50]
"""

from offset_translation.both_ways import Cost, cost_of_going_on, translate_both_ways
from offset_translation.map_records import map_topic_name
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import (
    NotYet,
    Position,
    translate,
    translate_back,
    translate_clamped,
)

__all__ = [
    "Cost",
    "MapState",
    "NotYet",
    "OffsetMap",
    "Place",
    "Position",
    "cost_of_going_on",
    "map_topic_name",
    "translate",
    "translate_back",
    "translate_both_ways",
    "translate_clamped",
]
