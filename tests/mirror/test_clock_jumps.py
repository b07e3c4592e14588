"""The clocks of brokers and mirrors are set by hours, forwards and back, while records flow."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.failover.two_sites import QUIET, run_sites
from tests.mirror.daemon import configure, run_mirror
from tests.mirror.working_together import (
    PARTITIONS,
    Writer,
    assert_mirrored_once_in_order,
    wait_shared,
)
from tests.zookeeper import address_for_cluster

pytestmark = pytest.mark.integration

CLOCK = Path(__file__).parents[1] / "doubles" / "jumping_clock"
HOURS_S = 5 * 3_600
NAMES = ("a", "b")


@pytest.mark.story
def test_clocks_that_are_set_by_hours_stop_nothing_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, witness: str
) -> None:
    address_for_cluster()  # the ZooKeeper of both, which keeps the true time
    file = tmp_path / "clock"
    file.write_text("0")
    monkeypatch.setenv("JUMPING_CLOCK", str(file))
    monkeypatch.setenv("PYTHONPATH", str(CLOCK))
    with run_sites(tmp_path / "sites", witness, shares_zookeeper=True) as sites:
        admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})
        # What these records say of their time has long been over.
        topic = NewTopic("jumped", PARTITIONS, 1, config={"retention.ms": "-1"})
        admin.create_topics([topic])["jumped"].result(20)
        configuration = configure(sites, tmp_path, "jumped")
        with run_mirror(configuration, "a") as a, run_mirror(configuration, "b") as b:
            workers = {"a": a, "b": b}
            wait_shared(workers, NAMES)
            writer = Writer(sites.dc1, "jumped", 1)
            for jump_s in (HOURS_S, -HOURS_S):
                writer.write(10)
                file.write_text(str(jump_s))
                sites.dc2.kill_broker(0)
                writer.write(10)
                sites.dc2.start_broker(0)
                assert_mirrored_once_in_order(sites, "jumped")
                wait_shared(workers, NAMES)
