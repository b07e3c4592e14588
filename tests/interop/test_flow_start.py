"""A flow that starts at the latest, or at a time, with Apache Kafka as source, target and both."""

from pathlib import Path

import pytest

from tests.interop.sites import (
    RunningPair,
    append_batches,
    commit,
    committed,
    create_topic,
    read_committed,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until
from wire.compression import Compression
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")

NINE_MS = 1_767_225_609_000
"""2026-01-01T00:00:09Z"""


def test_a_kill_behind_the_begin_neither_skips_nor_brings_what_was_before(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "latest")
    write(sites.dc1, "latest", 0, 50)
    commit(sites.dc1, "latest-readers", "latest", 20)
    with run_mirror(sites.configure(tmp_path, "latest.*", "start: latest")) as mirror:
        line = mirror.wait_state("latest", "streaming")
        assert (line["begun_at"], line["begun_by"]) == (50, "latest")
        mirror.kill()
        write(sites.dc1, "latest", 50, 30)
        create_topic(sites.dc1, "latest-made-later")
        write(sites.dc1, "latest-made-later", 0, 10)
        mirror.start()
        mirror.wait_mirrored("latest", 80)
        mirror.wait_mirrored("latest-made-later", 10)
        wait_until("a place", lambda: committed(sites.dc2, "latest-readers", "latest") == 0)
        assert mirror.stop() == 0
    here = read_committed(sites.dc1, "latest")
    assert [one[1:] for one in read_committed(sites.dc2, "latest")] == [
        one[1:] for one in here[50:]
    ]
    assert len(read_committed(sites.dc2, "latest-made-later")) == 10


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_a_time_within_a_batch_is_where_the_flow_starts(
    sites: RunningPair, tmp_path: Path, codec: Compression
) -> None:
    topic = f"timed-{codec.name.lower()}"
    create_topic(sites.dc1, topic)
    batches = [
        build_batch(
            [
                Record(at, NINE_MS + 1_000 * (first + at - 9), b"k", b"%d" % (first + at))
                for at in range(6)
            ],
            compression=codec,
        )
        for first in (0, 6, 12)
    ]
    append_batches(sites.dc1, topic, batches)
    start = "start: 2026-01-01T00:00:09Z"
    with run_mirror(sites.configure(tmp_path, topic, start)) as mirror:
        mirror.wait_mirrored(topic, 18)
        assert mirror.stop() == 0
    values = [value for _, _, value in read_committed(sites.dc2, topic)]
    assert values == [b"%d" % number for number in range(9, 18)]
