"""JSON that somebody else may have written: bounded, and of the types that are expected. Pure.

Nodes of a witness can hold anything. Whatever is wrong with a document is one ValueError, so that
the reader of a node names the node and goes on with everything else.
"""

import json
import zlib
from typing import Any, Final

MAX_BYTES: Final = 64 * 1024 * 1024
"""The size of a document, unpacked. ZooKeeper takes a mebibyte, which packs as much as this."""
MAX_DEPTH: Final = 32
LARGEST: Final = 2**63 - 1
"""An offset or a time in milliseconds."""
LARGEST_INT32: Final = 2**31 - 1


def read_json(data: bytes | str) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a document; raises ValueError for whatever is wrong with it."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"has {len(data)} bytes, more than {MAX_BYTES}")
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    _check_depth(value)
    return value


def unpack_json(data: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a document packed with zlib; raises ValueError."""
    return read_json(unpack(data))


def unpack(data: bytes, most_bytes: int = MAX_BYTES) -> bytes:
    """Return what was packed with zlib, if it is no longer than that; raises ValueError."""
    decoder = zlib.decompressobj()
    try:
        plain = decoder.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"is not packed with zlib: {error}") from error
    if len(plain) > most_bytes:
        raise ValueError(f"unpacks to more than {most_bytes} bytes")
    if not decoder.eof:
        raise ValueError("ends too early")
    return plain


def whole_number(value: object, largest: int = LARGEST) -> int:
    """Return a whole number from 0 on; raises ValueError."""
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{value!r:.80} is no whole number from 0 to {largest}")
    return value


def rate(value: object) -> float:
    """Return a finite number from 0 on; raises ValueError."""
    if type(value) not in {int, float}:
        raise ValueError(f"{value!r:.80} is no number")
    found = float(value) if isinstance(value, float) else float(whole_number(value))
    if not 0 <= found <= LARGEST:
        raise ValueError(f"{value!r:.80} is no number from 0 to {LARGEST}")
    return found


def text(value: object) -> str:
    """Return a text; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is no text")  # noqa: TRY004 - of a document, not a caller
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for one in level
            if isinstance(one, list | dict)
            for child in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise ValueError("is nested too deeply")
