"""Leader epochs against a table of the epoch of every offset."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.leader_epochs import LeaderEpochs
from tests.broker.log.logs import log_folder

EPOCHS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), max_size=8)


def made(path: Path, steps: list[tuple[int, int]]) -> tuple[LeaderEpochs, list[int]]:
    """Write `count` records in each epoch; return the cache and the epoch of every offset."""
    epochs, written = LeaderEpochs(path), list[int]()
    epoch = -1
    for more, count in steps:
        epoch += more
        epochs.assign(epoch, len(written))
        written += [epoch] * count
    return epochs, written


def epoch_at(epochs: LeaderEpochs, offset: int) -> int:
    """Return the epoch of a record by the entries."""
    return [epoch for epoch, start in epochs.entries if start <= offset][-1]


@settings(deadline=None, max_examples=50)
@given(steps=EPOCHS, cut=st.integers(0, 40), start=st.integers(0, 40))
def test_epochs_follow_the_records(steps: list[tuple[int, int]], cut: int, start: int) -> None:
    with log_folder() as folder:
        epochs, written = made(folder / "e", steps)
        for offset, epoch in enumerate(written):
            assert epoch_at(epochs, offset) == epoch
        epochs.truncate_from(cut)
        del written[cut:]
        start = min(start, len(written))
        epochs.truncate_before(start)
        again = LeaderEpochs(folder / "e")
        assert again.entries == epochs.entries
        for offset in range(start, len(written)):
            assert epoch_at(again, offset) == written[offset]
        for epoch in set(written[start:]):
            end = max(offset for offset, one in enumerate(written) if one == epoch) + 1
            assert again.end_offset(epoch, len(written)) == (epoch, end)


def test_kafkas_answers_to_epochs_that_are_not_there(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path / "e")
    assert epochs.end_offset(0, 9) == (-1, -1)
    for epoch, start in ((2, 10), (4, 20), (7, 30)):
        epochs.assign(epoch, start)
    assert epochs.end_offset(-1, 99) == (-1, -1)
    assert epochs.end_offset(1, 99) == (1, 10)
    assert epochs.end_offset(3, 99) == (2, 20)
    assert epochs.end_offset(4, 99) == (4, 30)
    assert epochs.end_offset(7, 99) == (7, 99)
    assert epochs.end_offset(8, 99) == (-1, -1)


def test_an_epoch_without_records_gives_way_to_the_next(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path / "e")
    epochs.assign(0, 0)
    epochs.assign(1, 5)
    epochs.assign(2, 5)
    epochs.assign(1, 9)
    assert epochs.entries == ((0, 0), (2, 5))
    assert (tmp_path / "e").read_text() == "0\n2\n0 0\n2 5\n"
