"""The subscriptions that consumers tell each other through the group: their topics.

The coordinator passes this metadata on without reading it, except for the topics: offsets of a
topic that members read neither expire nor may be deleted.
"""

from collections.abc import Iterable
from typing import Final

from wire.primitives import MalformedMessage, Reader, read_int16, read_int32, read_string

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_MIN_TOPIC_BYTES: Final = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics in these subscriptions, None if one of them cannot be read.

    Every version of the format begins with the fields of version 0, so that is what is read.
    """
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(_topics(subscription))
    except MalformedMessage:
        # The metadata is the members' own affair; not knowing the topics only means keeping all.
        return None
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str]:
    reader = Reader(subscription)
    reader.take(read_int16)
    count = reader.take(read_int32)
    if count > reader.remaining // _MIN_TOPIC_BYTES:
        raise MalformedMessage(f"{count} topics cannot be", position=reader.position)
    return [reader.take(read_string) for _ in range(count)]
