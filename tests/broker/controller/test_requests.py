"""Leaders, leaving brokers and operators ask; the answers and their reasons are Kafka's."""

from dataclasses import replace

import pytest

from broker.controller.cluster import (
    ApiError,
    Decision,
    Election,
    ElectionRequested,
    IsrChange,
    IsrProposed,
    PartitionAndReplica,
    ShutdownRequested,
)
from broker.controller.decisions import decide
from broker.controller.requests import imbalanced, still_led
from tests.broker.controller.clusters import EPOCH, T0, cluster, state
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition

IN_SYNC = cluster({0: state(0, (0, 1, 2))})


def propose(
    isr: tuple[int, ...],
    *,
    broker: int = 0,
    before: Decision | None = None,
    partition: TopicPartition = T0,
    leader_epoch: int = 5,
    version: int = 8,
    recovery: int = 0,
    epochs: dict[int, int] | None = None,
) -> Decision:
    members = {id_: (epochs or {}).get(id_, 100 + id_) for id_ in isr}
    change = IsrChange(members, leader_epoch, version, recovery)
    found = IN_SYNC if before is None else before.cluster
    return decide(found, IsrProposed(broker_id=broker, changes={partition: change}))


def test_a_leader_gets_the_isr_it_asks_for() -> None:
    decision = propose((0, 2))
    written = decision.writes[T0]
    assert (written.isr, written.leader_epoch, written.version) == ((0, 2), 5, 9)
    assert written.controller_epoch == EPOCH
    assert decision.published == {T0}
    assert not decision.announced
    assert decision.outcomes == {T0: ApiError()}


def test_asking_twice_for_the_same_changes_nothing() -> None:
    """The first answer was lost: the leader still believes in the version before it."""
    first = propose((0, 2))
    again = propose((2, 0), before=first)
    assert again.outcomes == {T0: ApiError()}
    assert not again.writes
    assert again.cluster == first.cluster


def test_the_isr_as_it_is_makes_void_what_was_asked_for_before() -> None:
    renewed = propose((0, 1, 2))
    assert renewed.outcomes == {T0: ApiError()}
    assert (renewed.writes[T0].isr, renewed.writes[T0].version) == ((0, 1, 2), 9)
    late = propose((0, 1), before=renewed)
    assert late.outcomes == {T0: ApiError(ErrorCode.INVALID_UPDATE_VERSION)}
    again = propose((0, 1, 2), before=renewed)
    assert again.outcomes == {T0: ApiError()}
    assert not again.writes


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"partition": TopicPartition("t", 7)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"version": 9}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 6}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"version": 7}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"broker": 1}, ErrorCode.INVALID_REQUEST),
        ({"isr": (1, 2)}, ErrorCode.INVALID_REQUEST),
        ({"isr": ()}, ErrorCode.INVALID_REQUEST),
        ({"isr": (0, 3)}, ErrorCode.INVALID_REQUEST),
        ({"recovery": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_leader_that_knows_less_or_wants_the_impossible_is_refused(
    asked: dict[str, object], error: ErrorCode
) -> None:
    decision = propose(**{"isr": (0, 1), **asked})  # type: ignore[arg-type]
    assert [outcome.error for outcome in decision.outcomes.values()] == [error]
    assert decision.cluster == IN_SYNC


@pytest.mark.parametrize(
    "before",
    [
        cluster({0: state(0, (0, 1))}, live=(0, 1)),
        replace(cluster({0: state(0, (0, 1))}), leaving=frozenset({2})),
        replace(cluster({0: state(0, (0, 1))}), failed=frozenset({PartitionAndReplica("t", 0, 2)})),
    ],
    ids=["dead", "leaving", "disk"],
)
def test_who_cannot_lead_does_not_join(before: object) -> None:
    decision = propose((0, 1, 2), before=Decision(cluster=before))  # type: ignore[arg-type]
    assert decision.outcomes[T0].error is ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_joins_in_the_life_of_its_broker_that_the_leader_saw() -> None:
    before = Decision(cluster=cluster({0: state(0, (0, 1))}))
    stale = propose((0, 1, 2), before=before, epochs={2: 77})
    assert stale.outcomes[T0].error is ErrorCode.INELIGIBLE_REPLICA
    unknown = propose((0, 1, 2), before=before, epochs={2: -1})
    assert unknown.writes[T0].isr == (0, 1, 2)


def test_a_leader_says_that_it_has_recovered() -> None:
    before = Decision(cluster=cluster({0: state(0, (0,), recovery=1)}))
    too_early = propose((0, 1), before=before, recovery=1)
    assert too_early.outcomes[T0].error is ErrorCode.INVALID_REQUEST
    recovered = propose((0, 1), before=before)
    assert (recovered.writes[T0].recovery, recovered.writes[T0].isr) == (0, (0, 1))


def test_a_leaving_broker_loses_its_leaderships_and_its_place_in_every_isr() -> None:
    before = cluster({0: state(0, (0, 1, 2)), 1: state(1, (1, 0)), 2: state(0, (0,))})
    decision = decide(before, ShutdownRequested(broker_id=0))
    states = {part.partition: known for part, known in decision.writes.items()}
    assert (states[0].leader, states[0].isr, states[0].leader_epoch) == (1, (1, 2), 6)
    assert (states[1].leader, states[1].isr, states[1].leader_epoch) == (1, (1,), 6)
    assert 2 not in states
    assert decision.stopped == {PartitionAndReplica("t", 1, 0)}
    assert decision.announced == {TopicPartition("t", 0), TopicPartition("t", 1)}
    assert still_led(decision.cluster, 0) == [TopicPartition("t", 2)]
    again = decide(decision.cluster, ShutdownRequested(broker_id=0))
    assert not again.writes


def test_what_only_the_leaving_broker_holds_stays_with_it() -> None:
    decision = decide(cluster({0: state(0, (0,))}, (0,)), ShutdownRequested(broker_id=0))
    assert not decision.writes
    assert still_led(decision.cluster, 0) == []


def elect(election: Election, found: object, partition: TopicPartition = T0) -> Decision:
    event = ElectionRequested(election=election, partitions=frozenset({partition}))
    return decide(found, event)  # type: ignore[arg-type]


def test_the_preferred_replica_leads_again() -> None:
    decision = elect(Election.PREFERRED, cluster({0: state(2, (2, 0))}))
    assert (decision.writes[T0].leader, decision.writes[T0].isr) == (0, (2, 0))
    assert decision.outcomes == {T0: ApiError()}


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (IN_SYNC, ErrorCode.ELECTION_NOT_NEEDED),
        (cluster({0: state(2, (2, 1))}), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (cluster({0: state(2, (2, 0))}, live=(1, 2)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (cluster({}), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (replace(IN_SYNC, deleting=frozenset("t")), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_preferred_election_that_cannot_be_has_kafkas_reason(
    found: object, error: ErrorCode
) -> None:
    decision = elect(Election.PREFERRED, found)
    assert decision.outcomes[T0].error is error
    assert not decision.writes


def test_an_unclean_election_by_request_needs_a_live_replica_and_no_leader() -> None:
    offline = cluster({0: state(-1, (0,))}, live=(2, 3))
    elected = elect(Election.UNCLEAN, offline).writes[T0]
    assert (elected.leader, elected.isr, elected.recovery) == (2, (2,), 1)
    nobody = elect(Election.UNCLEAN, cluster({0: state(-1, (0,))}, live=(3,)))
    assert nobody.outcomes[T0].error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    led = elect(Election.UNCLEAN, IN_SYNC)
    assert led.outcomes[T0].error is ErrorCode.ELECTION_NOT_NEEDED


def test_leaders_go_back_when_a_broker_leads_too_few() -> None:
    nine_of_ten = {index: state(0, (0, 1)) for index in range(9)} | {9: state(1, (0, 1))}
    assert imbalanced(cluster(nine_of_ten), 10) == frozenset()
    assert imbalanced(cluster(nine_of_ten), 9) == {TopicPartition("t", 9)}
    cannot = {index: state(1, (1,)) for index in range(3)} | {3: state(1, (1, 0))}
    assert imbalanced(cluster(cannot), 10) == {TopicPartition("t", 3)}
