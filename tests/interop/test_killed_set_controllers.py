"""One set of topics moves there and back on Apache Kafka while its controllers are killed.

The other set's application writes all the while, on a site whose fence, epoch and positions stay.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
import yaml
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AclOperation, ResourceType

from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName
from runtime.coordination.witness import ActiveSite
from tests.failover.held import held_promotion
from tests.failover.promoting import WitnessView, end_lease, failover, finish, kill_at, open_witness
from tests.interop.closing import SUBJECT, TOPIC, Stage, applications_may, stage
from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_4_KRAFT, Kind
from tests.interop.programs import run_program
from tests.interop.rights import give
from tests.interop.secured import SecuredKafka
from tests.interop.sites import (
    Site,
    commit,
    committed,
    create_topic,
    read_committed,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import USER

pytestmark = pytest.mark.matrix(subject=SUBJECT)

STEPS: Final = ORDER[PromotionKind.PLANNED]
PAY: Final = f"{TOPIC}-pay"
SET: Final = ("--set", "pay")
RECORDS: Final = 200
ORPHAN_MS: Final = 3_000


def give_sets(at: Stage) -> None:
    """Have all programs' files name the set."""
    for file in (at.file, at.applications):
        document = yaml.safe_load(file.read_text())
        document["failover"] |= {"sets": {"pay": {"topics": PAY}}, "orphan_after_ms": ORPHAN_MS}
        file.write_text(yaml.safe_dump(document))


@dataclass(slots=True, kw_only=True)
class Writer:
    """An application of the default set, which is never moved."""

    site: SecuredKafka
    acked: list[bytes] = field(default_factory=list)
    refused: list[KafkaError] = field(default_factory=list)
    ended: Event = field(default_factory=Event)

    def write(self) -> None:
        """Write on until `ended`; a record that is refused is not sent again."""
        producer = Producer(self.site.client("SASL_PLAINTEXT", message_timeout_ms=20_000))

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acked.append(message.value() or b"")
            else:
                self.refused.append(error)

        number = 0
        while not self.ended.wait(0.05):
            value = f"default-{number}"
            producer.produce(TOPIC, value, b"k", number % 2, on_delivery=delivered)
            producer.poll(0)
            number += 1
        assert producer.flush(60) == 0


@contextmanager
def writing(site: SecuredKafka) -> Iterator[Writer]:
    """Write until the block ends."""
    writer = Writer(site=site)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(writer.write)
        try:
            yield writer
        finally:
            writer.ended.set()
            running.result(90)


def by_set(file: Path) -> dict[str, Any]:
    """Return what `failover status` says of each set."""
    status = run_program("failover.cli", "status", "--json", str(file))
    assert status.returncode == 0, status.stderr
    found: dict[str, Any] = json.loads(status.stdout)["sets"]
    return found


def require_untouched(at: Stage) -> None:
    """The default set is where it was; at most one site takes writes of the other one."""
    found = by_set(at.file)
    assert found["default"]["active"] == {"site": "dc1", "epoch": 0, "moving_to": None}
    default = {site["name"]: site["fenced_topics"] for site in found["default"]["sites"]}
    assert default == {"dc1": [], "dc2": [TOPIC]}
    pay = {site["name"]: site["fenced_topics"] for site in found["pay"]["sites"]}
    assert [PAY] in pay.values(), f"both sites take writes: {pay}"
    assert committed(at.dc1.cluster, "default-group", TOPIC) == 50
    assert committed(at.dc2.cluster, "default-group", TOPIC) == 50


@contextmanager
def guarding(file: Path) -> Iterator[None]:
    """Run `failover serve`, which ends what dead controllers have left."""
    guard = failover("serve", str(file))
    try:
        yield
    finally:
        guard.process.terminate()
        guard.finish(60)


def kill_within_steps(at: Stage, witness: WitnessView, site: str, epoch: int) -> None:
    """Promote the set; a controller is killed once within every step that it reaches."""
    killed: list[StepName] = []
    for step in STEPS:
        program = failover("promote", site, *SET, str(at.file), niceness=10)
        if kill_at(witness, program, step, epoch):
            killed.append(step)
        end_lease(witness)
        require_untouched(at)
    assert len(killed) > 5, f"only {killed} were slow enough to be killed in"
    finish(failover("promote", site, *SET, str(at.file)))


def kill_between_steps(at: Stage, witness: WitnessView, site: str) -> None:
    """Promote the set; a controller is killed behind every step, before the next one begins."""
    for step in STEPS:
        with held_promotion(site, at.file, step, *SET):
            pass
        end_lease(witness)
        require_untouched(at)
    finish(failover("promote", site, *SET, str(at.file)))


def leave_to_guard(at: Stage, witness: WitnessView, site: str, step: StepName) -> PromotionState:
    """Kill a controller behind a step, and have `failover serve` end what it has left."""
    before = len(witness.journals())
    with held_promotion(site, at.file, step, *SET):
        pass
    with guarding(at.file):
        wait_until(
            f"a promotion left behind {step} is ended",
            lambda: witness.journals()[before].state is not PromotionState.RUNNING,
        )
    require_untouched(at)
    return witness.journals()[before].state


def values_of(site: Site, topic: str) -> list[bytes]:
    """The values of all records of a topic, sorted."""
    found = (read_committed(site, topic, partition) for partition in range(2))
    return sorted(value or b"" for records in found for _, _, value in records)


@pytest.mark.parametrize(("source", "target"), [(KAFKA_4_KRAFT, KAFKA_3_KRAFT)], ids=str)
def test_a_set_moves_over_killed_controllers_while_the_other_sets_applications_go_on(
    tmp_path: Path, source: Kind, target: Kind
) -> None:
    with stage(tmp_path, source, target, topics=f"{TOPIC}.*") as at:
        give_sets(at)
        dc1, dc2 = at.dc1.cluster, at.dc2.cluster
        create_topic(dc1, PAY, 2)
        for site in (dc1, dc2):
            applications_may(site, AclOperation.ALL)
            give(site, USER, ResourceType.TOPIC, PAY, AclOperation.ALL)
        with (
            run_mirror(at.file),
            open_witness(at.witness, "/closing") as pair,
        ):
            witness = WitnessView(pair.client, pair.paths.of_set("pay"))
            for topic in (TOPIC, PAY):
                write(dc1, topic, 0, RECORDS)
            written = sorted(b"%d" % one for one in range(RECORDS))
            for topic in (TOPIC, PAY):
                wait_until(f"{topic} is mirrored", partial(is_there, dc2, topic, written))
            commit(dc1, "default-group", TOPIC, 50)
            commit(dc1, "pay-group", PAY, 70)
            with guarding(at.file):
                wait_until("the standby is closed", lambda: is_standby_closed(at))
            wait_until("positions", lambda: committed(dc2, "default-group", TOPIC) == 50)
            with writing(at.dc1) as writer:
                kill_within_steps(at, witness, "dc2", 1)
                assert witness.active() == ActiveSite(site="dc2", epoch=1)
                assert committed(dc2, "pay-group", PAY) == 70
                write(dc2, PAY, RECORDS, RECORDS)
                wait_until("the way back", lambda: values_of(dc1, PAY) == values_of(dc2, PAY))
                kill_between_steps(at, witness, "dc1")
                assert witness.active() == ActiveSite(site="dc1", epoch=2)
                back = leave_to_guard(at, witness, "dc2", StepName.SEAL)
                assert back is PromotionState.ROLLED_BACK
                assert witness.active() == ActiveSite(site="dc1", epoch=2)
                done = leave_to_guard(at, witness, "dc2", StepName.SWITCH)
                assert done is PromotionState.DONE
                assert witness.active().site == "dc2"
            assert not writer.refused, writer.refused
            assert len(writer.acked) > 100
            written = sorted([*(b"%d" % one for one in range(RECORDS)), *writer.acked])
            wait_until("all is mirrored", lambda: values_of(dc2, TOPIC) == written)
            assert values_of(dc1, TOPIC) == written
            paid = sorted(b"%d" % one for one in range(2 * RECORDS))
            assert values_of(dc1, PAY) == paid
            assert values_of(dc2, PAY) == paid
            assert [one.state for one in witness.journals()].count(PromotionState.RUNNING) == 0


def is_there(site: Site, topic: str, written: list[bytes]) -> bool:
    """Tell whether a site has just these records."""
    return values_of(site, topic) == written


def is_standby_closed(at: Stage) -> bool:
    """Tell whether dc2 is closed for both sets."""
    found = by_set(at.file)
    closed = [
        site["fenced_topics"]
        for one in found.values()
        for site in one["sites"]
        if site["name"] == "dc2"
    ]
    return sorted(closed) == [[TOPIC], [PAY]]
