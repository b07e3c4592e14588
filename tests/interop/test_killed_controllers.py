"""Planned promotions away from Apache Kafka whose controller is killed at every step."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation

from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName
from runtime.coordination.witness import ActiveSite
from tests.failover.promoting import (
    Ended,
    WitnessView,
    end_lease,
    failover,
    finish,
    kill_at,
    open_witness,
)
from tests.interop.closing import (
    GROUP,
    SUBJECT,
    TOPIC,
    applications_may,
    fenced,
    stage,
    write_as_user,
)
from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, Kind
from tests.interop.rights import denied_creation
from tests.interop.secured import SecuredKafka
from tests.interop.sites import Site, commit, committed, end_of, read_committed, write
from tests.mirror.daemon import run_mirror, wait_until

pytestmark = pytest.mark.matrix(subject=SUBJECT)

STEPS = ORDER[PromotionKind.PLANNED]
RECORDS = 500


def promote_over_kills(witness: WitnessView, site: str, file: Path, epoch: int) -> Ended:
    """Promote; a controller is killed once at every step that it reaches."""
    killed: list[StepName] = []
    for step in STEPS:
        if kill_at(witness, failover("promote", site, str(file), niceness=10), step, epoch):
            killed.append(step)
        end_lease(witness)
    assert len(killed) > 5, f"only {killed} were slow enough to be killed in"
    ended = finish(failover("promote", site, str(file)))
    journal = witness.journals()[-1]
    assert journal.state is PromotionState.DONE, ended
    assert [record.name for record in journal.steps] == [*STEPS]
    assert witness.active() == ActiveSite(site=site, epoch=epoch)
    return ended


def refuses_writes(site: SecuredKafka) -> bool:
    """Tell whether an application is refused for want of the right, and for nothing else."""
    refused = write_as_user(site)
    assert refused is None or refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    return refused is not None


def values_of(site: Site) -> list[bytes]:
    """The values of all records of the topic, sorted."""
    found = (read_committed(site, TOPIC, partition) for partition in range(2))
    return sorted(value or b"" for records in found for _, _, value in records)


@pytest.mark.parametrize(
    ("source", "target"),
    [(KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT), (KAFKA_4_KRAFT, KAFKA_3_KRAFT)],
    ids=str,
)
def test_whatever_step_a_controller_is_killed_at_the_same_command_goes_on_there_and_back(
    tmp_path: Path, source: Kind, target: Kind
) -> None:
    with (
        stage(tmp_path, source, target) as at,
        run_mirror(at.file) as mirror,
        open_witness(at.witness, "/closing") as witness,
    ):
        dc1, dc2 = at.dc1.cluster, at.dc2.cluster
        applications_may(dc1, AclOperation.ALL)
        write(dc1, TOPIC, 0, RECORDS)
        commit(dc1, GROUP, TOPIC, 100)
        mirror.wait_mirrored(TOPIC, end_of(dc1, TOPIC))
        applications_may(dc2, AclOperation.ALL)
        there = promote_over_kills(witness, "dc2", at.file, 1)
        assert there.status in {0, 2}, there
        assert fenced(at.file) == {"dc1": [TOPIC], "dc2": []}
        assert (denied_creation(dc1), denied_creation(dc2)) == ({TOPIC}, set())
        assert refuses_writes(at.dc1)
        assert not refuses_writes(at.dc2)
        assert committed(dc2, GROUP, TOPIC) == 100
        wait_until("the way back", lambda: values_of(dc1) == values_of(dc2))
        back = promote_over_kills(witness, "dc1", at.file, 2)
        assert back.status in {0, 2}, back
        assert fenced(at.file) == {"dc1": [], "dc2": [TOPIC]}
        assert (denied_creation(dc1), denied_creation(dc2)) == (set(), {TOPIC})
        assert refuses_writes(at.dc2)
        assert not refuses_writes(at.dc1)
        assert committed(dc1, GROUP, TOPIC) == 100
        written = [str(number).encode() for number in range(RECORDS)]
        assert values_of(dc1) == sorted([*written, *[b"by an application"] * 2])
