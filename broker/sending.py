"""Answers onto a socket: many small pieces in one call, file parts from the page cache directly."""

import mmap
import os
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import trio

from broker.log.results import FileSlice
from wire.schema import Piece

Part: TypeAlias = bytes | memoryview | FileSlice

MOST_PIECES: Final = 512
"""Per system call; Linux takes 1024."""
FILE_CHUNK: Final = 4 * 1024 * 1024

_STAND_IN: Final = memoryview(
    mmap.mmap(-1, 2**31 - 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
)
"""Address space that is never touched, so it costs nothing: see `stand_in`."""


class PeerGone(ConnectionError):
    """The peer closed the connection while an answer was on its way."""


def stand_in(length: int) -> memoryview:
    """Return a view of that length for a message's `records`, to be replaced by a file's part.

    So the codec writes lengths and everything around the records as always, and the records
    themselves never enter this process.
    """
    return _STAND_IN[:length]


def with_files(pieces: Sequence[Piece], slices: Sequence[FileSlice]) -> list[Part]:
    """Replace the stand-ins, in order, by the file parts they stand for."""
    left: Iterator[FileSlice] = iter([piece for piece in slices if piece.length])
    parts: list[Part] = [
        next(left) if isinstance(piece, memoryview) and piece.obj is _STAND_IN.obj else piece
        for piece in pieces
    ]
    assert next(left, None) is None, "every slice has its stand-in"
    return parts


async def send_parts(stream: trio.socket.SocketType, parts: Sequence[Part]) -> int:
    """Send everything in order; return how many bytes. Raises OSError and PeerGone."""
    sent = 0
    run: list[Piece] = []
    for part in parts:
        if not isinstance(part, FileSlice):
            run.append(part)
            continue
        sent += await _send_pieces(stream, run)
        run = []
        sent += await _send_file(stream, part)
    return sent + await _send_pieces(stream, run)


async def _send_pieces(stream: trio.socket.SocketType, pieces: Sequence[Piece]) -> int:
    # Not with MSG_MORE, although a file's part may follow: the kernel then holds back the end of
    # what fits for 200 ms whenever the peer's window closes in between.
    total, first = 0, 0
    waiting = [memoryview(piece) for piece in pieces]
    while first < len(waiting):
        sent = await stream.sendmsg(waiting[first : first + MOST_PIECES])
        total += sent
        while first < len(waiting) and sent >= len(waiting[first]):
            sent -= len(waiting[first])
            first += 1
        if sent:
            waiting[first] = waiting[first][sent:]
    return total


async def _send_file(stream: trio.socket.SocketType, part: FileSlice) -> int:
    assert part.file is not None, "an empty slice is not sent"
    position, end = part.position, part.position + part.length
    while position < end:
        await trio.lowlevel.checkpoint()
        try:
            sent = os.sendfile(
                stream.fileno(), part.file.fileno(), position, min(FILE_CHUNK, end - position)
            )
        except BlockingIOError:
            await trio.lowlevel.wait_writable(stream)
            continue
        if sent == 0:
            raise PeerGone(f"{part.file.path} ends before byte {end}")
        position += sent
    return part.length
