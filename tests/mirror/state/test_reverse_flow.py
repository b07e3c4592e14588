"""Whose batches they are is known before anything of them is sent on."""

from mirror.state.reverse_flow import before_unknown
from wire.record_batch import Record, build_batch


def batch(writer: int, offset: int) -> bytes:
    records = [Record(offset, 1_000, None, b"value")]
    return build_batch(
        records,
        producer_id=writer,
        producer_epoch=-1 if writer < 0 else 0,
        base_sequence=-1 if writer < 0 else 0,
    )


def test_a_chunk_is_cut_before_the_first_batch_of_a_stranger() -> None:
    known = batch(-1, 0) + batch(5, 1) + batch(7, 2)
    chunk = memoryview(known + batch(9, 3) + batch(5, 4))
    assert before_unknown(chunk, {-1, 5}, frozenset({7})) == (memoryview(known), 9)
    assert before_unknown(chunk, {-1, 5, 9}, frozenset({7})) == (chunk, None)
    assert before_unknown(chunk, frozenset()) == (memoryview(b""), -1)


def test_what_is_cut_off_or_damaged_is_left_to_routing() -> None:
    whole = batch(5, 0)
    for chunk in (whole + whole[:70], whole[:30], whole[:8] + b"\xff" * 80):
        assert before_unknown(memoryview(chunk), {5, -1}).records == memoryview(chunk)
