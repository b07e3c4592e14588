"""The standby takes no writes but the mirror's, from the first start on."""

import json
from pathlib import Path
from time import monotonic

import pytest
from confluent_kafka import KafkaError, Producer

from tests.failover.promoting import run_mirror, serving, tell, wait_mirroring
from tests.failover.two_sites import QUIET, Sites, create_topic, pause, produce, wait_length

pytestmark = pytest.mark.integration


TOPIC = "standby-orders"


def is_refused(bootstrap: str) -> bool:
    """Whether a foreign write is refused, and not for want of anything else."""
    told: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 2_000, **QUIET})
    producer.produce(TOPIC, b"foreign", on_delivery=lambda error, _: told.append(error))
    producer.flush(30)
    return told[0] is not None


def fenced_on_dc2(file: Path) -> list[str]:
    """Return the topics that `failover status` calls closed on dc2, whoever has closed them."""
    sites = json.loads(tell("status", "--json", str(file)).output)["sites"]
    [fenced] = [site["fenced_topics"] for site in sites if site["name"] == "dc2"]
    return list(fenced)


def test_the_standby_is_closed_before_any_promotion_and_the_mirror_goes_on(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, TOPIC)
    file = sites.configure(tmp_path, "/standby", TOPIC)
    with run_mirror(file), serving(file):
        wait_mirroring(file)
        produce(sites.dc1, TOPIC, range(10))
        wait_length(sites.dc2, TOPIC, 10)
        deadline = monotonic() + 60
        while TOPIC not in fenced_on_dc2(file):
            assert monotonic() < deadline, tell("status", str(file))
            pause(0.2)
        assert is_refused(sites.dc2.bootstrap)
        produce(sites.dc1, TOPIC, range(10, 20))
        wait_length(sites.dc2, TOPIC, 20)
        promoted = tell("promote", "dc2", str(file))
        assert promoted.status == 0, promoted
        produce(sites.dc2, TOPIC, range(20, 30))
        wait_length(sites.dc2, TOPIC, 30)
