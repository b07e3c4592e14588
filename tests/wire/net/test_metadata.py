"""The cache of what a cluster looks like: what is believed, and for how long."""

from uuid import UUID

import pytest

from wire.errors import ErrorCode
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.net import RequestRefused
from wire.net.metadata import BELIEVED_FOR_S, MetadataCache


def topic(name: str, leader: int = 1, error_code: int = 0) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(
        error_code=0,
        partition_index=0,
        leader_id=leader,
        leader_epoch=4,
        replica_nodes=(1, 2),
        isr_nodes=(1,),
    )
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=UUID(int=7),
        partitions=() if error_code else (partition,),
    )


def answer(*topics: MetadataResponseTopic) -> MetadataResponse:
    broker = MetadataResponseBroker(node_id=1, host="one", port=9092, rack="r")
    return MetadataResponse(brokers=(broker,), cluster_id="c", controller_id=1, topics=topics)


def test_what_was_learned_is_believed_for_a_while() -> None:
    cache = MetadataCache()
    assert not cache.is_fresh(["a"], 0.0)
    cache.learn(answer(topic("a")), 0.0, of_all_topics=False)
    assert cache.is_fresh(["a"], BELIEVED_FOR_S - 0.1)
    assert not cache.is_fresh(["a"], BELIEVED_FOR_S)
    assert not cache.is_fresh(["a", "b"], 1.0)
    assert not cache.is_fresh(None, 1.0)
    view = cache.view(["a"])
    assert view.brokers[1].address == ("one", 9092)
    assert view.partition("a", 0).isr == (1,)


def test_no_topics_at_all_is_believed_without_asking() -> None:
    assert MetadataCache().is_fresh([], 0.0)


@pytest.mark.parametrize("incomplete", [topic("a", leader=-1), topic("a", error_code=3)])
def test_a_topic_without_leader_or_with_an_error_is_not_believed(
    incomplete: MetadataResponseTopic,
) -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a")), 0.0, of_all_topics=False)
    cache.learn(answer(incomplete), 1.0, of_all_topics=False)
    assert not cache.is_fresh(["a"], 1.0)
    with pytest.raises(RequestRefused):
        cache.view(["a"]).partition("a", 0)


def test_an_answer_about_all_topics_forgets_the_others() -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a"), topic("b")), 0.0, of_all_topics=True)
    cache.learn(answer(topic("b")), 1.0, of_all_topics=True)
    assert set(cache.view(None).topics) == {"b"}
    assert cache.is_fresh(None, 2.0)
    cache.forget("b")
    assert not cache.is_fresh(["b"], 2.0)
    assert not cache.is_fresh(None, 2.0)


def test_an_unknown_error_code_reads_as_unknown_server_error() -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a", error_code=12_345)), 0.0, of_all_topics=False)
    with pytest.raises(RequestRefused) as fault:
        cache.view(["a"]).partition("a", 0)
    assert fault.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
