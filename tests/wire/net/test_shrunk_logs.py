"""A log that was cut while it was read does not reach the offset that it was to be read to."""

import pytest

from tests.doubles.fake_cluster import run_fake_cluster
from wire.net import RequestRefused, open_cluster, partition_operations
from wire.net.operations import append, read_partition
from wire.record_batch import Record, build_batch


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_reading_a_log_that_was_cut_before_its_stop_is_refused_after_a_while(
    monkeypatch: pytest.MonkeyPatch, isolation_level: int
) -> None:
    monkeypatch.setattr(partition_operations, "SHORT_S", 0.3)
    monkeypatch.setattr(partition_operations, "FETCH_WAIT_MS", 100)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, build_batch([Record(0, 1_000, None, b"v")]))
        reader = read_partition(cluster, "orders", 0, 0, 2, isolation_level=isolation_level)
        assert (await anext(reader))[0].next_offset == 1
        with pytest.raises(RequestRefused, match=r"ends at 1 and not at 2.*OFFSET_NOT_AVAILABLE"):
            await anext(reader)
