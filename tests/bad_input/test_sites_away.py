"""A mirror whose sites are away keeps trying, says so, and goes on by itself."""

import json
import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.clusters import run_cluster
from tests.commands import run_mirror_command
from tests.failover.two_sites import Sites, create_topic, produce, read_all, values_of
from tests.mirror.daemon import MirrorProcess, configure, run_mirror, wait_until

pytestmark = pytest.mark.integration


def readiness(mirror: MirrorProcess) -> int:
    """Return the HTTP status of /health/ready."""
    port = re.findall(r"metrics on port (\d+)", mirror.log)[-1]
    try:
        with urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=60) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def shown(file: Path) -> str:
    """Return what `mirror status` shows."""
    return run_mirror_command("status", file).stdout


def faults(mirror: MirrorProcess) -> str:
    """Return what the daemon says is wrong."""
    return json.dumps(mirror.status())


@pytest.mark.story
def test_a_mirror_waits_for_its_sites_and_goes_on_by_itself(tmp_path: Path) -> None:
    with (
        run_cluster(tmp_path, name="dc1") as dc1,
        run_cluster(tmp_path, name="dc2") as dc2,
    ):
        create_topic(dc1, "awaited")
        produce(dc1, "awaited", range(10))
        file = configure(Sites(dc1, dc2, dc1.zookeeper), tmp_path, "awaited")
        dc1.kill_broker(0)
        dc2.kill_broker(0)
        with run_mirror(file) as mirror:
            places = [f"{site.addresses[0][0]}:{site.addresses[0][1]}" for site in (dc1, dc2)]
            wait_until("the target is missed", lambda: places[1] in faults(mirror))
            assert readiness(mirror) == 503
            assert places[1] in shown(file)
            dc2.start_broker(0)
            wait_until("the source is missed", lambda: places[0] in faults(mirror))
            assert places[0] in shown(file)
            dc1.start_broker(0)
            mirror.wait_mirrored("awaited", 10)
            wait_until("ready", lambda: readiness(mirror) == 200)
            dc1.kill_broker(0)
            wait_until("the source is missed", lambda: places[0] in faults(mirror))
            assert places[0] in shown(file)
            dc1.start_broker(0)
            produce(dc1, "awaited", range(10, 20))
            mirror.wait_mirrored("awaited", 20)
            assert mirror.stop() == 0
        assert values_of(read_all(dc2, "awaited")) == list(range(20))
