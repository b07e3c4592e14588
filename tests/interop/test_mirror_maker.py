"""MirrorMaker 2 between two bundled clusters; ours beside it, and what each makes of the source."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.clusters import RunningCluster, run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import (
    NEWEST_3,
    NEWEST_MIRROR_MAKER,
    SAME_NAMES,
    SINGLE_COPY,
    TUNED,
    Site,
    run_mirror_maker,
)
from tests.interop.sites import (
    BUNDLED,
    QUIET,
    TIMEOUT_S,
    Pair,
    RunningPair,
    commit,
    committed,
    create_topic,
    end_of,
    read_committed,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until
from tests.zookeeper import run_witness

pytestmark = pytest.mark.matrix(subject="The bundled broker with foreign clients")

RECORDS = 2_000
MIRROR_MAKERS = [
    Peer(name="MirrorMaker", version=version) for version in (NEWEST_3, NEWEST_MIRROR_MAKER)
]


@pytest.mark.parametrize("peer", MIRROR_MAKERS, ids=str)
def test_mirror_maker_copies_between_bundled_clusters_as_our_mirror_does(
    peer: Peer, tmp_path: Path
) -> None:
    with (
        run_cluster(tmp_path, name="dc1") as dc1,
        run_cluster(tmp_path, name="dc2") as dc2,
        run_witness(tmp_path / "witness") as witness,
    ):
        for topic in ("theirs", "ours"):
            create_topic(dc1, topic, 3)
            write(dc1, topic, 0, RECORDS)
        settings = {
            **SINGLE_COPY,
            **SAME_NAMES,
            **TUNED,
            "topics": "theirs",
            "refresh.topics.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
        }
        with run_mirror_maker(
            tmp_path / "mm2",
            version=peer.version,
            source=Site(alias="dc1", bootstrap=dc1.bootstrap),
            target=Site(alias="dc2", bootstrap=dc2.bootstrap),
            settings=settings,
        ) as mirror_maker:
            wait_until(
                "MirrorMaker's copy",
                lambda: _count(dc2, "theirs") == RECORDS,
                90,
            )
            commit(dc1, "theirs-group", "theirs", 50)
            wait_until(
                "MirrorMaker's group", lambda: committed(dc2, "theirs-group", "theirs") >= 0, 60
            )
            assert mirror_maker.is_running
        sites = RunningPair(
            pair=Pair(source=BUNDLED, target=BUNDLED), dc1=dc1, dc2=dc2, witness=witness
        )
        commit(dc1, "ours-group", "ours", 50)
        with run_mirror(sites.configure(tmp_path, "ours")) as mirror:
            wait_until("our copy", lambda: _count(dc2, "ours") == RECORDS)
            wait_until("our group", lambda: committed(dc2, "ours-group", "ours") == 50)
            assert mirror.stop() == 0
        for partition in range(3):
            source = [one[1:] for one in read_committed(dc1, "theirs", partition)]
            assert source == [one[1:] for one in read_committed(dc2, "theirs", partition)]
            assert read_committed(dc2, "ours", partition) == read_committed(dc1, "ours", partition)
        assert committed(dc2, "theirs-group", "theirs") <= 50


def _count(cluster: RunningCluster, topic: str) -> int:
    """Return how many records a topic of three partitions holds; 0 before it is there."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    if topic not in admin.list_topics(timeout=TIMEOUT_S).topics:
        return 0
    return sum(end_of(cluster, topic, partition) for partition in range(3))
