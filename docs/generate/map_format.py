"""The page about the records of internal topics: the encoders' own words, and what they write."""

import inspect
from collections.abc import Iterator
from textwrap import dedent
from typing import Final
from uuid import UUID

from docs.generate.markdown import code, literal, page, section, table
from offset_translation import checkpoint, heartbeat, map_records, offset_sync
from offset_translation.checkpoint import Checkpoint, checkpoint_topic_name
from offset_translation.map_records import Begun, MirrorProducer, Reached, map_topic_name
from offset_translation.offset_sync import OffsetSync
from offset_translation.runs import Place
from runtime.coordination.map_writers import Registration, number_record

INTRODUCTION: Final = f"""
The mirror keeps what it has to know beside the mirrored records, in topics on the target. The
offset map of what came from dc1 is the topic `{map_topic_name("dc1")}`, and the positions of
dc1's groups are in `{checkpoint_topic_name("dc1")}`. Each has one partition and is compacted.
[Applications that store offsets themselves](../clients/own-offsets.md) read the map.
"""

RECORDS: Final = (
    ("piece start", map_records.piece_start("orders", 3, source_start=12, place=Place(10))),
    ("seal", map_records.seal("orders", 3, source_end=52, target_end=50)),
    (
        "mirror producer",
        map_records.mirror_producer(MirrorProducer(producer_id=4711, producer_epoch=2)),
    ),
    ("source topic", map_records.source_topic("orders", UUID(int=0x1234))),
    ("run start", map_records.run_start("orders", 3, place=Place(50), target_start=57)),
    ("reached", map_records.reached("orders", 3, Reached(place=Place(60), target_end=67))),
    ("trimmed", map_records.trimmed("orders", 3, Place(20))),
    ("target topic", map_records.target_topic("orders", 3, UUID(int=0x5678))),
    ("set aside", map_records.set_aside("orders", 3, source_start=52, source_end=57)),
    ("writer", number_record(Registration("12" * 16, 7))),
    ("flow begun", map_records.flow_begun("12" * 16, None, 1_769_846_400_000)),
    ("start due", map_records.start_due("orders", 3, UUID(int=0x1234))),
    (
        "begun",
        map_records.begun(
            "orders",
            3,
            Begun(source_start=52, target_start=0, topic_id=UUID(int=0x1234), start="latest"),
        ),
    ),
)
"""One of each kind, of orders-3."""

CHECKPOINT: Final = Checkpoint("billing", "orders", 3, upstream_offset=12, downstream_offset=10)
SYNC: Final = OffsetSync(topic="orders", partition=3, upstream_offset=12, downstream_offset=10)


def map_format_page() -> str:
    """Return the page."""
    return page(
        "The offset map and other internal topics",
        INTRODUCTION,
        section("The offset map", _prose(map_records)),
        section("A record of each kind", table(("kind", "key", "value"), _examples())),
        section("Checkpoints", _prose(checkpoint), _example(checkpoint.encode(CHECKPOINT))),
        section("Offset syncs", _prose(offset_sync), _example(offset_sync.encode(SYNC))),
        section("Heartbeats", _prose(heartbeat)),
    )


def _examples() -> Iterator[tuple[str, str, str]]:
    for kind, (key, value) in RECORDS:
        yield kind, literal(key.hex(" ", -2)), literal(value.hex(" ", -2))


def _example(record: tuple[bytes, bytes]) -> str:
    key, value = record
    return code(f"key    {key.hex(' ', -2)}\nvalue  {value.hex(' ', -2)}", "text")


def _prose(module: object) -> str:
    """Return a module's docstring as Markdown: its indented blocks become code."""
    blocks = (inspect.getdoc(module) or "").replace("``", "`").split("\n\n")
    return "\n\n".join(
        code(dedent(block), "text") if block.startswith("    ") else block for block in blocks
    )
