from crc32c import crc32c as referee
from hypothesis import given
from hypothesis import strategies as st

from wire.record_batch.checksum import crc32c


def test_the_examples_of_rfc_3720() -> None:
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(bytes(reversed(range(32)))) == 0x113FDB5C


@given(st.binary(max_size=20_000), st.integers(0, 20_000), st.integers(0, 7))
def test_a_checksum_goes_on_from_another(data: bytes, cut: int, skipped: int) -> None:
    view = memoryview(data)[skipped:]
    assert crc32c(view[cut:], crc32c(view[:cut])) == crc32c(view) == referee(view)
