"""The two shapes of which all records here are made: big-endian integers and int16-led strings."""

import struct


class MalformedRecord(ValueError):
    """Bytes that are not what this package writes; the message says what is wrong with them."""


def put_string(text: str) -> bytes:
    """Encode as UTF-8 behind an int16 length; longer than 32,767 bytes is refused."""
    raw = text.encode()
    if len(raw) > 0x7FFF:
        raise MalformedRecord(f"a string of {len(raw)} bytes does not fit an int16 length")
    return struct.pack(">h", len(raw)) + raw


class RecordCursor:
    """Reads a record from its start; every read is checked against what is left."""

    __slots__ = ("_buffer", "_position")

    def __init__(self, buffer: bytes) -> None:
        self._buffer = buffer
        self._position = 0

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0 or end > len(self._buffer):
            left = len(self._buffer) - self._position
            raise MalformedRecord(f"{count} bytes wanted, {left} left")
        piece = self._buffer[self._position : end]
        self._position = end
        return piece

    def integer(self, size: int) -> int:
        """Read a signed big-endian integer of ``size`` bytes."""
        return int.from_bytes(self._take(size), "big", signed=True)

    def raw(self, count: int) -> bytes:
        """Read bytes."""
        return self._take(count)

    def string(self) -> str:
        """Read an int16 length and that much UTF-8."""
        raw = self._take(self.integer(2))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise MalformedRecord(f"not UTF-8: {error}") from error

    def finish(self) -> None:
        """Refuse bytes that nobody asked for."""
        if self._position != len(self._buffer):
            raise MalformedRecord(f"{len(self._buffer) - self._position} bytes too many")
