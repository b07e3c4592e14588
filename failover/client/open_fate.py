"""Find out, on the new site, which records of open fate had reached the old one."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from confluent_kafka import Message

from failover.client.ledger import Content, Pending, find_in_order
from failover.client.site_reader import SiteReader
from offset_translation.translation import translate_clamped

Place: TypeAlias = tuple[str, int]


def find_arrived(
    reader: SiteReader,
    source: str,
    sent: Mapping[Place, Sequence[Pending]],
    acknowledged: Mapping[Place, int],
) -> list[tuple[Pending, Message]]:
    """Return the records that were mirrored from `source`, each with its message over here.

    `acknowledged` holds per partition the last offset on the source that was acknowledged to us.
    Raises SiteUnreadable.
    """
    maps = reader.offset_maps(source, sent.keys())
    arrived: list[tuple[Pending, Message]] = []
    for place, pendings in sent.items():
        offset_map = maps.get(place)
        end = None if offset_map is None else offset_map.mirrored_target_end
        if offset_map is None or end is None:
            continue  # nothing of this partition was ever mirrored
        last = acknowledged.get(place)
        start = None if last is None else translate_clamped(offset_map, last + 1)
        arrived += _find(
            reader, place, pendings, None if start is None else start.target_offset, end
        )
    return arrived


def find_there(
    reader: SiteReader,
    sent: Mapping[Place, Sequence[Pending]],
    acknowledged: Mapping[Place, int],
) -> list[tuple[Pending, Message]]:
    """Return the records that are on the site they were sent to, which is the reader's.

    For who could not go on at another one before this one was active again. Raises SiteUnreadable.
    """
    there: list[tuple[Pending, Message]] = []
    for place, pendings in sent.items():
        last = acknowledged.get(place)
        start = None if last is None else last + 1
        there += _find(reader, place, pendings, start, reader.end(place))
    return there


def _find(
    reader: SiteReader, place: Place, pendings: Sequence[Pending], start: int | None, end: int
) -> list[tuple[Pending, Message]]:
    """Return the records that lie in a part of a log.

    Before `start`, behind what was acknowledged last, none of them can be; without it, before the
    first record in the log that is as old as the oldest of them.
    """
    if start is None:
        start = reader.offset_at(place, min(pending.content.timestamp_ms for pending in pendings))
    tail = ((message, _content(message)) for message in reader.read(place, start, end))
    found = find_in_order([pending.content for pending in pendings], tail)
    return list(zip(pendings, found, strict=False))


def _content(message: Message) -> Content:
    headers = message.headers()
    return Content(
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        timestamp_ms=message.timestamp()[1],
        headers=tuple((name, _bytes(value)) for name, value in headers or ()),
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
