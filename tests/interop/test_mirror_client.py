"""MirrorMaker 2's own client (RemoteClusterUtils) against a target that our mirror has written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clusters import run_cluster
from tests.interop.peers import NEWEST_3, NEWEST_MIRROR_MAKER
from tests.interop.peers.tools import run_tool
from tests.interop.sites import (
    BUNDLED,
    Pair,
    RunningPair,
    commit,
    committed,
    create_topic,
    end_of,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until
from tests.zookeeper import run_witness

pytestmark = pytest.mark.matrix(subject="MirrorMaker's clients on our mirror's topics")

PROGRAM = Path(__file__).parent / "foreign" / "AskMirrorClient.java"
SETTINGS = "mirrormaker: {heartbeats: true, offset_syncs: target, interval_ms: 200}"
GROUP = "billing"


@pytest.mark.parametrize(
    ("version", "names", "policy", "topic"),
    [
        (NEWEST_MIRROR_MAKER, "prefixed", "DefaultReplicationPolicy", "dc1.orders"),
        (NEWEST_3, "identical", "IdentityReplicationPolicy", "orders"),
    ],
)
def test_the_java_client_finds_clusters_and_translates_as_we_do(
    version: str, names: str, policy: str, topic: str, tmp_path: Path
) -> None:
    with (
        run_cluster(tmp_path, name="dc1") as dc1,
        run_cluster(tmp_path, name="dc2") as dc2,
        run_witness(tmp_path / "witness") as witness,
    ):
        sites = RunningPair(
            pair=Pair(source=BUNDLED, target=BUNDLED), dc1=dc1, dc2=dc2, witness=witness
        )
        create_topic(dc1, "orders", 2)
        write(dc1, "orders", 0, 500)
        ends = [end_of(dc1, "orders", index) for index in range(2)]
        commit(dc1, GROUP, "orders", ends[0] // 2, 0)
        commit(dc1, GROUP, "orders", ends[1] - 1, 1)
        file = sites.configure(tmp_path, "orders", f"names: {names}\n    {SETTINGS}")
        with run_mirror(file) as mirror:
            wait_until(
                "mirrored", lambda: sum(map(mirror.mirrored_end, ["orders"] * 2, [0, 1])) == 500
            )
            wait_until("the group", lambda: committed(dc2, GROUP, topic, 1) == ends[1] - 1)
            mirror.wait_mirrored("heartbeats", 3)
            wait_until("syncs", lambda: end_of(dc2, "mm2-offset-syncs.dc1.internal") >= 2)
            told = subprocess.run(
                [sys.executable, "-m", "mirror.cli", "translate", GROUP, "--json", str(file)],
                capture_output=True,
                text=True,
                timeout=180,
                check=True,
            )
            java = run_tool(
                version,
                str(PROGRAM),
                dc2.bootstrap,
                policy,
                "dc1",
                GROUP,
                "heartbeat=dc1.heartbeats",
                "checkpoint=dc1.checkpoints.internal",
                "sync=mm2-offset-syncs.dc1.internal",
                is_mirror_maker=True,
            )
    answers = dict(line.split(": ", 1) for line in java.splitlines())
    ours = {
        f"{topic}-{row['partition']}": row["translated"]
        for row in json.loads(told.stdout)["positions"]
    }
    theirs = dict(pair.split("=") for pair in answers["offsets"].strip("{}").split(", "))
    assert {place: int(offset) for place, offset in theirs.items()} == ours
    assert ours == {f"{topic}-0": ends[0] // 2, f"{topic}-1": ends[1] - 1}
    assert answers["hops"] == "1"
    assert answers["hops of nobody"] == "-1"
    assert answers["upstream"] == "[dc1]"
    assert answers["heartbeats"] == "[dc1.heartbeats]"
    assert answers["checkpoints"] == "[dc1.checkpoints.internal]"
    assert answers["heartbeat"] == "dc1 dc2 true"
    assert f"topicPartition={topic}-" in answers["checkpoint"]
    assert set(answers["sync"].split("|")) >= {
        f"OffsetSync{{topicPartition=orders-{index}, upstreamOffset={end - 1}, "
        f"downstreamOffset={end - 1}}}"
        for index, end in enumerate(ends)
    }
