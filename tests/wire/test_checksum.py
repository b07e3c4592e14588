from crc32c import crc32c as referee
from hypothesis import given
from hypothesis import strategies as st

from wire.record_batch.checksum import SHORT_BYTES, crc32c, crc32c_with_head


def test_the_examples_of_rfc_3720() -> None:
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(bytes(reversed(range(32)))) == 0x113FDB5C


@given(st.binary(max_size=20_000), st.integers(0, 20_000), st.integers(0, 7))
def test_a_checksum_goes_on_from_another(data: bytes, cut: int, skipped: int) -> None:
    view = memoryview(data)[skipped:]
    assert crc32c(view[cut:], crc32c(view[:cut])) == crc32c(view) == referee(view)


@given(
    heads=st.integers(0, 64).flatmap(
        lambda size: st.tuples(*[st.binary(min_size=size, max_size=size)] * 2)
    ),
    seed=st.binary(min_size=1, max_size=64),
    size=st.integers(0, 300_000) | st.integers(SHORT_BYTES - 2, SHORT_BYTES + 2),
)
def test_a_head_is_exchanged(heads: tuple[bytes, bytes], seed: bytes, size: int) -> None:
    old, new = heads
    rest = (seed * (size // len(seed) + 1))[:size]
    known = referee(old + rest)
    found = crc32c_with_head(new, memoryview(rest), instead_of=old, crc=known)
    assert found == referee(new + rest)


@given(st.integers(SHORT_BYTES, 200_000), st.integers(1, 2**32 - 1))
def test_what_was_wrong_before_a_head_is_exchanged_is_wrong_behind(size: int, error: int) -> None:
    old, new, rest = b"before", b"behind", bytes(size)
    wrong = referee(old + rest) ^ error
    found = crc32c_with_head(new, memoryview(rest), instead_of=old, crc=wrong)
    assert found ^ referee(new + rest) == error
