"""Receive buffers: used again when free, never while somebody looks at them."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from wire.net.buffers import BufferPool

KIB = 1024


def test_a_buffer_is_used_again_once_its_last_view_is_gone() -> None:
    pool = BufferPool()
    first = pool.take(100 * KIB)
    owner = id(first.obj)
    part = first[5:10]
    del first
    assert id(pool.take(100 * KIB).obj) != owner
    del part
    assert id(pool.take(90 * KIB).obj) == owner


def test_a_much_smaller_answer_does_not_hold_a_large_buffer() -> None:
    pool = BufferPool()
    owner = id(pool.take(1_000 * KIB).obj)
    assert id(pool.take(200 * KIB).obj) != owner


def test_the_answers_of_a_distant_broker_find_their_buffers_again() -> None:
    pool = BufferPool()
    size = 8 * 1024 * KIB + 503

    def owners() -> set[int]:
        views = [pool.take(size - KIB * lane) for lane in range(12)]
        return {id(view.obj) for view in views}

    assert owners() == owners()


def test_more_than_the_limit_is_not_kept() -> None:
    pool = BufferPool(limit_bytes=128 * KIB)
    assert len(pool.take(500 * KIB)) == 500 * KIB
    views = [pool.take(64 * KIB) for _ in range(5)]
    assert len({id(view.obj) for view in views}) == 5
    assert len(pool._buffers) == 2


class Pool(RuleBasedStateMachine):
    """Whatever is taken and let go: no two views share memory, and no more is kept than allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BufferPool(limit_bytes=1_000 * KIB)
        self.views: list[tuple[memoryview, int]] = []
        self.next_mark = 0

    @rule(size=st.integers(1, 400 * KIB))
    def take(self, size: int) -> None:
        view = self.pool.take(size)
        assert len(view) == size
        self.next_mark = (self.next_mark + 1) % 251
        view[0] = view[-1] = self.next_mark
        self.views.append((view, self.next_mark))

    @rule(place=st.integers(0, 1_000))
    def let_go(self, place: int) -> None:
        if self.views:
            del self.views[place % len(self.views)]

    @invariant()
    def contents_stay(self) -> None:
        for view, mark in self.views:
            assert view[0] == view[-1] == mark

    @invariant()
    def little_is_kept(self) -> None:
        assert sum(len(buffer) for buffer in self.pool._buffers) == self.pool._kept_bytes
        assert self.pool._kept_bytes <= 1_000 * KIB


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=50, deadline=None)
