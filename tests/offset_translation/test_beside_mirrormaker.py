"""Our translation beside MirrorMaker 2's, on the same mirrored records and the same group lags.

MirrorMaker's side is written from the description of its OffsetSyncStore and OffsetSyncWriter
(KAFKA-12468 and what followed it): 64 syncs are kept for a partition, the further back the sparser:

    slot       0    1    2    3     4      5  ...
    sync       n                                   n: the newest
    distance   .    1    2    4     8     16  ...  in records, to within a factor

A position is translated by the newest sync that is not behind it; to the record behind that sync's
if it is further on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

import pytest

from offset_translation.offset_map import OffsetMap
from offset_translation.translation import translate

SLOTS: Final = 64
RECORDS: Final = 250_000
LOOK_EVERY: Final = 997
"""A prime: looks fall everywhere between two syncs."""


@dataclass(slots=True)
class SyncStore:
    """MirrorMaker's syncs of one partition: offsets that are equal on both sides here."""

    slots: list[int] = field(default_factory=list)

    def take(self, sync: int) -> None:
        """Put a sync in front; each slot whose sync is now too far back gets the best heir."""
        if not self.slots:
            self.slots = [sync] * SLOTS
            return
        before, heir, at = self.slots, sync, 0
        self.slots = slots = [sync, *before[1:]]
        for place in range(1, SLOTS):
            newer = slots[place - 1]
            while True:
                old = before[at]
                is_apart = _is_apart(newer, old, place - 1)
                is_last = place + 1 == SLOTS or _is_apart(old, slots[place + 1], place)
                fits = is_apart and is_last and _is_near(newer, old, place - 1, place)
                heir = old if fits else heir
                is_done_with = not is_apart or old == before[min(at + 1, SLOTS - 1)]
                at += fits or is_done_with
                if at >= place or not is_done_with:
                    break
            if _is_near(newer, slots[place], place - 1, place):
                return
            slots[place] = heir

    def translate(self, position: int) -> int:
        """Return where a group at this position goes on."""
        sync = next((one for one in self.slots if one <= position), self.slots[-1])
        return sync if sync == position else sync + 1


def _is_near(newer: int, older: int, i: int, j: int) -> bool:
    return newer == older or newer <= older + 2**j - 2**i


def _is_apart(newer: int, older: int, i: int) -> bool:
    return newer == older or newer >= older + 2 ** max(i - 2, 0)


def mirrored(lag_max: int) -> Iterator[tuple[int, SyncStore]]:
    """Mirror record by record; yield the log's end and the syncs, now and then.

    A sync is written for the first record, and when a translation would be off by `offset.lag.max`.
    """
    store, last = SyncStore(), -1
    for offset in range(RECORDS):
        if last < 0 or offset - (last + 1) >= lag_max:
            store.take(offset)
            last = offset
        if offset > RECORDS // 2 and offset % LOOK_EVERY == 0:
            yield offset + 1, store


def rereads(lags: Iterable[int], lag_max: int) -> dict[int, tuple[list[int], list[int]]]:
    """Return by lag the records read again behind MirrorMaker and behind us, at each look."""
    found: dict[int, tuple[list[int], list[int]]] = {lag: ([], []) for lag in lags}
    offset_map = OffsetMap.from_starts([(0, 0)], 0)
    for end, store in mirrored(lag_max):
        offset_map.advance(end)
        for lag, (theirs, ours) in found.items():
            position = end - lag
            translated = translate(offset_map, position)
            assert isinstance(translated, int), "it was mirrored"
            theirs.append(position - store.translate(position))
            ours.append(position - translated)
    return found


@pytest.mark.parametrize(
    ("lag_max", "table"),
    [
        (
            100,
            {0: (48, 99), 1_000: (567, 1_608), 10_000: (4_829, 12_908), 100_000: (50_216, 103_372)},
        ),
        (0, {0: (0, 0), 1_000: (493, 1_019), 10_000: (5_276, 15_682)}),
    ],
    ids=["its default", "its best setting"],
)
def test_where_mirrormaker_reads_again_by_its_table_we_read_nothing_again(
    lag_max: int, table: dict[int, tuple[int, int]]
) -> None:
    """The table: mean and maximum of what its users read again after a failover, by group lag."""
    for lag, (theirs, ours) in rereads(table, lag_max).items():
        mean, most = table[lag]
        assert set(ours) == {0}
        assert min(theirs) >= 0
        assert fmean(theirs) == pytest.approx(mean, rel=0.25)
        assert max(theirs) == pytest.approx(most, rel=0.1)


def test_its_worked_example_of_a_sparse_store() -> None:
    """Syncs at every offset: the store keeps the newest, and others ever farther apart."""
    store = SyncStore()
    for offset in range(1_000):
        store.take(offset)
    kept = sorted(set(store.slots), reverse=True)
    assert kept[:2] == [999, 998]
    assert kept[-1] == 0
    assert len(kept) <= 2 + (1_000).bit_length()
    for i, newer in enumerate(store.slots):
        for j in range(i + 1, SLOTS):
            assert _is_near(newer, store.slots[j], i, j)
            assert _is_apart(newer, store.slots[j], i)
