"""What version 0.4.0 left in the witness and in its internal topics is read by this one."""

import json
from pathlib import Path
from typing import Any, Final

from failover.journal.journal import decode_journal
from failover.journal.steps import PromotionState
from failover.view.promotion_report import report_lines
from failover.view.report import summary
from offset_translation import checkpoint
from offset_translation.map_state import MapState
from runtime.coordination.witness import ActiveSite, WitnessPaths
from wire.topic_partition import TopicPartition

MADE: Final[Any] = json.loads((Path(__file__).parent / "golden" / "formats_0.4.0.json").read_text())
PATHS: Final = WitnessPaths(root="/kafka-dr")
JOURNAL: Final = decode_journal(MADE["witness"][f"{PATHS.journals}/0000000001"].encode())


def _records(topic: str) -> list[tuple[bytes, bytes | None]]:
    return [
        (bytes.fromhex(one["key"]), None if one["value"] is None else bytes.fromhex(one["value"]))
        for one in MADE["topics"][topic]
    ]


def test_a_map_of_before_is_read_whole() -> None:
    state = MapState()
    for key, value in _records("dc2/dc1.offset-map.internal"):
        state.replay(key, value)
    assert not state.rejected
    moved = {TopicPartition(one.topic, one.partition): one for one in JOURNAL.partitions}
    state.advance({partition: one.target_end for partition, one in moved.items()})
    assert {
        one: (at.mirrored_source_end, at.mirrored_target_end) for one, at in state.maps.items()
    } == {one: (at.mirrored_source_end, at.target_end) for one, at in moved.items()}


def test_checkpoints_of_before_are_read() -> None:
    records = _records("dc2/dc1.checkpoints.internal")
    read = [checkpoint.decode(key, value) for key, value in records if value is not None]
    assert {one.group for one in read} == {"departure-board"}
    assert all(one.upstream_offset == one.downstream_offset for one in read)


def test_the_active_site_of_before_is_read() -> None:
    active = ActiveSite.decode(MADE["witness"][PATHS.active].encode())
    assert active == ActiveSite(site="dc2", epoch=1)


def test_a_promotion_of_before_is_told_with_what_its_journal_has() -> None:
    assert JOURNAL.state is PromotionState.DONE
    told = "\n".join([*report_lines(JOURNAL, None), *summary(JOURNAL, None)])
    assert "promotion of dc2 from dc1, planned, epoch 1" in told
    assert "lost     not known" in told, "its journal does not say"
    assert "group    departure-board: flights-0@" in told
