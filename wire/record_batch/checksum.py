"""CRC-32C (Castagnoli), the checksum of batches; `crc32c(data, before)` goes on from there.

fastcrc calls it by the standard that made it known, iSCSI (RFC 3720, appendix B.4).
"""

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
