"""CRC-32C (Castagnoli), the checksum of batches; `crc32c(data, before)` goes on from there.

fastcrc and anycrc call it by the standard that made it known, iSCSI (RFC 3720, appendix B.4).
"""

from typing import Final

from anycrc import Model
from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c", "crc32c_with_head"]

SHORT_BYTES: Final = 8 * 1024
"""So little is read again in less time than `combine` takes, 0.4 microseconds (6 KiB on older
processors, 16 KiB where there are instructions of AVX-512 for it)."""
_combine: Final = Model("CRC32-ISCSI").combine


def crc32c_with_head(
    head: bytes | memoryview,
    rest: memoryview,
    *,
    instead_of: bytes | memoryview,
    crc: int,
) -> int:
    """Return the checksum of `head` and `rest`; `crc` is that of `instead_of` and `rest`.

    Both heads have the same length. A long rest is not read again: checksums are linear, so the
    difference between those of the heads, moved on by the length of the rest, is the difference
    between the results. A reader that checks the result then checks what `crc` was made of.
    """
    size = len(rest)
    if size < SHORT_BYTES:
        return crc32c(rest, crc32c(head))
    moved: int = _combine(crc32c(head) ^ crc32c(instead_of), crc, size)
    return moved
