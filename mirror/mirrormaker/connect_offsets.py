"""The position of MirrorMaker 2 by its Connect worker's offsets topic. Pure.

Topic ``mm2-offsets.<source>.internal`` on the target, compacted. Key and value are JSON:
``["MirrorSourceConnector",{"cluster":"dc1","partition":0,"topic":"orders"}]`` and
``{"offset":41}``, the source offset of the last record that is known to be mirrored. Other
connectors keep theirs there too, under other keys.
"""

import json
from collections.abc import Iterable

from wire.record_batch import Record
from wire.topic_partition import TopicPartition


def offsets_topic(source: str) -> str:
    """Return the topic's name, which no separator changes."""
    return f"mm2-offsets.{source}.internal"


def last_mirrored(records: Iterable[Record], source: str) -> dict[TopicPartition, int]:
    """Return the last mirrored source offset of each partition; ``records`` in their order."""
    found: dict[TopicPartition, int] = {}
    for record in records:
        topic_partition = _topic_partition(record.key, source)
        if topic_partition is None:
            continue
        offset = _field(record.value, "offset")
        if isinstance(offset, int) and offset >= 0:
            found[topic_partition] = offset
        else:
            found.pop(topic_partition, None)
    return found


def _topic_partition(key: bytes | None, source: str) -> TopicPartition | None:
    parts = _parsed(key)
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[1], dict):
        return None
    topic, partition = parts[1].get("topic"), parts[1].get("partition")
    if parts[1].get("cluster") != source:
        return None
    if not isinstance(topic, str) or not isinstance(partition, int):
        return None
    return TopicPartition(topic, partition)


def _field(value: bytes | None, name: str) -> object:
    parsed = _parsed(value)
    return parsed.get(name) if isinstance(parsed, dict) else None


def _parsed(text: bytes | None) -> object:
    """Return what JSON says, None for what is none: other connectors' converters may differ."""
    try:
        parsed: object = json.loads(text or b"null")
    except (ValueError, RecursionError):
        return None
    return parsed
