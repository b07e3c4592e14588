"""Frames come out whole and in order, however the bytes arrive; lying sizes cost nothing."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.framing import BUSY_BUFFER, SMALLEST_BUFFER, BadFrame, FrameBuffer

LIMIT = 1_000_000


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(frames: FrameBuffer, data: bytes) -> list[bytes]:
    """Hand over bytes as a socket would, as many as fit; return the frames that came out."""
    out = []
    while data:
        space = frames.space()
        assert len(space) > 0
        taken = min(len(space), len(data))
        space[:taken] = data[:taken]
        frames.grew(taken)
        data = data[taken:]
        while (frame := frames.next_frame()) is not None:
            out.append(bytes(frame))
    return out


@given(
    sizes=st.lists(st.integers(0, 200_000), max_size=8),
    cuts=st.lists(st.integers(1, 150_000), min_size=1, max_size=20),
)
def test_frames_come_out_as_they_went_in(sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes([size % 251]) * size for size in sizes]
    stream = b"".join(map(framed, bodies))
    frames = FrameBuffer(LIMIT)
    out: list[bytes] = []
    for size in [*cuts, len(stream)]:
        out += feed(frames, stream[:size])
        stream = stream[size:]
    assert out == bodies
    assert frames.is_empty


def test_a_frame_is_a_writable_view_of_the_buffer() -> None:
    frames = FrameBuffer(LIMIT)
    space = frames.space()
    space[:6] = framed(b"ab")
    frames.grew(6)
    frame = frames.next_frame()
    assert frame is not None
    frame[0] = ord("x")
    assert bytes(space[:6]) == framed(b"xb")


@pytest.mark.parametrize("size", [-1, LIMIT + 1, 2**31 - 1])
def test_a_size_beyond_the_limit_is_refused_before_anything_is_kept(size: int) -> None:
    frames = FrameBuffer(LIMIT)
    space = frames.space()
    space[:4] = struct.pack(">i", size)
    frames.grew(4)
    with pytest.raises(BadFrame, match=f"a frame of {size} bytes; the limit is {LIMIT}"):
        frames.next_frame()
    assert frames.capacity == SMALLEST_BUFFER


def test_memory_follows_what_arrived_not_what_was_announced() -> None:
    frames = FrameBuffer(100_000_000)
    assert feed(frames, struct.pack(">i", 99_000_000) + bytes(SMALLEST_BUFFER)) == []
    frames.space()
    assert frames.capacity <= 4 * (SMALLEST_BUFFER + 4)


def test_a_peer_that_fills_the_buffer_with_frames_gets_a_larger_one() -> None:
    frames = FrameBuffer(LIMIT)
    many = framed(bytes(1_000)) * (SMALLEST_BUFFER // 1_000 + 1)
    assert feed(frames, many[:SMALLEST_BUFFER]) == [bytes(1_000)] * (SMALLEST_BUFFER // 1_004)
    assert feed(frames, many[SMALLEST_BUFFER:]) != []
    assert frames.capacity == BUSY_BUFFER
    assert feed(frames, framed(b"more") * BUSY_BUFFER)[:2] == [b"more"] * 2
    assert frames.capacity == BUSY_BUFFER


def test_what_was_passed_over_is_not_handed_out_again() -> None:
    frames = FrameBuffer(LIMIT)
    first, second = framed(b"first"), framed(b"second")
    space = frames.space()
    space[: len(first + second)] = first + second
    frames.grew(len(first + second))
    memory, start, end = frames.held()
    assert memory[start:end] == first + second
    frames.pass_over(start + len(first))
    assert bytes(frames.next_frame() or b"") == b"second"


def test_an_idle_connection_gives_its_memory_back() -> None:
    frames = FrameBuffer(LIMIT)
    assert feed(frames, framed(bytes(500_000))) == [bytes(500_000)]
    assert frames.capacity >= 500_000
    frames.release()
    assert frames.capacity == 0
    assert feed(frames, framed(b"again")) == [b"again"]


def test_a_part_of_a_frame_is_not_given_away() -> None:
    frames = FrameBuffer(LIMIT)
    assert feed(frames, framed(b"abc")[:-1]) == []
    frames.release()
    assert feed(frames, b"c") == [b"abc"]
