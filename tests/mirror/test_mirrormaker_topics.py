"""Heartbeats and offset syncs between two bundled clusters, and a promotion that leaves them be."""

from pathlib import Path

import pytest

from offset_translation import heartbeat, offset_sync
from tests.failover.promoting import failover, finish
from tests.failover.two_sites import Sites, create_topic, produce, run_sites
from tests.mirror.daemon import configure, read_batches, run_mirror, wait_until
from wire.record_batch import Record, iterate_records


def records_of(sites: Sites, site: str, topic: str) -> list[Record]:
    cluster = getattr(sites, site)
    return [one for stored in read_batches(cluster, topic) for one in iterate_records(stored.data)]


@pytest.mark.story
@pytest.mark.integration
def test_heartbeats_arrive_offset_syncs_follow_and_a_promotion_leaves_both_be(
    tmp_path: Path, witness: str
) -> None:
    more = "mirrormaker: {heartbeats: true, offset_syncs: source, interval_ms: 200}"
    with run_sites(tmp_path / "sites", witness, shares_zookeeper=True) as sites:
        create_topic(sites.dc1, "beaten")
        produce(sites.dc1, "beaten", range(20))
        with run_mirror(configure(sites, tmp_path, ".*", more)) as mirror:
            mirror.wait_mirrored("heartbeats", 3)
            mirror.wait_mirrored("beaten", 20)

            def last_sync() -> tuple[int, int]:
                found = records_of(sites, "dc1", "mm2-offset-syncs.dc2.internal")
                syncs = [offset_sync.decode(r.key or b"", r.value or b"") for r in found]
                of_topic = [one for one in syncs if one.topic == "beaten"]
                return of_topic[-1].upstream_offset, of_topic[-1].downstream_offset

            wait_until("the sync", lambda: last_sync() == (19, 19))
            produce(sites.dc1, "beaten", range(20, 25))
            wait_until("the next sync", lambda: last_sync() == (24, 24))
            assert mirror.status()["faults"] == []
            promoted = finish(failover("promote", "dc2", str(mirror.configuration)))
            assert promoted.status == 0, promoted
            assert "moves    1 topics, 1 partitions" in promoted.output
        there = records_of(sites, "dc2", "dc1.heartbeats")
        beats = [heartbeat.decode(r.key or b"", r.value or b"") for r in there]
        assert {(one.source, one.target) for one in beats} == {("dc1", "dc2")}
        times = [one.time_ms for one in beats]
        assert times == sorted(times)
        assert len(times) >= 3
