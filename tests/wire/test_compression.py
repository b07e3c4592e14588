"""The codecs, against Arrow's independent ones, and their memory against a limit."""

import gzip
import importlib
import resource
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.compression import Compression, DecompressionFailed, compress, decompress

pa: Any = importlib.import_module("pyarrow")  # it has no type information
CODECS = list(Compression)[1:]
LIMIT = 1 << 20
data = st.binary(max_size=3_000) | st.builds(
    lambda piece, times: piece * times, st.binary(min_size=1, max_size=40), st.integers(0, 5_000)
)


@given(data, st.sampled_from(Compression))
def test_what_was_compressed_comes_back(plain: bytes, codec: Compression) -> None:
    assert decompress(codec, compress(codec, plain), limit_bytes=LIMIT) == plain


@given(data)
def test_another_library_reads_what_we_write(plain: bytes) -> None:
    assert gzip.decompress(compress(Compression.GZIP, plain)) == plain
    for codec, name in ((Compression.LZ4, "lz4"), (Compression.ZSTD, "zstd")):
        packed = compress(codec, plain)
        assert pa.decompress(packed, len(plain), codec=name, asbytes=True) == plain


@given(data)
def test_we_read_what_another_library_writes(plain: bytes) -> None:
    for codec, name in (
        (Compression.GZIP, "gzip"),
        (Compression.SNAPPY, "snappy"),
        (Compression.LZ4, "lz4"),
        (Compression.ZSTD, "zstd"),
    ):
        packed = pa.compress(plain, codec=name, asbytes=True)
        assert decompress(codec, packed, limit_bytes=LIMIT) == plain


def test_snappy_is_framed_as_xerial_does() -> None:
    packed = compress(Compression.SNAPPY, b"a" * 40_000)
    assert packed[:16] == bytes.fromhex("82534e41505059000000000100000001")
    first = int.from_bytes(packed[16:20])
    block = pa.decompress(packed[20 : 20 + first], 32_768, codec="snappy", asbytes=True)
    assert block == b"a" * 32_768


def test_xerial_streams_written_one_after_the_other_are_one() -> None:
    packed = compress(Compression.SNAPPY, b"one, ") + compress(Compression.SNAPPY, b"two")
    assert decompress(Compression.SNAPPY, packed, limit_bytes=LIMIT) == b"one, two"


def test_gzip_members_and_frames_written_one_after_the_other_are_one() -> None:
    for codec in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        packed = compress(codec, b"one, ") + compress(codec, b"two")
        assert decompress(codec, packed, limit_bytes=LIMIT) == b"one, two"


def test_very_many_empty_gzip_members_take_time_by_their_number_alone() -> None:
    """Each used to copy all that lay behind it: one batch could hold a program up for minutes."""
    data = compress(Compression.GZIP, b"x") + compress(Compression.GZIP, b"") * 200_000
    began_s = time.process_time()
    assert decompress(Compression.GZIP, data, limit_bytes=10) == b"x"
    assert time.process_time() - began_s < 8


def test_lz4_blocks_are_independent_as_java_demands() -> None:
    flags = compress(Compression.LZ4, b"x" * 200_000)[4]
    assert flags >> 6 == 1
    assert flags & 0x20


@given(data, st.sampled_from(CODECS), st.data())
def test_damaged_bytes_are_read_or_named(
    plain: bytes, codec: Compression, choose: st.DataObject
) -> None:
    packed = bytearray(compress(codec, plain))
    for _ in range(choose.draw(st.integers(1, 3))):
        packed[choose.draw(st.integers(0, len(packed) - 1))] = choose.draw(st.integers(0, 255))
    del packed[choose.draw(st.integers(0, len(packed))) :]
    try:
        assert len(decompress(codec, packed, limit_bytes=LIMIT)) <= LIMIT
    except DecompressionFailed:
        return


@pytest.mark.parametrize("codec", Compression)
def test_the_limit_itself_is_allowed_and_one_byte_more_is_not(codec: Compression) -> None:
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, limit_bytes=100_000)) == 100_000
    with pytest.raises(DecompressionFailed):
        decompress(codec, packed, limit_bytes=99_999)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_no_more_memory_than_a_few_times_the_limit(codec: Compression) -> None:
    """In a process of its own, which allows itself 128 MiB of address space above what it has."""
    program = f"""
import resource
from wire.compression import Compression, DecompressionFailed, compress, decompress
packed = compress(Compression({int(codec)}), bytes(400 << 20))
with open("/proc/self/statm") as statm:
    pages = int(statm.read().split()[0])
limit = pages * {resource.getpagesize()} + (128 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    decompress(Compression({int(codec)}), packed, limit_bytes=16 << 20)
except DecompressionFailed:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")
