"""One line for whatever has changed at once."""

from broker.replication.isr_news import IsrNews
from wire.errors import ErrorCode

ALL = frozenset({0, 1, 2})


def test_few_partitions_are_named_with_what_they_were() -> None:
    news = IsrNews()
    news.note_changed("t-0", ALL, frozenset({0, 1}))
    news.note_changed("t-1", frozenset({0}), ALL)
    assert news.take() == "ISR: t-0 [0, 1] instead of [0, 1, 2], t-1 [0, 1, 2] instead of [0]"
    assert not news


def test_many_partitions_are_counted_by_who_came_and_went() -> None:
    news = IsrNews()
    for index in range(2_000):
        news.note_changed(f"t-{index:04}", ALL, frozenset({0, 1}))
    for index in range(500):
        news.note_changed(f"u-{index:04}", frozenset({0}), frozenset({0, 1}))
    assert news.take() == (
        "ISR: 2500 partitions (t-0000, t-0001, t-0002, ...) changed: "
        "broker 1 joined 500, broker 2 left 2000"
    )


def test_a_partition_that_changed_twice_is_told_from_its_first_state_to_its_last() -> None:
    news = IsrNews()
    news.note_changed("t-0", ALL, frozenset({0, 1}))
    news.note_changed("t-0", frozenset({0, 1}), frozenset({0}))
    assert news.take() == "ISR: t-0 [0] instead of [0, 1, 2]"
    news.note_changed("t-0", ALL, frozenset({0, 1}))
    news.note_changed("t-0", frozenset({0, 1}), ALL)
    assert not news, "it is as it was"


def test_refusals_are_told_by_their_reason() -> None:
    news = IsrNews()
    for name in ("t-1", "t-0"):
        news.note_refused(name, ErrorCode.INELIGIBLE_REPLICA)
    assert news.take() == "ISR: INELIGIBLE_REPLICA for t-0, t-1"
