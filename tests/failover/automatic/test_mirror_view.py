"""Whether the mirror hears its source: by its own clock, and only while it writes."""

from failover.automatic.mirror_view import MirrorView
from runtime.coordination.known_ends import UNSEEN_MS, KnownEnd, KnownEnds
from wire.topic_partition import TopicPartition


def news(at_ms: int, *heard_ms: int) -> KnownEnds:
    ends = {
        TopicPartition("orders", index): KnownEnd(end=5, heard_ms=heard, level_ms=None)
        for index, heard in enumerate(heard_ms)
    }
    return KnownEnds(at_ms=at_ms, ends=ends)


def test_a_mirror_that_heard_of_one_partition_just_now_hears_its_source() -> None:
    assert MirrorView().hears(news(100_000, 10_000, 99_000), 0)


def test_a_mirror_that_looks_on_and_hears_nothing_does_not() -> None:
    view = MirrorView()
    assert view.hears(news(100_000, 99_000), 0)
    assert not view.hears(news(104_000, 104_000 - UNSEEN_MS - 1), 4_000)


def test_a_mirror_that_has_ended_tells_nothing() -> None:
    view, last = MirrorView(), news(100_000, 99_000)
    assert view.hears(last, 0)
    assert not view.hears(last, int(last.overdue_ms) + 1)
    assert not view.hears(None, 0)
    assert not view.hears(news(5), 0)
