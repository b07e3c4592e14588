"""What members of the classic protocol subscribe to, read as far as a broker has time for it."""

import pytest

from broker.groups.subscription import MOST_READ, decode_subscription, subscribed_topics
from wire.primitives import MalformedMessage, pack_int16, pack_int32, pack_string
from wire.topic_partition import TopicPartition

NO_USER_DATA = pack_int32(-1)


def naming(count: int) -> bytes:
    """Return a subscription (version 0) to so many topics."""
    return pack_int16(0) + pack_int32(count) + pack_string("t") * count + NO_USER_DATA


def owning(*counts: int) -> bytes:
    """Return a subscription (version 1) to nothing that owns so many partitions of topics."""
    owned = b"".join(pack_string("t") + pack_int32(one) + pack_int32(7) * one for one in counts)
    return pack_int16(1) + pack_int32(0) + NO_USER_DATA + pack_int32(len(counts)) + owned


def test_topics_are_read_up_to_a_limit_for_all_members_together() -> None:
    half = MOST_READ // 2
    assert subscribed_topics([naming(half), naming(MOST_READ - half)]) == frozenset({"t"})
    assert subscribed_topics([naming(half), naming(MOST_READ - half), naming(1)]) is None


def test_a_subscription_that_would_take_long_to_read_is_refused() -> None:
    assert decode_subscription(owning(1, 2)).owned == {TopicPartition("t", 7)}
    for subscription in (naming(MOST_READ + 1), owning(MOST_READ // 2, MOST_READ // 2)):
        with pytest.raises(MalformedMessage, match=f"more than {MOST_READ} topics and partitions"):
            decode_subscription(subscription)
