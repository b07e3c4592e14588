"""What a client has posted in the witness lies there as long as the client lives."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from kazoo.client import KazooClient

from failover.client.active_site import ActiveSiteWatch
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.dc_yaml import dc_yaml
from tests.failover.two_sites import pause
from tests.zookeeper import look

pytestmark = pytest.mark.integration

ROOT = "/posted"
NODE = f"{ROOT}/groups/g/member"


@pytest.fixture
def observer(empty_zookeeper: str) -> Iterator[KazooClient]:
    client = look(empty_zookeeper)
    client.start()
    active = ActiveSite(site="dc1", epoch=0).encode()
    client.create(WitnessPaths(root=ROOT).active, active, makepath=True)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def watch(observer: KazooClient, empty_zookeeper: str, tmp_path: Path) -> Iterator[ActiveSiteWatch]:
    assert observer.connected, "it has made the pair"
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(witness=empty_zookeeper, path=ROOT))
    watch = ActiveSiteWatch(load(file))
    yield watch
    watch.close()


def end_session(watch: ActiveSiteWatch, hosts: str) -> None:
    """End a client's session as the witness does with one that was silent for too long."""
    session = watch._client.client_id
    other = look(hosts, client_id=session)
    other.start()
    other.stop()
    other.close()
    deadline = monotonic() + 20
    while watch._client.client_id in {None, session}:
        assert monotonic() < deadline, "the client has no new session"
        pause(0.02)


def wait_posted(observer: KazooClient, data: bytes, session: int) -> None:
    deadline = monotonic() + 20
    while True:
        stat = observer.exists(NODE)
        if stat is not None and stat.ephemeralOwner == session and observer.get(NODE)[0] == data:
            return
        assert monotonic() < deadline, f"{NODE} is not there: {stat}"
        pause(0.02)


def test_what_was_posted_is_there_again_when_a_session_has_ended(
    watch: ActiveSiteWatch, observer: KazooClient, empty_zookeeper: str
) -> None:
    watch.post(NODE, b"first")
    watch.post(NODE, b"last")
    end_session(watch, empty_zookeeper)
    wait_posted(observer, b"last", watch._client.client_id[0])


def test_a_node_that_an_earlier_session_has_left_is_made_anew(
    watch: ActiveSiteWatch, observer: KazooClient
) -> None:
    """A witness that is restored from an old copy has nodes of sessions that end later."""
    observer.create(NODE, b"earlier", ephemeral=True, makepath=True)
    watch.post(NODE, b"ours")
    wait_posted(observer, b"ours", watch._client.client_id[0])
    watch.close()
    assert observer.exists(NODE) is None
