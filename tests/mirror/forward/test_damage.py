"""Where a partition goes on behind a damaged batch."""

from hypothesis import given
from hypothesis import strategies as st

from mirror.forward.damage import behind_damage
from wire.record_batch import Record, build_batch

CRC_AT = 17


def batches(sizes: list[int], first: int = 0) -> list[bytearray]:
    made = []
    for size in sizes:
        records = [Record(place, 1, None, b"v" * 20) for place in range(size)]
        made.append(bytearray(build_batch(records, base_offset=first)))
        first += size
    return made


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=6)


@given(SIZES, st.data())
def test_it_is_where_the_next_whole_batch_begins_or_the_log_ends(
    sizes: list[int], data: st.DataObject
) -> None:
    log = batches(sizes, 100)
    broken = data.draw(st.integers(0, len(sizes) - 1))
    at = data.draw(st.integers(CRC_AT, len(log[broken]) - 1))
    if broken == len(sizes) - 1:
        at = len(log[broken]) - 1  # what the last one says of its end is needed
    log[broken][at] ^= 1
    end = 100 + sum(sizes)
    found = behind_damage(b"".join(log), 100 + sum(sizes[:broken]), end)
    assert found == 100 + sum(sizes[: broken + 1])


@given(SIZES, st.data())
def test_nothing_whole_is_ever_left_out(sizes: list[int], data: st.DataObject) -> None:
    log = batches(sizes)
    broken = data.draw(st.integers(0, len(sizes) - 1))
    for _ in range(data.draw(st.integers(1, 4))):
        log[broken][data.draw(st.integers(0, len(log[broken]) - 1))] ^= data.draw(
            st.integers(1, 255)
        )
    cut = data.draw(st.integers(0, 30))
    chunk = b"".join(log)
    start, behind = sum(sizes[:broken]), sum(sizes[: broken + 1])
    found = behind_damage(chunk[: len(chunk) - cut], start, sum(sizes))
    assert found in {None, behind}


def test_a_damaged_length_takes_no_whole_batch_along() -> None:
    log = batches([2, 2, 2])
    size = int.from_bytes(log[0][8:12]) + len(log[1])
    log[0][8:12] = size.to_bytes(4)
    assert behind_damage(b"".join(log), 0, 6) == 2


def test_where_nothing_follows_and_more_is_to_come_nothing_is_known() -> None:
    [one] = batches([3])
    one[-1] ^= 1
    assert behind_damage(one, 0, 9) is None
    assert behind_damage(one, 0, 3) == 3
