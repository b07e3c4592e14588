"""Requests to create or grow a topic are refused for Kafka's reasons, with Kafka's codes."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.cluster import ApiError, Cluster
from broker.controller.topics import Chances, TopicSpec, illegal_name, plan_creation, plan_growth
from broker.zookeeper.tree import BrokerRegistration, TopicAssignment
from wire.errors import ErrorCode

CHANCES = Chances(topic_id=UUID(int=7), start=0, shift=0)
DEFAULTS = TopicSpec(name="", partitions=2, replication_factor=1)
PRESENT = TopicAssignment(topic_id=UUID(int=1), replicas={0: (1, 2), 1: (2, 0)})
CLUSTER = Cluster(
    controller_epoch=1,
    live={id_: BrokerRegistration(broker_id=id_, host="h", port=id_) for id_ in range(3)},
    topics={"present.topic": PRESENT},
)


def create(spec: TopicSpec) -> TopicAssignment | ApiError:
    return plan_creation(CLUSTER, spec, DEFAULTS, CHANCES)


def test_defaults_fill_in_for_minus_one() -> None:
    assert create(TopicSpec(name="t")) == TopicAssignment(
        topic_id=UUID(int=7), replicas={0: (0,), 1: (1,)}
    )


def test_a_given_assignment_is_taken_as_it_is() -> None:
    planned = create(TopicSpec(name="t", assignment={1: (0, 2), 0: (2, 1)}))
    assert isinstance(planned, TopicAssignment)
    assert planned.replicas == {0: (2, 1), 1: (0, 2)}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (TopicSpec(name="present.topic"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (TopicSpec(name="present_topic"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicSpec(name="../escape"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicSpec(name="t", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (TopicSpec(name="t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicSpec(name="t", replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicSpec(name="t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (TopicSpec(name="t", configs={"no.such.thing": "1"}), ErrorCode.INVALID_CONFIG),
        (TopicSpec(name="t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (TopicSpec(name="t", assignment={1: (0,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicSpec(name="t", assignment={0: (0, 0)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (TopicSpec(name="t", assignment={0: (9,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            TopicSpec(name="t", assignment={0: (0,), 1: (1, 2)}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (TopicSpec(name="t", partitions=1, assignment={0: (0,)}), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused(spec: TopicSpec, error: ErrorCode) -> None:
    planned = create(spec)
    assert isinstance(planned, ApiError)
    assert planned.error is error


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250])
def test_names_that_would_escape_or_confuse_are_illegal(name: str) -> None:
    assert illegal_name(name) is not None


@pytest.mark.parametrize("name", ["a", "...", "a.b-c_D9", "x" * 249])
def test_other_names_are_legal(name: str) -> None:
    assert illegal_name(name) is None


def test_growth_keeps_what_is_there_and_goes_on_round_robin() -> None:
    grown = plan_growth(CLUSTER, "present.topic", 4, None)
    assert isinstance(grown, TopicAssignment)
    assert grown.topic_id == PRESENT.topic_id
    assert dict(grown.replicas) == {0: (1, 2), 1: (2, 0), 2: (0, 2), 3: (1, 2)}


@pytest.mark.parametrize(
    ("name", "total", "given", "error"),
    [
        ("absent", 4, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("present.topic", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("present.topic", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("present.topic", 3, [[0], [1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("present.topic", 3, [[0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_cannot_be_is_refused(
    name: str, total: int, given: list[list[int]] | None, error: ErrorCode
) -> None:
    planned = plan_growth(CLUSTER, name, total, given)
    assert isinstance(planned, ApiError)
    assert planned.error is error


def test_an_internal_topic_does_not_grow_away_from_what_is_in_it() -> None:
    """A group's positions lie in the partition that the hash of its name and their number give."""
    internal = replace(CLUSTER, topics={"__consumer_offsets": PRESENT})
    planned = plan_growth(internal, "__consumer_offsets", 4, None)
    assert isinstance(planned, ApiError)
    assert planned.error is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_is_going_away_is_not_there_for_growth_but_its_name_is_taken() -> None:
    going = replace(CLUSTER, deleting=frozenset({"present.topic"}))
    grown = plan_growth(going, "present.topic", 4, None)
    assert isinstance(grown, ApiError)
    assert grown.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    created = plan_creation(going, TopicSpec(name="present.topic"), DEFAULTS, CHANCES)
    assert isinstance(created, ApiError)
    assert "marked for deletion" in (created.message or "")
