"""A flow with `names: prefixed`: everything on the target goes by `dc1.<topic>`."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from failover.planning.plan import decide
from failover.planning.refusal import Refusal
from mirror.commands.check import told_ousted
from mirror.topics.choice import choices
from runtime.configuration.topic_names import Renames
from tests.commands import run_mirror_command
from tests.failover.plans import ALL_WELL, PLANNED
from tests.failover.two_sites import (
    Sites,
    commit_by_hand,
    committed,
    create_topic,
    produce,
    read_all,
    values_of,
)
from tests.mirror.daemon import checkpoints, configure, run_mirror, wait_until
from tests.mirror.topic_views import FLOW, topic
from wire.net.metadata import ClusterView


def test_topics_from_the_target_and_internal_ones_have_their_reason() -> None:
    topics = {one: topic(one) for one in ("orders", "orders.internal", "dc2.orders")}
    view = ClusterView(brokers={}, controller_id=0, topics=topics, cluster_id="c")
    everything = replace(FLOW.topics, include=(re.compile(".*"),))
    flow = replace(FLOW, is_prefixed=True, topics=everything)
    assert {one.topic: one.left_out for one in choices(flow, view)} == {
        "orders": None,
        "orders.internal": "its name is one of internal topics",
        "dc2.orders": "it has come from dc2",
    }
    assert [flow.mirrors(one) for one in topics] == [True, False, False]


def test_a_topic_whose_name_was_given_away_has_its_reason() -> None:
    topics = {one: topic(one) for one in ("orders", "orders-eu")}
    view = ClusterView(brokers={}, controller_id=0, topics=topics, cluster_id="c")
    everything = replace(FLOW.topics, include=(re.compile(".*"),))
    flow = replace(FLOW, topics=everything, renames=Renames({"orders": "orders-eu"}))
    reason = "its name on dc2 was given to orders (`rename`): give it another"
    found = {one.topic: (one.left_out, one.target_topic) for one in choices(flow, view)}
    assert found == {"orders": (None, "orders-eu"), "orders-eu": (reason, "orders-eu")}
    [warning] = told_ousted(flow, view)
    assert warning.startswith("warning: orders-eu is not mirrored: its name on dc2 was given to")


@pytest.mark.integration
def test_a_check_fails_where_the_target_would_not_create_a_topic(
    sites: Sites, tmp_path: Path
) -> None:
    """Names of 249 characters are the longest, and the prefix makes this one longer."""
    create_topic(sites.dc1, long := "long-" + 244 * "x")
    done = run_mirror_command("check", configure(sites, tmp_path, "long-.*", "names: prefixed"))
    assert done.returncode == 2
    assert f"dc2 would refuse to create dc1.{long} with 1 partitions" in done.stdout
    assert "mirror: flow dc1->dc2: dc2 would refuse to create dc1." in done.stderr


def test_a_promotion_over_a_prefixed_flow_is_refused() -> None:
    refusal = decide(replace(ALL_WELL, is_prefixed=True), PLANNED)
    assert isinstance(refusal, Refusal)
    assert "`names: prefixed`" in refusal.reason


def told(configuration: Path, *words: str) -> str:
    done = run_mirror_command(*words, configuration)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.integration
def test_a_prefixed_flow_mirrors_everything_under_the_other_name(
    sites: Sites, tmp_path: Path
) -> None:
    given = "names: prefixed\n    rename: {orders-late: late}"
    configuration = configure(sites, tmp_path, "orders.*|dc2.*", given)
    for name in ("orders", "orders-late", "dc2.returned"):
        create_topic(sites.dc1, name)
    produce(sites.dc1, "orders", range(50))
    produce(sites.dc1, "dc2.returned", range(5))
    commit_by_hand(sites.dc1, "billing", "orders", 30)
    checked = told(configuration, "check")
    assert "would create dc1.orders with 1 partitions" in checked
    assert "orders as dc1.orders, orders-late as late" in checked
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("orders", 50)
        wait_until("billing", lambda: committed(sites.dc2, "billing", "dc1.orders") == 30)
        mirror.kill()
        produce(sites.dc1, "orders", range(50, 80))
        admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap})
        admin.create_partitions([NewPartitions("orders-late", 2)])["orders-late"].result()
        mirror.start()
        mirror.wait_mirrored("orders", 80)
        produce(sites.dc1, "orders-late", range(7), partition=1)
        mirror.wait_mirrored("orders-late", 7, index=1)
        assert mirror.partition("dc2.returned") is None
        wait_until("checkpoint", lambda: ("billing", "dc1.orders") in checkpoints(sites))
    assert values_of(read_all(sites.dc2, "dc1.orders")) == list(range(80))
    assert values_of(read_all(sites.dc2, "late", 1)) == list(range(7))
    there = AdminClient({"bootstrap.servers": sites.dc2.bootstrap}).list_topics(timeout=60).topics
    assert not {
        "orders",
        "orders-late",
        "dc2.returned",
        "dc1.dc2.returned",
        "dc1.orders-late",
    } & set(there)
    assert told(configuration, "translate", "orders:0:40") == (
        "dc1 orders:0:40 -> dc2 dc1.orders:0:40 (exact)\n"
    )
    assert told(configuration, "translate", "--reverse", "dc1.orders:0:40") == (
        "dc2 dc1.orders:0:40 -> dc1 orders:0:40 (exact)\n"
    )
    exported = told(configuration, "offsets", "export", "billing")
    assert "billing,dc1.orders,0,30" in exported
    (tmp_path / "positions.csv").write_text(exported.replace(",30", ",20"))
    told(configuration, "offsets", "import", str(tmp_path / "positions.csv"))
    assert committed(sites.dc2, "billing", "dc1.orders") == 20
    with run_mirror(configure(sites, tmp_path, "orders.*|dc2.*", "names: prefixed")) as mirror:
        line = mirror.wait_state("orders-late", "copy renamed")
        assert line["reason"] == (
            "the copy is 'late' on dc2, and by the file now it is to be 'dc1.orders-late'"
        )
        mirror.wait_state("orders", "streaming")
    there = AdminClient({"bootstrap.servers": sites.dc2.bootstrap}).list_topics(timeout=60).topics
    assert "dc1.orders-late" not in there
