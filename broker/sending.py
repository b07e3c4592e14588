"""Answers onto a socket: many small pieces in one call, file parts from the page cache directly."""

import mmap
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import trio

from broker.log.open_file import OpenFile
from broker.log.results import FileSlice
from wire.schema import Piece

Part: TypeAlias = bytes | memoryview | FileSlice

MOST_PIECES: Final = 512
"""Per system call; Linux takes 1024."""
FILE_CHUNK: Final = 4 * 1024 * 1024
COPIED_BYTES: Final = 16 * 1024
"""A file's part up to this is read and sent with what is around it: one system call instead of
three, and a peer that is woken once instead of for each piece."""
MOST_COPIED_BYTES: Final = 256 * 1024

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


async def send_parts(peer: socket.socket, parts: Sequence[Part], timeout_s: float) -> int:
    """Send everything in order; return how many bytes.

    Raises OSError, and PeerGone when the peer takes nothing for `timeout_s`.
    """
    sent = copied = 0
    run: list[Piece] = []
    for part in parts:
        if not isinstance(part, FileSlice):
            run.append(part)
            continue
        if part.length <= COPIED_BYTES and copied <= MOST_COPIED_BYTES:
            run.append(read_whole(part.file, part.position, part.length))
            copied += part.length
            continue
        sent += await _send_pieces(peer, run, timeout_s)
        run, copied = [], 0
        sent += await _send_file(peer, part, timeout_s)
    return sent + await _send_pieces(peer, run, timeout_s)


def read_whole(file: OpenFile | None, position: int, length: int) -> bytes:
    """Return a part of a file; raises PeerGone where that has been cut off meanwhile."""
    assert file is not None, "an empty slice is not sent"
    content = file.read(position, length)
    if len(content) < length:
        raise PeerGone(f"{file.path} ends before byte {position + length}")
    return content


async def _send_pieces(peer: socket.socket, pieces: Sequence[Piece], timeout_s: float) -> int:
    # Not with MSG_MORE, although a file's part may follow: the kernel then holds back the end of
    # what fits for 200 ms whenever the peer's window closes in between.
    total, first = 0, 0
    waiting = [memoryview(piece) for piece in pieces]
    while first < len(waiting):
        try:
            sent = peer.sendmsg(waiting[first : first + MOST_PIECES])
        except BlockingIOError:
            await _wait_writable(peer, timeout_s)
            continue
        total += sent
        while first < len(waiting) and sent >= len(waiting[first]):
            sent -= len(waiting[first])
            first += 1
        if sent:
            waiting[first] = waiting[first][sent:]
    return total


async def _send_file(peer: socket.socket, part: FileSlice, timeout_s: float) -> int:
    assert part.file is not None, "an empty slice is not sent"
    position, end = part.position, part.position + part.length
    while position < end:
        count = min(FILE_CHUNK, end - position)
        try:
            sent = os.sendfile(peer.fileno(), part.file.fileno(), position, count)
        except BlockingIOError:
            await _wait_writable(peer, timeout_s)
            continue
        if sent == 0:
            raise PeerGone(f"{part.file.path} ends before byte {end}")
        position += sent
        await trio.lowlevel.checkpoint()  # a reader of much leaves the others their turn
    return part.length


async def _wait_writable(peer: socket.socket, timeout_s: float) -> None:
    with trio.move_on_after(timeout_s):
        await trio.lowlevel.wait_writable(peer)
        return
    raise PeerGone(f"it took no answers for {timeout_s:.0f} s")
