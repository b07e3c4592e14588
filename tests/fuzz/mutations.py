"""What a broken or hostile client makes of a valid frame. Pure; all luck is the caller's."""

import random
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, TypeAlias

SIZE: Final = Struct(">i")
START: Final = Struct(">hh")
HEADER_BYTES: Final = 8

TELLING: Final = (
    *(b"\xff", b"\x80", b"\x7f", b"\x00", b"\xff\xff", b"\x7f\xff", b"\x80\x00"),
    *(b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x01", b"\x00" * 4),
    *(b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + b"\x00" * 7),
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xff" * 10 + b"\x01", b"\x80" * 6),
)
"""Lengths, counts and numbers at the edges: fixed ones, then varints."""

Mutation: TypeAlias = Callable[[bytearray, random.Random, Sequence[bytes]], bytearray]


def mutated(luck: random.Random, frames: Sequence[bytes]) -> bytes:
    """Return what is sent instead of one of the frames; one in four is sent as it is.

    Most have a length that fits, so that the damage reaches what is behind the framing.
    """
    frame = luck.choice(frames)
    if luck.random() < 0.25:
        return frame
    body = bytearray(frame[SIZE.size :])
    for _ in range(luck.choice((1, 1, 1, 2, 4))):
        body = luck.choice(MUTATIONS)(body, luck, frames)
    size = len(body)
    if luck.random() < 0.05:
        size = luck.choice((0, -1, 1, size - 1, size + 1, 2**31 - 1, -(2**31), 104_857_601))
    return SIZE.pack(size) + bytes(body)


def _place(body: bytearray, luck: random.Random) -> int:
    """Return a position, seldom one in the header: that damage is told at once."""
    first = 0 if luck.random() < 0.1 else min(HEADER_BYTES, len(body))
    return luck.randint(first, len(body))


def _set_bytes(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    for at in [_place(body, luck) for _number in range(luck.randint(1, 4))]:
        body[at : at + 1] = bytes([luck.randrange(256)])
    return body


def _flip_bit(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    at = _place(body, luck)
    body[at : at + 1] = bytes(byte ^ 1 << luck.randrange(8) for byte in body[at : at + 1])
    return body


def _write_telling(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    at, value = _place(body, luck), luck.choice(TELLING)
    body[at : at + len(value)] = value
    return body


def _insert(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    at = _place(body, luck)
    body[at:at] = luck.choice((luck.choice(TELLING), luck.randbytes(luck.randint(1, 40))))
    return body


def _cut_end(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    return body[: luck.randint(0, len(body))]


def _cut_out(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    at = _place(body, luck)
    del body[at : at + luck.randint(1, 16)]
    return body


def _repeat(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    at = _place(body, luck)
    body[at:at] = body[at : at + luck.randint(1, 60)] * luck.choice((1, 2, 30))
    return body


def _graft(body: bytearray, luck: random.Random, frames: Sequence[bytes]) -> bytearray:
    """Continue with the end of another request."""
    other = luck.choice(frames)
    return body[: _place(body, luck)] + other[luck.randrange(len(other)) :]


def _relabel(body: bytearray, luck: random.Random, _: Sequence[bytes]) -> bytearray:
    """Say another API or version."""
    key, version = START.unpack_from(body) if len(body) >= START.size else (0, 0)
    version = luck.choice((version - 1, version + 1, 0, 99, 2**15 - 1, -1))
    if luck.random() < 0.3:
        key = luck.choice((*range(-1, 90), 999, 2**15 - 1, -(2**15)))
    label = START.pack(key, max(-(2**15), min(version, 2**15 - 1)))
    body[: START.size] = label
    return body


MUTATIONS: Final[Sequence[Mutation]] = (
    *(_set_bytes, _set_bytes, _flip_bit, _write_telling, _write_telling, _insert),
    *(_cut_end, _cut_out, _repeat, _graft, _relabel),
)
