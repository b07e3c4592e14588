"""A source that still writes messages of before Kafka 0.11, as a 3.9 with old settings does."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.clusters import run_cluster
from tests.interop.peers import KAFKA_3_ZOOKEEPER, run_kafka
from tests.interop.sites import (
    PAIRS,
    QUIET,
    RunningPair,
    create_topic,
    end_of,
    read_batches,
    read_committed,
)
from tests.mirror.daemon import run_mirror
from tests.zookeeper import run_witness
from wire.record_batch import UnsupportedMagic

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")

CODECS = ("none", "gzip", "snappy", "lz4")
EACH = 20


@pytest.fixture(params=["0.10.2", "0.9.0"])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RunningPair]:
    settings = {
        "inter.broker.protocol.version": "2.8",
        "log.message.format.version": str(request.param),
    }
    with ExitStack() as stack:
        run = run_kafka(tmp_path, KAFKA_3_ZOOKEEPER, name="dc1", overrides=settings)
        dc1 = stack.enter_context(run)
        dc2 = stack.enter_context(run_cluster(tmp_path, name="dc2"))
        witness = stack.enter_context(run_witness(tmp_path / "witness"))
        yield RunningPair(pair=PAIRS[0], dc1=dc1, dc2=dc2, witness=witness)


def test_old_messages_arrive_whatever_their_codec(old: RunningPair, tmp_path: Path) -> None:
    create_topic(old.dc1, "old")
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": old.dc1.bootstrap,
                "compression.type": codec,
                "linger.ms": 200,
                **QUIET,
            }
        )
        for number in range(EACH):
            value = None if number == 3 else b"%d" % number * 30
            producer.produce("old", value, None if number == 5 else codec.encode(), 0)
        assert producer.flush(60) == 0
    with pytest.raises(UnsupportedMagic):
        read_batches(old.dc1, "old")
    with run_mirror(old.configure(tmp_path, "old")) as mirror:
        mirror.wait_mirrored("old", end_of(old.dc1, "old"))
        assert mirror.stop() == 0
    source = read_committed(old.dc1, "old")
    assert len(source) == EACH * len(CODECS)
    assert read_committed(old.dc2, "old") == source
