"""Topics that are called otherwise on each site: promoted, lost, taken back, and audited."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType

from failover.journal.steps import ORDER, PromotionKind, StepName
from tests.auditing import audited, compared
from tests.clusters import RunningCluster
from tests.commands import run_mirror_command
from tests.dc_yaml import dc_yaml, flow
from tests.failover.both_ways import go_on_reading, promote, wait_logged
from tests.failover.by_rights import BY_RIGHTS, REFUSED, SiteByRights
from tests.failover.promoting import (
    end_lease,
    failover,
    kill_at,
    open_witness,
    run_mirror,
    serving,
    tell,
    wait_mirroring,
)
from tests.failover.set_aside import divergence, lines_of, restart, set_aside
from tests.failover.two_sites import (
    QUIET,
    READ_TIMEOUT_S,
    TIMEOUTS,
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    pause,
    produce,
    read_all,
    run_sites,
    values_of,
    wait_length,
)
from tests.mirror.daemon import wait_until
from tests.secured_cluster import run_secured_cluster

pytestmark = pytest.mark.matrix(subject="Topics under other names", against="broker up")

GROUPS = ("ahead", "behind", "slow")


@pytest.fixture(scope="module")
def sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with run_sites(tmp_path_factory.mktemp("sites"), witness) as running:
        yield running


def configure(
    sites: Sites, folder: Path, here: str, there: str, *, acls: str = "downgraded"
) -> Path:
    """Both directions, in which one topic of dc1 has another name on dc2."""
    often: dict[str, Any] = {"discovery_interval_ms": 200, "acls": acls}
    file = folder / "dc.yaml"
    file.write_text(
        dc_yaml(
            flow("dc1", "dc2", here, rename={here: there}, **often),
            flow("dc2", "dc1", there, rename={there: here}, **often),
            dc1=sites.dc1.bootstrap,
            dc2=sites.dc2.bootstrap,
            witness=sites.witness,
            path=f"/{here}",
            coordination={"session_timeout_ms": 4_000},
            failover={"initial_active": "dc1", **TIMEOUTS},
        )
    )
    return file


def is_closed(cluster: RunningCluster, topic: str) -> bool:
    """Tell whether an application is kept from writing."""
    faults: list[object] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": 1_500, **QUIET}
    producer = Producer(settings)
    producer.produce(topic, b"no", on_delivery=lambda fault, _: faults.append(fault))
    assert producer.flush(READ_TIMEOUT_S) == 0
    [fault] = faults
    return fault is not None


def test_records_and_groups_go_there_and_back_under_both_names(
    sites: Sites, tmp_path: Path
) -> None:
    read: dict[str, list[int]] = {group: [] for group in GROUPS}
    create_topic(sites.dc1, "ways")
    file = configure(sites, tmp_path, "ways", "ways-eu")
    written = 0

    def work(cluster: RunningCluster, topic: str, count: int) -> None:
        nonlocal written
        produce(cluster, topic, range(written, written + count))
        written += count
        shares = (written, written // 2, written // 9)
        for group, share in zip(GROUPS, shares, strict=True):
            read[group] += go_on_reading(cluster, group, topic, share - len(read[group]))

    with run_mirror(file):
        wait_mirroring(file)
        for number, site in enumerate(("dc2", "dc1", "dc2", "dc1")):
            at_dc1 = site == "dc2"
            here = (sites.dc1, "ways") if at_dc1 else (sites.dc2, "ways-eu")
            work(*here, 40 + number)
            named = "ways is ways-eu" if at_dc1 else "ways-eu is ways"
            plan = tell("plan", site, str(file)).output
            assert f"names    on {site} {named}: applications have to ask for these" in plan
            promote(site, file)
            assert is_closed(*here)
            group_at = committed(
                *((sites.dc2, "behind", "ways-eu") if at_dc1 else (sites.dc1, "behind", "ways"))
            )
            assert group_at == len(read["behind"])
        work(sites.dc1, "ways", 50)
        wait_length(sites.dc2, "ways-eu", written)
        for group in ("behind", "slow"):
            read[group] += go_on_reading(sites.dc1, group, "ways", written - len(read[group]))
    assert read == {group: list(range(written)) for group in GROUPS}
    for cluster, topic in ((sites.dc1, "ways"), (sites.dc2, "ways-eu")):
        assert values_of(read_all(cluster, topic)) == list(range(written))
    there = 40 + 42 + 50
    counts = {
        "dc1->dc2": {"source_records": there, "target_records": there},
        "dc2->dc1": {"source_records": 41 + 43, "target_records": 41 + 43},
    }
    assert audited(file, status=0) == counts
    assert compared(file) == counts


def test_what_was_lost_with_dc1_is_listed_set_aside_and_explained_under_both_names(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "tail")
    file = configure(sites, tmp_path, "tail", "tail-eu")
    with run_mirror(file) as daemon:
        wait_mirroring(file)
        produce(sites.dc1, "tail", range(40))
        commit_by_hand(sites.dc1, "half", "tail", 20)
        wait_length(sites.dc2, "tail-eu", 40)
        wait_until("half", lambda: committed(sites.dc2, "half", "tail-eu") == 20)
        daemon.kill()
        daemon.wait()
    produce(sites.dc1, "tail", range(40, 47))
    sites.dc1.kill()
    promote("dc2", file, "--source-lost")
    produce(sites.dc2, "tail-eu", range(100, 130))
    sites.dc1.start()
    with run_mirror(file):
        said = wait_logged(file, "that the source never got")
        assert "tail-eu-0: target diverged: the target holds offsets 40 to 46" in said
        status, listed = divergence(file)
        assert (status, listed) == (1, [("only there", "dc1", one) for one in range(40, 47)])
        told = tell("divergence", str(file)).output
        assert "tail-0: dc1 alone has 7 records at offsets 40 to 46" in told
        assert "`mirror restart dc2-dc1 tail-eu:0 --quarantine` sets them aside" in told
        restart(file, "tail-eu", "--quarantine")
        wait_length(sites.dc1, "tail", 77)
        kept = [(one, one) for one in range(40, 47)]
        assert set_aside(sites.dc1, "tail") == set_aside(sites.dc2, "tail-eu") == kept
        assert [one["offset"] for one in lines_of(tmp_path)] == [one for one, _ in kept]
        promote("dc1", file)
        produce(sites.dc1, "tail", range(200, 205))
        wait_length(sites.dc2, "tail-eu", 75)
    log = [*range(40), *range(100, 130), *range(200, 205)]
    assert values_of(read_all(sites.dc2, "tail-eu")) == log
    assert values_of(read_all(sites.dc1, "tail")) == [*range(47), *log[40:]]
    told_by_flow = audited(file, status=0)
    assert told_by_flow["dc1->dc2"]["explained"] == 7
    done = run_mirror_command("translate", "tail:0:77", file, "--flow", "dc1->dc2")
    assert done.stdout == "dc1 tail:0:77 -> dc2 tail-eu:0:70 (exact)\n", done.stderr


def test_a_closed_standby_an_abort_and_killed_controllers_go_by_the_names_of_each_site(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "kills")
    create_topic(sites.dc2, "kills")  # dc2's own, which no flow knows of
    file = configure(sites, tmp_path, "kills", "kills-eu")
    with run_mirror(file), open_witness(sites.witness, "/kills") as witness:
        wait_mirroring(file)
        produce(sites.dc1, "kills", range(30))
        commit_by_hand(sites.dc1, "readers", "kills", 12)
        wait_length(sites.dc2, "kills-eu", 30)
        with serving(file):
            deadline = monotonic() + READ_TIMEOUT_S
            while "dc2: standby, fenced: kills-eu" not in tell("status", str(file)).output:
                assert monotonic() < deadline, tell("status", str(file))
                pause(0.2)
        assert is_closed(sites.dc2, "kills-eu")
        assert not is_closed(sites.dc2, "kills")
        assert kill_at(witness, failover("promote", "dc2", str(file)), StepName.OPEN_TARGET)
        end_lease(witness)
        aborted = tell("abort", str(file))
        assert aborted.status == 0, aborted
        assert is_closed(sites.dc2, "kills-eu")
        produce(sites.dc1, "kills", range(30, 40))
        wait_length(sites.dc2, "kills-eu", 40)
        killed = []
        for step in ORDER[PromotionKind.PLANNED]:
            if kill_at(witness, failover("promote", "dc2", str(file), niceness=10), step, 2):
                killed.append(step)
            end_lease(witness)
        assert len(killed) > 5, killed
        promote("dc2", file)
        assert is_closed(sites.dc1, "kills")
        produce(sites.dc2, "kills-eu", range(40, 50))
        wait_length(sites.dc1, "kills", 50)
        assert committed(sites.dc2, "readers", "kills-eu") == 12
    for cluster, topic in ((sites.dc1, "kills"), (sites.dc2, "kills-eu")):
        assert values_of(read_all(cluster, topic)) == list(range(50))
    assert len(read_all(sites.dc2, "kills")) == 1, "what was tried above, and nothing of dc1's"


def test_sites_are_closed_by_rights_to_the_names_that_they_have(
    witness: str, tmp_path: Path
) -> None:
    with (
        run_secured_cluster(tmp_path, name="dc1", more=BY_RIGHTS) as at_dc1,
        run_secured_cluster(tmp_path, name="dc2", more=BY_RIGHTS) as at_dc2,
    ):
        dc1, dc2 = SiteByRights(at_dc1, "rights"), SiteByRights(at_dc2, "other")
        file = configure(
            Sites(dc1.cluster, dc2.cluster, witness), tmp_path, "rights", "other", acls="identical"
        )
        create_topic(dc1.cluster, "rights")
        dc1.give(ResourceType.TOPIC, "rights", AclOperation.READ, AclOperation.WRITE)
        given = dc1.held()
        with run_mirror(file):
            wait_mirroring(file)
            assert dc1.write(b"0") is None
            wait_length(dc2.cluster, "other", 1)
            wait_until("the rights travel", lambda: dc2.held() == given)
            for site, closed, opened in (("dc2", dc1, dc2), ("dc1", dc2, dc1)):
                promote(site, file)
                assert (closed.denied_creation(), opened.denied_creation()) == (
                    {closed.topic},
                    set(),
                )
                assert closed.held() > given
                assert opened.held() == given
                refused = closed.write(b"-1")
                assert refused is not None
                assert refused.code() == REFUSED
                assert opened.write(b"1") is None
            wait_length(dc2.cluster, "other", 3)
            wait_length(dc1.cluster, "rights", 3)
