"""Whose a batch is, where records flow both ways and one map is lost."""

import pytest

from mirror.rebuild_map import is_copy
from offset_translation.offset_map import OffsetMap
from wire.record_batch import Record, assign_offsets, build_batch, parse_header

MIRROR, OTHER = 7, 8


def backward() -> OffsetMap:
    """The target's own records are 30..49; the source has them from 30 on."""
    offset_map = OffsetMap.from_starts([(30, 0)], 0)
    offset_map.begin_run(0, 30)
    offset_map.advance(50)
    return offset_map


@pytest.mark.parametrize(
    ("at", "producer_id", "is_transactional", "expected"),
    [
        (0, MIRROR, False, True),
        (29, OTHER, False, True),
        (30, MIRROR, False, False),
        (49, OTHER, False, False),
        (50, MIRROR, False, True),
        (50, OTHER, False, False),
        (0, MIRROR, True, False),
        (0, -1, False, False),
    ],
)
def test_what_the_other_direction_has_taken_is_the_targets_own(
    at: int, producer_id: int, is_transactional: bool, expected: bool
) -> None:
    batch = bytearray(
        build_batch(
            [Record(0, 1, None, b"v")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=is_transactional,
        )
    )
    assign_offsets(batch, at, 0)
    assert is_copy(parse_header(batch), backward(), {MIRROR}) is expected
