"""The cache of what a cluster looks like: what is believed, and for how long."""

from uuid import UUID

import pytest

from wire.errors import ErrorCode
from wire.headers import encode_response
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.net import RequestRefused
from wire.net.metadata import (
    BELIEVED_FOR_S,
    LONG_BYTES,
    ClusterView,
    MetadataCache,
    read_metadata,
    view_of,
    with_second_opinion,
)
from wire.primitives import MalformedMessage


def topic(
    name: str,
    leader: int = 1,
    error_code: int = 0,
    *,
    epoch: int = 4,
    topic_id: int = 7,
    partitions: int = 1,
) -> MetadataResponseTopic:
    told = tuple(
        MetadataResponsePartition(
            error_code=0,
            partition_index=index,
            leader_id=leader,
            leader_epoch=epoch,
            replica_nodes=(1, 2),
            isr_nodes=(1,),
        )
        for index in range(partitions)
    )
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=UUID(int=topic_id),
        partitions=() if error_code else told,
    )


def answer(*topics: MetadataResponseTopic) -> ClusterView:
    broker = MetadataResponseBroker(node_id=1, host="one", port=9092, rack="r")
    response = MetadataResponse(brokers=(broker,), cluster_id="c", controller_id=1, topics=topics)
    return view_of(response)


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


@pytest.mark.parametrize("of_all_topics", [False, True])
@pytest.mark.parametrize(
    ("epoch", "topic_id", "leader"),
    [
        pytest.param(3, 7, 1, id="older"),
        pytest.param(4, 7, 2, id="the same epoch"),
        pytest.param(5, 7, 2, id="newer"),
        pytest.param(-1, 7, 2, id="no epoch told"),
        pytest.param(3, 8, 2, id="older, of another topic of that name"),
    ],
)
def test_the_newest_leader_epoch_counts(
    epoch: int, topic_id: int, leader: int, *, of_all_topics: bool
) -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a")), 0.0, of_all_topics=of_all_topics)
    told = topic("a", 2, epoch=epoch, topic_id=topic_id)
    cache.learn(answer(told), 1.0, of_all_topics=of_all_topics)
    assert cache.view(["a"]).partition("a", 0).leader == leader
    assert cache.view(["a"]).topics["a"].topic_id == UUID(int=topic_id)


def test_without_topic_ids_nobody_knows_whether_an_epoch_is_older() -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a", topic_id=0)), 0.0, of_all_topics=False)
    cache.learn(answer(topic("a", 2, epoch=3, topic_id=0)), 1.0, of_all_topics=False)
    assert cache.view(["a"]).partition("a", 0).leader == 2


def test_an_older_answer_that_knows_of_no_leader_leaves_the_newer_one_believed() -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a")), 0.0, of_all_topics=False)
    cache.learn(answer(topic("a", -1, epoch=3)), 1.0, of_all_topics=False)
    assert cache.is_fresh(["a"], 2.0)
    cache.learn(answer(topic("a", -1, epoch=5)), 1.0, of_all_topics=False)
    assert not cache.is_fresh(["a"], 2.0)


def test_a_broker_that_has_not_heard_of_a_grown_topic_takes_no_partition_away() -> None:
    cache = MetadataCache()
    cache.learn(answer(topic("a", partitions=3)), 0.0, of_all_topics=True)
    cache.learn(answer(topic("a", partitions=1)), 1.0, of_all_topics=True)
    assert set(cache.view(["a"]).topics["a"].partitions) == {0, 1, 2}
    cache.learn(answer(topic("a", topic_id=8)), 2.0, of_all_topics=True)
    assert set(cache.view(["a"]).topics["a"].partitions) == {0}


def test_lost_is_what_was_there_and_is_not_known_any_more() -> None:
    cache = MetadataCache()
    there = [topic(name) for name in "abc"]
    cache.learn(answer(*there, topic("d", error_code=3)), 0.0, of_all_topics=False)
    unknown, hidden = topic("a", error_code=3), topic("b", error_code=29)
    assert cache.lost(answer(unknown, hidden), of_all_topics=False) == ("a",)
    assert cache.lost(answer(topic("b")), of_all_topics=True) == ("a", "c")
    assert cache.lost(answer(topic("d", error_code=3)), of_all_topics=False) == ()


def test_a_second_opinion_adds_only_what_it_has_found() -> None:
    first = answer(topic("a"), topic("b", error_code=3))
    second = answer(topic("b"), topic("c", error_code=3), topic("d", error_code=29))
    assert with_second_opinion(first, second) == answer(topic("a"), topic("b"))


def frame(number: int, *topics: MetadataResponseTopic) -> bytes:
    """Return an answer to the request of this number, without its size."""
    told = MetadataResponse(brokers=(), topics=topics)
    return b"".join(encode_response(number, told, 12))[4:]


@pytest.mark.parametrize("partitions", [1, 1_000])
def test_an_answer_is_what_its_bytes_say_however_often_the_same_were_heard(partitions: int) -> None:
    before, after = topic("t", 1, partitions=partitions), topic("t", 2, partitions=partitions)
    frames = [frame(number, one) for number, one in enumerate((before, before, after, before))]
    assert (len(frames[0]) > LONG_BYTES) is (partitions > 1)
    read = [read_metadata(one, 12) for one in frames]
    wanted = [answer(one).topics for one in (before, before, after, before)]
    assert [one.topics for one in read] == wanted
    assert (read[0] is read[1]) is (partitions > 1)
    for _ in range(2):
        with pytest.raises(MalformedMessage):
            read_metadata(frames[0][:-2], 12)
