"""Replicas that differ are found, wherever; one that only lags is not accused."""

from pathlib import Path

from tests.drill.checker import Offence
from tests.drill.replicas import Held, compare, diverged, held_in
from wire.record_batch import Record, build_batch

BATCHES = [Held(offset, offset + 4, 0, 1_000 + offset) for offset in range(0, 50, 5)]


def test_replicas_that_lag_are_no_offence() -> None:
    assert not list(diverged("t-0", {"a": BATCHES, "b": BATCHES[:3], "c": []}))


def test_the_first_difference_is_named() -> None:
    other = [*BATCHES[:4], BATCHES[4]._replace(crc=7), *BATCHES[5:]]
    assert list(diverged("t-0", {"a": BATCHES, "b": BATCHES, "c": other})) == [
        Offence("DIVERGED", "t-0", 20, "a holds (20, 24, 0, 1020), c (20, 24, 0, 7)")
    ]
    newer = [*BATCHES[:4], BATCHES[4]._replace(leader_epoch=1)]
    assert [one.offset for one in diverged("t-0", {"a": BATCHES, "b": newer})] == [20]


def test_folders_are_read_over_all_their_segments(tmp_path: Path) -> None:
    record = Record(offset=0, timestamp_ms=1_000, key=None, value=b"v", headers=())
    for broker, values in (("a", (0, 1, 2)), ("b", (0, 1))):
        folder = tmp_path / broker / "logs" / "t-0"
        folder.mkdir(parents=True)
        for offset in values:
            batch = build_batch([record], base_offset=offset)
            (folder / f"{offset:020}.log").write_bytes(batch)
    assert [held.base_offset for held in held_in(tmp_path / "a" / "logs" / "t-0")] == [0, 1, 2]
    assert compare(tmp_path, ["a", "b"], frozenset({"t-0"})) == []
    (tmp_path / "b" / "logs" / "t-0" / f"{1:020}.log").write_bytes(
        build_batch([record._replace(value=b"w")], base_offset=1)
    )
    assert [one.offset for one in compare(tmp_path, ["a", "b"], frozenset({"t-0"}))] == [1]
