"""Keys of map records by other names of their topics: as another site calls them. Pure.

A map has the names of its source. Whoever reads the map of the way back by the names of the way
there, or writes into it, has each key's topic called otherwise.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from offset_translation.binary import MalformedRecord
from offset_translation.map_records import (
    FlowBegunKey,
    MirrorProducerKey,
    WriterKey,
    decode_key,
    encode_key,
)

Renaming: TypeAlias = Callable[[str], str | None]
"""Gives a topic's other name, None for a topic that has none."""


def renamed(encoded_key: bytes | None, names: Renaming) -> bytes | None:
    """Return a key with its topic's other name; None for the key of a topic that has none.

    A key that names no topic, or is none, stays as it is.
    """
    try:
        key = decode_key(encoded_key or b"")
    except MalformedRecord:
        return encoded_key
    match key:
        case MirrorProducerKey() | WriterKey() | FlowBegunKey():
            return encoded_key
        case _:
            name = names(key.topic)
            return None if name is None else encode_key(replace(key, topic=name))
