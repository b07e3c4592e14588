"""What a client has posted in the witness lies there as long as the client lives."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from failover.client import active_site
from failover.client.active_site import ActiveSiteWatch, WitnessUnreachable
from runtime.configuration.config import Configuration, load
from runtime.coordination.kazoo_client import kazoo_acl
from runtime.coordination.witness import ActiveSite, WitnessPaths
from runtime.coordination.zookeeper_access import digest_identity
from tests.dc_yaml import dc_yaml
from tests.failover.two_sites import pause
from tests.zookeeper import ACCESS, PASSWORD, look

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


# Logins


USER = "dr"


def followed_by(file: Path, zookeeper: str) -> Configuration:
    """A file whose login has its password in a file."""
    section = {"auth": {"username": USER, "password_file": str(file)}}
    written = file.with_name("dc.yaml")
    written.write_text(dc_yaml(witness=zookeeper, path=ROOT, coordination=section))
    return load(written)


def show_to(observer: KazooClient, password: str, site: str, epoch: int) -> None:
    """Have the active site be for the tests' own login and for one with this password."""
    path = WitnessPaths(root=ROOT).active
    rights = digest_identity(USER, password)
    shown = [*kazoo_acl(ACCESS.grants("")), make_acl(rights.scheme, rights.name, read=True)]
    observer.set_acls(path, shown)
    observer.set(path, ActiveSite(site=site, epoch=epoch).encode())


def secret(tmp_path: Path, password: str) -> Path:
    file = tmp_path / "password"
    file.write_text(password)
    file.chmod(0o600)
    return file


def test_a_witness_that_hides_the_active_site_is_named_with_the_passwords_file(
    observer: KazooClient, empty_zookeeper: str, tmp_path: Path
) -> None:
    show_to(observer, "right", "dc1", 1)
    file = secret(tmp_path, "s3cret")
    with pytest.raises(WitnessUnreachable) as caught:
        ActiveSiteWatch(followed_by(file, empty_zookeeper))
    assert str(caught.value) == (
        f"the witness at {empty_zookeeper}: {WitnessPaths(root=ROOT).active} is not shown to us "
        f"(user 'dr' with the password in coordination.auth.password_file: {file})"
    )


def test_a_client_follows_again_once_the_file_has_the_password(
    observer: KazooClient,
    empty_zookeeper: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(active_site, "LOOK_EVERY_S", 0.05)
    show_to(observer, "old", "dc1", 1)
    file = secret(tmp_path, "old")
    watch = ActiveSiteWatch(followed_by(file, empty_zookeeper))
    try:
        show_to(observer, "new", "dc2", 2)
        deadline = monotonic() + 20
        while not caplog.messages:
            assert monotonic() < deadline, "the log says nothing"
            pause(0.02)
        assert watch.current().site == "dc1", "the last one that was heard of"
        pause(0.3)  # it has asked again
        [said] = [line for line in caplog.messages if "is not shown to us" in line]
        assert said.endswith(f"{file}); the site that was active last counts")
        file.write_text("new")
        assert watch.wait_changed(watch.current(), 20).site == "dc2"
    finally:
        watch.close()


def test_what_a_programs_login_posts_is_read_by_applications(
    observer: KazooClient, empty_zookeeper: str, tmp_path: Path
) -> None:
    """Members of one group may have either login."""
    apps = digest_identity("apps", "theirs")
    (tmp_path / "programs").mkdir()
    (tmp_path / "apps").mkdir()

    def watch_as(folder: str, auth: dict[str, str]) -> ActiveSiteWatch:
        file = tmp_path / folder / "dc.yaml"
        section = {"auth": auth}
        file.write_text(dc_yaml(witness=empty_zookeeper, path=ROOT, coordination=section))
        return ActiveSiteWatch(load(file))

    shown = [*kazoo_acl(ACCESS.grants("")), make_acl(apps.scheme, apps.name, read=True)]
    observer.set_acls(WitnessPaths(root=ROOT).active, shown)
    login = ACCESS.login
    assert login is not None
    ours = {"username": login.username, "password": PASSWORD, "applications": str(apps)}
    theirs = {"username": "apps", "password": "theirs", "programs": str(login.identity)}
    one, other = watch_as("programs", ours), watch_as("apps", theirs)
    try:
        one.post(NODE, b"5")
        group = NODE.rpartition("/")[0]
        assert other.posted(group) == {"member": b"5"}
        other.post(f"{group}/another", b"6")
        assert one.posted(group) == {"member": b"5", "another": b"6"}
    finally:
        one.close()
        other.close()


def test_very_many_nodes_of_a_group_are_not_read(
    watch: ActiveSiteWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_site, "MOST_MEMBERS", 1)
    group = NODE.rpartition("/")[0]
    watch.post(NODE, b"5")
    assert watch.posted(group) == {"member": b"5"}
    watch.post(f"{group}/another", b"6")
    with pytest.raises(WitnessUnreachable, match="2 nodes, above 1"):
        watch.posted(group)
