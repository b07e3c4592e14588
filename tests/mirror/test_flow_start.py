"""`mirror run` of a flow with a `start`: what it leaves on the source, and nothing else."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from offset_translation.map_records import map_topic_name
from offset_translation.map_state import MapState
from tests.commands import run_mirror_command
from tests.failover.two_sites import (
    QUIET,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    produce,
    read_all,
    values_of,
)
from tests.mirror.daemon import (
    append_batches,
    configure,
    read_batches,
    run_mirror,
    wait_until,
)
from wire.record_batch import Record, build_batch, iterate_records
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

TEN_MS = 1_767_225_600_010
"""2026-01-01T00:00:00.010Z"""


@pytest.fixture(scope="module")
def sites(shared_sites: Sites) -> Sites:
    return shared_sites


def begun(sites: Sites, topic: str) -> int | None:
    """Return where the map says that partition 0 was begun, whoever has written that."""
    state = MapState()
    for one in read_batches(sites.dc2, map_topic_name("dc1")):
        for record in iterate_records(one.data):
            state.replay(record.key, record.value)
    found = state.begins.begun.get(TopicPartition(topic, 0))
    return None if found is None else found.source_start


def test_a_mirror_killed_between_its_begin_and_its_first_record_goes_on_from_there(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "start-old")
    produce(sites.dc1, "start-old", range(5))
    commit_by_hand(sites.dc1, "start-readers", "start-old", 2)
    file = configure(sites, tmp_path, "start-.*", "start: latest")
    said = run_mirror_command("check", file).stdout
    assert "would begin 1 partitions by `start: latest`: up to 5 records before it are" in said
    with run_mirror(file) as mirror:
        line = mirror.wait_state("start-old", "streaming")
        assert (line["begun_at"], line["begun_by"], line["lag_records"]) == (5, "latest", 0)
        assert begun(sites, "start-old") == 5, "durable before anything is forwarded"
        mirror.kill()
        produce(sites.dc1, "start-old", range(5, 8))
        create_topic(sites.dc1, "start-new")
        produce(sites.dc1, "start-new", range(4))
        admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})
        admin.create_partitions([NewPartitions("start-old", 2)])["start-old"].result(60)
        produce(sites.dc1, "start-old", range(3), 1)
        mirror.start()
        for topic, index, end in (("start-old", 0, 8), ("start-old", 1, 3), ("start-new", 0, 4)):
            mirror.wait_mirrored(topic, end, index)
        wait_until("a place", lambda: committed(sites.dc2, "start-readers", "start-old") == 0)
        assert mirror.stop() == 0
    assert "began 1 partitions by `start: latest`" in run_mirror_command("check", file).stdout
    assert values_of(read_all(sites.dc2, "start-old")) == [5, 6, 7]
    assert values_of(read_all(sites.dc2, "start-old", 1)) == [0, 1, 2], "a partition added later"
    assert values_of(read_all(sites.dc2, "start-new")) == [0, 1, 2, 3], "a topic made later"


def test_a_flow_starts_at_a_time_within_a_batch(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "timed")
    records = [Record(at, TEN_MS - 10 + 5 * at, b"k", b"%d" % at) for at in range(5)]
    append_batches(sites.dc1, "timed", [build_batch(records)])
    start = "start: 2026-01-01T00:00:00.010Z"
    with run_mirror(configure(sites, tmp_path, "timed", start)) as mirror:
        mirror.wait_mirrored("timed", 5)
        assert begun(sites, "timed") == 2
        assert mirror.stop() == 0
    assert values_of(read_all(sites.dc2, "timed")) == [2, 3, 4]
