"""What is committed for a group on the target; each rule by name."""

import pytest

from offset_translation.group_positions import GroupPosition, Leave, decide_commit
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import Position

MIRRORED = OffsetMap.from_starts([(100, 0), (160, 50)], 80)
"""Source 100..149 and 160..189 lie at target 0..79."""


def exact(source_offset: int, target_offset: int) -> Position:
    return Position(source_offset=source_offset, target_offset=target_offset, is_exact=True)


def position(
    source: int, *, applied: int | None = None, target: int | None = None
) -> GroupPosition:
    return GroupPosition(source_offset=source, applied_source_offset=applied, target_offset=target)


def test_an_idle_group_without_a_position_gets_one() -> None:
    assert decide_commit(MIRRORED, position(170)) == exact(170, 60)


def test_a_null_position_is_overwritten() -> None:
    assert decide_commit(MIRRORED, position(170, target=-1)) == exact(170, 60)


def test_an_idle_group_moves_forward() -> None:
    seen = position(170, applied=110, target=10)
    assert decide_commit(MIRRORED, seen) == exact(170, 60)


def test_a_group_that_ran_ahead_on_the_target_is_not_pulled_back() -> None:
    seen = position(170, applied=165, target=70)
    assert decide_commit(MIRRORED, seen) is Leave.TARGET_IS_AHEAD


def test_a_group_of_unknown_history_is_not_pulled_back() -> None:
    assert decide_commit(MIRRORED, position(170, target=70)) is Leave.TARGET_IS_AHEAD


def test_a_group_that_was_rewound_on_the_source_is_rewound() -> None:
    seen = position(110, applied=170, target=60)
    assert decide_commit(MIRRORED, seen) == exact(110, 10)


@pytest.mark.parametrize("source_offset", [-1, 40])
def test_a_group_whose_position_the_source_has_deleted_is_not_pulled_back_again_and_again(
    source_offset: int,
) -> None:
    """It goes on at the target by itself, from the oldest record that there was."""
    oldest = decide_commit(MIRRORED, position(source_offset))
    assert oldest == Position(source_offset=100, target_offset=0, is_exact=False)
    seen = position(source_offset, applied=100, target=70)
    assert decide_commit(MIRRORED, seen) is Leave.TARGET_IS_AHEAD


def test_a_group_that_is_rewound_to_what_the_source_has_deleted_is_rewound_once() -> None:
    seen = position(40, applied=170, target=60)
    oldest = Position(source_offset=100, target_offset=0, is_exact=False)
    assert decide_commit(MIRRORED, seen) == oldest


@pytest.mark.parametrize("lag", [0.5, 5.5, 50.5])
@pytest.mark.parametrize("reset_to", [0, 1, 700, 1000, 1999])
def test_a_reset_where_both_sites_are_written_to_is_not_carried_to_and_fro(
    reset_to: int, lag: float
) -> None:
    """Each site's records come to the other so many records later; the group has read them all."""
    dc1, dc2 = (interleaved(1000, lag, first) for first in ("a", "b"))
    forth, back = map_between(dc1, dc2, "a"), map_between(dc2, dc1, "b")
    positions = {"dc1": len(dc1), "dc2": reset_to}
    applied = {"dc1": len(dc1), "dc2": len(dc2)}
    for _ in range(10):
        for source, target, there, here in (
            ("dc2", "dc1", back, forth),
            ("dc1", "dc2", forth, back),
        ):
            seen = GroupPosition(positions[source], applied[source], positions[target])
            chosen = decide_commit(there, seen, backward=here)
            if isinstance(chosen, Position):
                positions[target], applied[source] = chosen.target_offset, chosen.source_offset
    assert positions["dc2"] == reset_to
    assert set(dc2[:reset_to]) >= set(dc1[: positions["dc1"]]), "nothing is skipped at dc1"


def interleaved(count: int, lag: float, first: str) -> list[tuple[str, int]]:
    """Return a log of as many records of either site, those of the other one late."""
    other = "b" if first == "a" else "a"
    found = [(float(at), first, at) for at in range(count)]
    found += [(at + lag, other, at) for at in range(count)]
    return [(site, at) for _, site, at in sorted(found)]


def map_between(
    source: list[tuple[str, int]], target: list[tuple[str, int]], site: str
) -> OffsetMap:
    """Return the map of what one site's records became in the other's log."""
    lies = {record: offset for offset, record in enumerate(target)}
    found, place, hole, shift = OffsetMap(), 0, None, 0
    for offset, record in enumerate(source):
        if record[0] == site:
            if offset - place != hole:
                found.announce(offset, Place(place))
                hole = offset - place
            if lies[record] - place != shift:
                found.begin_run(Place(place), lies[record])
                shift = lies[record] - place
            place += 1
    found.advance(len(target))
    found.reach(Place(place))
    return found


def test_nothing_is_committed_twice() -> None:
    seen = position(170, applied=170, target=60)
    assert decide_commit(MIRRORED, seen) is Leave.ALREADY_THERE


def test_a_position_beyond_the_data_stops_at_the_data() -> None:
    assert decide_commit(MIRRORED, position(500)) == Position(
        source_offset=190, target_offset=80, is_exact=False
    )


def test_a_position_that_waits_beyond_the_data_is_no_rewind() -> None:
    seen = position(400, applied=190, target=80)
    assert decide_commit(MIRRORED, seen) is Leave.ALREADY_THERE


def test_an_empty_partition_is_zero() -> None:
    empty = OffsetMap.from_starts([(0, 0)], 0)
    assert decide_commit(empty, position(0)) == exact(0, 0)


def test_nothing_is_committed_for_a_partition_that_is_not_mirrored() -> None:
    assert decide_commit(OffsetMap(), position(5)) is Leave.NOTHING_MIRRORED
