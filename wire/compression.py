"""The five codecs of a record batch, in the framings that Kafka's clients agree on.

gzip: a gzip file. snappy: xerial's blocks are written, xerial and raw are read. lz4: frames with
independent blocks (Java refuses linked ones). zstd: frames. No decompression takes more memory
than about twice its limit: the output goes into buffers of known size. In a thread it holds others
up for milliseconds, however much it unpacks.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum
from mmap import mmap
from struct import Struct
from typing import Final, TypeAlias, assert_never

import cramjam

Buffer: TypeAlias = bytes | bytearray | memoryview


class Compression(IntEnum):
    """The three lowest attribute bits of a record batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_GZIP_WBITS: Final = 31
_GZIP_PIECE_BYTES: Final = 8 * 1024
_LZ4_FASTEST: Final = 1
_ZSTD_LEVEL: Final = 3
_LENGTH: Final = Struct(">i")
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
"""Version 1, readable from version 1 on."""
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_FIRST_GUESS_BYTES: Final = 64 * 1024
_LARGE_BYTES: Final = 1024 * 1024
"""From here on memory is mapped and copied without the interpreter's lock: a thread that unpacks
60 MB held it for 45 ms twice, and the loop with it."""
_PIECE_BYTES: Final = 256 * 1024


class DecompressionFailed(ValueError):
    """The bytes are not what the codec writes, or hold more than the limit."""


def compress(codec: Compression, data: Buffer) -> bytes:
    """Return `data` compressed, at the level that Kafka's producer takes by default."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return zlib.compress(data, wbits=_GZIP_WBITS)
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            encoder = cramjam.lz4.Compressor(
                level=_LZ4_FASTEST, content_checksum=False, block_linked=False
            )
            encoder.compress(data)
            return bytes(encoder.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
        case _:
            assert_never(codec)


def decompress(codec: Compression, data: Buffer, *, limit_bytes: int) -> bytes:
    """Return what was compressed; DecompressionFailed if damaged or larger than the limit."""
    match codec:
        case Compression.NONE:
            return _within(bytes(data), limit_bytes)
        case Compression.GZIP:
            return _decompress_gzip(data, limit_bytes)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), limit_bytes)
        case Compression.LZ4:
            return _decompress_into_growing(cramjam.lz4.decompress_into, data, limit_bytes)
        case Compression.ZSTD:
            return _decompress_into_growing(cramjam.zstd.decompress_into, data, limit_bytes)
        case _:
            assert_never(codec)


def _within(data: bytes, limit_bytes: int) -> bytes:
    if len(data) > limit_bytes:
        raise DecompressionFailed(f"more than {limit_bytes} bytes")
    return data


def _decompress_gzip(data: Buffer, limit_bytes: int) -> bytes:
    """A gzip file may have several members, one after the other.

    A member is given a little at a time: what lies behind its end is copied, once for each, and a
    batch may consist of tens of thousands of empty ones.
    """
    view, position = memoryview(data), 0
    parts: list[bytes] = []
    size = 0
    while True:
        decoder = zlib.decompressobj(wbits=_GZIP_WBITS)
        while not decoder.eof:
            some = view[position : position + _GZIP_PIECE_BYTES]
            if not some:
                raise DecompressionFailed("gzip: the data ends too early")
            try:
                parts.append(decoder.decompress(some, limit_bytes - size + 1))
            except zlib.error as fault:
                raise DecompressionFailed(f"gzip: {fault}") from fault
            size += len(parts[-1])
            if size > limit_bytes:
                raise DecompressionFailed(f"gzip: more than {limit_bytes} bytes")
            position += len(some)
        position -= len(decoder.unused_data)
        if position == len(view):
            return b"".join(parts)


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _xerial_starts(data: memoryview, position: int) -> bool:
    return data[position : position + len(_XERIAL_MAGIC)].tobytes() == _XERIAL_MAGIC


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytes:
    if not _xerial_starts(data, 0):
        return _decompress_snappy_block(data, limit_bytes)
    parts: list[bytes] = []
    size, position = 0, 0
    while position < len(data):
        # Files written one after the other by xerial's stream repeat the header between blocks.
        if _xerial_starts(data, position):
            position += len(_XERIAL_HEADER)
            continue
        start = position + _LENGTH.size
        if start > len(data):
            raise DecompressionFailed("snappy: a block's length is cut off")
        (length,) = _LENGTH.unpack_from(data, position)
        position = start + length
        if length < 0 or position > len(data):
            raise DecompressionFailed(f"snappy: a block cannot have {length} bytes here")
        parts.append(_decompress_snappy_block(data[start:position], limit_bytes - size))
        size += len(parts[-1])
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, limit_bytes: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes:
            raise DecompressionFailed(f"snappy: {size} bytes are above the limit {limit_bytes}")
        output = _zeros(size)
        cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as fault:
        raise DecompressionFailed(str(fault)) from fault
    return _taken_out(output, size)


def _decompress_into_growing(
    decompress_into: Callable[[Buffer, bytearray | mmap], int], data: Buffer, limit_bytes: int
) -> bytes:
    """Try with an output four times as large until it fits or the limit is reached.

    The library cannot stream with a bound, but it never writes behind the buffer it is given, so
    the buffer is the bound. Which of its errors says "too small" is not told apart: damaged data
    fails at each size, cheaply, since it fails early.
    """
    size = min(limit_bytes, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        output = _zeros(size)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError as fault:
            if size >= limit_bytes:
                raise DecompressionFailed(f"{fault}, within {limit_bytes} bytes") from fault
            size = min(limit_bytes, 4 * size)
        else:
            return _taken_out(output, written)


def _zeros(size: int) -> bytearray | mmap:
    """Return memory to write to; of a large one no page is touched while the interpreter waits."""
    return bytearray(size) if size < _LARGE_BYTES else mmap(-1, size)


def _taken_out(output: bytearray | mmap, size: int) -> bytes:
    """Return the first `size` bytes; what is mapped is given back in between.

    Only `join` of several bytes copies without the interpreter's lock.
    """
    if isinstance(output, bytearray):
        return bytes(memoryview(output)[:size])
    with output:
        pieces = [output.read(min(_PIECE_BYTES, size - at)) for at in range(0, size, _PIECE_BYTES)]
    return b"".join(pieces)
