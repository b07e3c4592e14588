"""Sets of topics: each moves by itself, and what moves one leaves the others alone."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite
from runtime.process.ports import free_port
from tests.auditing import audited
from tests.commands import run_mirror_command
from tests.dc_yaml import dc_yaml, flow
from tests.failover.promoting import (
    At,
    WitnessView,
    die,
    end_lease,
    failover,
    kill_at,
    open_witness,
    run_mirror,
    tell,
    wait_mirroring,
)
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
    values_of,
    wait_length,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sites(own_sites: Sites) -> Sites:
    return own_sites


def configure(sites: Sites, folder: Path, path: str, topics: str) -> Path:
    """Write a file of two directions in which `<topics>.pay.*` is the set payments.

    Clients of any language find each set at a port of its own.
    """
    file = folder / "dc.yaml"
    ways = (("dc1", "dc2"), ("dc2", "dc1"))
    file.write_text(
        dc_yaml(
            *(flow(*way, f"{topics}.*", discovery_interval_ms=200) for way in ways),
            dc1=sites.dc1.bootstrap,
            dc2=sites.dc2.bootstrap,
            witness=sites.witness,
            path=path,
            coordination={"session_timeout_ms": 4_000},
            failover={
                "initial_active": "dc1",
                "bootstrap": {"listen": f"127.0.0.1:{free_port()}"},
                "sets": {
                    "payments": {
                        "topics": [f"{topics}.pay.*"],
                        "bootstrap": {"listen": f"127.0.0.1:{free_port()}"},
                    }
                },
                **TIMEOUTS,
            },
        )
    )
    return file


@contextmanager
def set_in_witness(sites: Sites, path: str, name: str) -> Iterator[WitnessView]:
    with open_witness(sites.witness, path) as pair:
        yield WitnessView(pair.client, pair.paths.of_set(name))


def by_set(file: Path) -> dict[str, Any]:
    """Return what `failover status` says of each set."""
    ended = tell("status", "--json", str(file))
    assert ended.status == 0, ended.complaint
    found: dict[str, Any] = json.loads(ended.output)["sets"]
    return found


def closed(found: dict[str, Any], topics: str) -> dict[str, list[list[str]]]:
    """Return what each site has closed, by set; another test's pair has topics there, too."""
    return {
        name: [
            [topic for topic in site["fenced_topics"] if topic.startswith(topics)]
            for site in one["sites"]
        ]
        for name, one in found.items()
    }


def wait_workers(file: Path, *running: str) -> None:
    """Wait until these flows run."""
    deadline = monotonic() + READ_TIMEOUT_S
    while True:
        ended = tell("status", "--json", str(file))
        if ended.status == 0:
            of_sets = json.loads(ended.output)["sets"].values()
            states = {one["name"]: one["state"] for each in of_sets for one in each["flows"]}
            if all(states[name] == "runs" for name in running):
                return
        assert monotonic() < deadline, ended
        pause(0.2)


def promote(file: Path, site: str, *how: str) -> str:
    ended = tell("promote", site, *how, str(file))
    assert ended.status == 0, ended.output + ended.complaint
    return ended.output


@pytest.mark.story
def test_sets_move_one_by_one_and_back_and_records_flow_both_ways_meanwhile(
    sites: Sites, tmp_path: Path
) -> None:
    orders, pay = "one.orders", "one.pay.in"
    for topic in (orders, pay):
        create_topic(sites.dc1, topic)
        produce(sites.dc1, topic, range(100))
    file = configure(sites, tmp_path, "/p-sets", "one")
    with run_mirror(file), set_in_witness(sites, "/p-sets", "payments") as witness:
        wait_workers(file, "dc1->dc2", "payments:dc1->dc2")
        for topic in (orders, pay):
            wait_length(sites.dc2, topic, 100)
        commit_by_hand(sites.dc1, "g-orders", orders, 60)
        commit_by_hand(sites.dc1, "g-pay", pay, 70)
        refused = tell("promote", "dc2", str(file))
        assert refused.status == 2
        assert "say which with --set NAME" in refused.complaint
        promote(file, "dc2", "--set", "payments")
        assert witness.active() == ActiveSite(site="dc2", epoch=1)
        found = by_set(file)
        assert found["default"]["active"] == {"site": "dc1", "epoch": 0, "moving_to": None}
        assert closed(found, "one") == {"default": [[], []], "payments": [[pay], []]}
        assert committed(sites.dc2, "g-pay", pay) == 70
        produce(sites.dc1, orders, range(100, 150))
        produce(sites.dc2, pay, range(100, 160))
        wait_length(sites.dc2, orders, 150)
        wait_length(sites.dc1, pay, 160)
        commit_by_hand(sites.dc2, "g-pay", pay, 150)
        assert "set default:" in promote(file, "dc2", "--all")
        found = by_set(file)
        assert {one["active"]["site"] for one in found.values()} == {"dc2"}
        assert closed(found, "one") == {"default": [[orders], []], "payments": [[pay], []]}
        assert committed(sites.dc2, "g-orders", orders) == 60
        promote(file, "dc1", "--topics", r"one\.pay\..*")
        produce(sites.dc1, pay, range(160, 170))
        produce(sites.dc2, orders, range(150, 155))
        wait_length(sites.dc2, pay, 170)
        wait_length(sites.dc1, orders, 155)
        assert committed(sites.dc1, "g-pay", pay) == 150
        promote(file, "dc1", "--set", "default")
        assert {one["active"]["site"] for one in by_set(file).values()} == {"dc1"}
        shown = run_mirror_command("status", str(file)).stdout
        assert "payments:dc1->dc2" in shown
        for name in ("default", "payments"):
            assert tell("divergence", "--set", name, str(file)).status == 0
            assert run_mirror_command("check", "--set", name, str(file)).returncode == 0
        told = tell("history", str(file)).output.splitlines()
        assert [line.split()[0] for line in told] == ["SET", *["default"] * 2, *["payments"] * 2]
    for cluster in (sites.dc1, sites.dc2):
        assert values_of(read_all(cluster, pay)) == list(range(170))
        assert values_of(read_all(cluster, orders)) == list(range(155))
    for name, count in (("default", 155), ("payments", 170)):
        counted = audited(file, "--set", name, status=0)
        assert sum(flow.pop("source_records") for flow in counted.values()) == count
        assert sum(flow.pop("target_records") for flow in counted.values()) == count
        assert not any(counted.values()), counted


@pytest.mark.story
def test_a_group_that_reads_topics_of_two_sets_keeps_both_from_being_moved(
    sites: Sites, tmp_path: Path, when_step_ends: At
) -> None:
    """Also where it begins to while a set is being moved."""
    orders, pay = "two.orders", "two.pay.in"
    for topic in (orders, pay):
        create_topic(sites.dc1, topic)
        produce(sites.dc1, topic, range(10))
    file = configure(sites, tmp_path, "/p-cut", "two")
    with run_mirror(file):
        wait_workers(file, "dc1->dc2", "payments:dc1->dc2")
        commit_by_hand(sites.dc1, "both", pay, 5)
        when_step_ends("drain", lambda: commit_by_hand(sites.dc1, "both", orders, 5))
        said = f"group both reads {orders} (set default) and {pay} (set payments)"
        taken_back = tell("promote", "dc2", "--set", "payments", str(file))
        assert (taken_back.status, said in taken_back.complaint) == (1, True), taken_back
        for name in ("payments", "default"):
            refused = tell("promote", "dc2", "--set", name, str(file))
            assert refused.status == 2
            assert f"dc1: {said}" in refused.complaint
        found = by_set(file)
        assert {one["active"]["epoch"] for one in found.values()} == {0}
        assert closed(found, "two") == {"default": [[], []], "payments": [[], []]}


@pytest.mark.story
def test_whatever_step_a_sets_controller_is_stopped_at_it_goes_on_and_others_stay_as_they_are(
    sites: Sites, tmp_path: Path, when_step_ends: At
) -> None:
    """Stopped behind each step on its way to dc2, and killed twice on its way back."""
    orders, pay = "three.orders", "three.pay.in"
    for topic in (orders, pay):
        create_topic(sites.dc1, topic)
        produce(sites.dc1, topic, range(20))
    file = configure(sites, tmp_path, "/p-stopped-sets", "three")
    with run_mirror(file), set_in_witness(sites, "/p-stopped-sets", "payments") as witness:
        wait_workers(file, "dc1->dc2", "payments:dc1->dc2")
        for step in ORDER[PromotionKind.PLANNED]:
            when_step_ends(step, die)
            tell("promote", "dc2", "--set", "payments", str(file))
            found = by_set(file)
            assert found["default"]["active"] == {"site": "dc1", "epoch": 0, "moving_to": None}
            assert closed(found, "three")["default"][0] == []
        promote(file, "dc2", "--set", "payments")
        assert witness.active() == ActiveSite(site="dc2", epoch=1)
        assert [one.state for one in witness.journals()] == [PromotionState.DONE]
        produce(sites.dc2, pay, range(20, 30))
        produce(sites.dc1, orders, range(20, 25))
        wait_length(sites.dc1, pay, 30)
        promote(file, "dc2", "--set", "default")
        for step in (StepName.FENCE, StepName.CONFIRM):
            back = failover("promote", "dc1", "--set", "payments", str(file), niceness=10)
            kill_at(witness, back, step, epoch=2)
            end_lease(witness)
            assert closed(by_set(file), "three")["default"] == [[orders], []]
        tell("promote", "dc1", "--set", "payments", str(file))
        assert witness.active() == ActiveSite(site="dc1", epoch=2)
        assert witness.journals()[-1].state is PromotionState.DONE
    for cluster in (sites.dc1, sites.dc2):
        assert values_of(read_all(cluster, pay)) == list(range(30))
        assert values_of(read_all(cluster, orders)) == list(range(25))


@pytest.mark.story
def test_both_sites_stay_closed_for_what_is_active_on_the_other(
    sites: Sites, tmp_path: Path
) -> None:
    orders, pay = "four.orders", "four.pay.in"
    for topic in (orders, pay):
        create_topic(sites.dc1, topic)
        produce(sites.dc1, topic, range(10))
    file = configure(sites, tmp_path, "/p-guarded-sets", "four")

    def wait_closed(default: list[list[str]], payments: list[list[str]]) -> None:
        deadline = monotonic() + READ_TIMEOUT_S
        wanted = {"default": default, "payments": payments}
        while (found := closed(by_set(file), "four")) != wanted:
            assert monotonic() < deadline, found
            pause(0.2)

    with run_mirror(file), running("serve", file) as guard:
        wait_workers(file, "dc1->dc2", "payments:dc1->dc2")
        wait_closed([[], [orders]], [[], [pay]])
        promote(file, "dc2", "--set", "payments")
        wait_closed([[], [orders]], [[pay], []])
        with running("bootstrap", file):
            assert shown_brokers(file, "default") == sites.dc1.bootstrap
            assert shown_brokers(file, "payments") == sites.dc2.bootstrap
        pause(3)  # several looks
        wait_closed([[], [orders]], [[pay], []])
    [told] = guard
    assert told.count("is now closed for writes") in {1, 2}, told
    assert "takes writes to four" not in told


@contextmanager
def running(command: str, file: Path) -> Iterator[list[str]]:
    """Run a program until the block ends; then the list has what it has told."""
    told: list[str] = []
    program = failover(command, str(file))
    try:
        yield told
    finally:
        program.process.terminate()
        told.append(program.finish(60).stderr)


def shown_brokers(file: Path, name: str) -> str:
    """Return the brokers that clients of a set are led to."""
    bootstrap = load(file).of_set(name).failover.bootstrap
    assert bootstrap is not None
    host, port = bootstrap.listen
    admin = AdminClient({"bootstrap.servers": f"{host}:{port}", **QUIET})
    brokers = admin.list_topics(timeout=READ_TIMEOUT_S).brokers.values()
    return ",".join(f"{one.host}:{one.port}" for one in brokers)


@pytest.mark.story
def test_a_pair_that_has_begun_is_given_a_set_which_then_moves_by_itself(
    sites: Sites, tmp_path: Path
) -> None:
    orders, pay = "five.orders", "five.pay.in"
    for topic in (orders, pay):
        create_topic(sites.dc1, topic)
        produce(sites.dc1, topic, range(20))
    file = configure(sites, tmp_path, "/p-adopted", "five")
    with_set = file.read_text()
    file.write_text(re.sub(r"sets: {.*?}}}, ", "", with_set))
    with run_mirror(file):
        wait_mirroring(file)
        promote(file, "dc2")
        for topic in (orders, pay):
            produce(sites.dc2, topic, range(20, 30))
            wait_length(sites.dc1, topic, 30)
        commit_by_hand(sites.dc2, "pays", pay, 25)
        file.write_text(with_set)
        refused = tell("promote", "dc1", "--set", "payments", str(file))
        assert "`failover adopt` begins one of a pair that is older" in refused.complaint
        refused = tell("adopt", str(file))
        assert (refused.status, "somebody runs the flow" in refused.complaint) == (2, True)
    shown = tell("adopt", str(file))
    assert (shown.status, "set payments: begins on dc2" in shown.output) == (1, True)
    assert tell("adopt", "--write", str(file)).status == 0
    assert tell("adopt", str(file)).output == "all sets of the file have begun\n"
    with run_mirror(file), set_in_witness(sites, "/p-adopted", "payments") as witness:
        assert witness.active() == ActiveSite(site="dc2", epoch=1)
        assert [one.site for one in witness.journals()] == ["dc2"]
        wait_workers(file, "dc2->dc1", "payments:dc2->dc1")
        promote(file, "dc1", "--set", "payments")
        assert witness.active() == ActiveSite(site="dc1", epoch=2)
        assert committed(sites.dc1, "pays", pay) == 25
        produce(sites.dc1, pay, range(30, 40))
        produce(sites.dc2, orders, range(30, 35))
        wait_length(sites.dc2, pay, 40)
        wait_length(sites.dc1, orders, 35)
    other = with_set.replace("five.pay.*", "five.pay.in")
    file.write_text(other)
    for command in (("status",), ("promote", "dc2", "--set", "payments"), ("adopt",)):
        refused = tell(*command, str(file))
        said = "payments has begun with five.pay.*, and this file gives it five.pay.in"
        assert (refused.status, said in refused.complaint) == (2, True), refused
    for cluster in (sites.dc1, sites.dc2):
        assert values_of(read_all(cluster, pay)) == list(range(40))
        assert values_of(read_all(cluster, orders)) == list(range(35))


@pytest.mark.story
def test_a_rehearsal_goes_there_and_back_and_applications_stay_where_they_are(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "six.orders")
    produce(sites.dc1, "six.orders", range(10))
    file = configure(sites, tmp_path, "/p-rehearsed", "six")
    text = re.sub(r"sets: {.*?}}}", "rehearsal: {load_ms: 500, partitions: 2}", file.read_text())
    file.write_text(text.replace('["six.*"]', '["six.*", "failover.rehearsal.*"]'))
    with run_mirror(file), set_in_witness(sites, "/p-rehearsed", "rehearsal") as witness:
        wait_workers(file, "dc1->dc2", "rehearsal:dc1->dc2")
        assert tell("hold", str(file)).status == 0
        refused = tell("rehearse", "dc2", str(file))
        assert (refused.status, "`failover release`" in refused.complaint) == (2, True), refused
        assert tell("release", str(file)).status == 0
        ended = tell("rehearse", "dc2", "--json", str(file))
        assert ended.status == 0, ended.output + ended.complaint
        found = json.loads(ended.output)
        assert (found["number"], found["state"], found["home"]) == (2, "passed", "dc1")
        assert found["load"].pop("acknowledged") > 0
        assert set(found["load"].values()) == {0}
        assert [(leg["site"], leg["epoch"]) for leg in found["legs"]] == [("dc2", 1), ("dc1", 2)]
        assert all(leg["writers_ms"] and leg["readers_ms"] for leg in found["legs"])
        [outlook] = found["applications"]
        assert (outlook["set"], outlook["site"], outlook["ready"]) == ("default", "dc2", True)
        assert witness.active() == ActiveSite(site="dc1", epoch=2)
        seen = by_set(file)
        assert seen["default"]["active"] == {"site": "dc1", "epoch": 0, "moving_to": None}
        assert closed(seen, "six")["default"] == [[], ["six.orders"]], "as `failover serve` has it"
        kept = json.loads(tell("history", "--json", str(file)).output)
        assert [one["set"] for one in kept["promotions"]] == ["rehearsal", "rehearsal"]
        assert [one["state"] for one in kept["rehearsals"]] == ["refused", "passed"]
        assert "set default:" in tell("plan", "dc2", str(file)).output
        assert tell("report", str(file)).status == 2, "no set of applications was promoted"


@pytest.mark.story
def test_a_set_that_has_no_topic_yet_moves_with_the_others_and_takes_those_that_are_made(
    sites: Sites, tmp_path: Path
) -> None:
    pay = "seven.pay.in"
    create_topic(sites.dc1, pay)
    produce(sites.dc1, pay, range(10))
    file = configure(sites, tmp_path, "/p-empty-set", "seven")
    with run_mirror(file):
        wait_workers(file, "dc1->dc2", "payments:dc1->dc2")
        wait_length(sites.dc2, pay, 10)
        told = promote(file, "dc2", "--all")
        assert told.count("dc2 is active (epoch 1)") == 2
        assert {one["active"]["site"] for one in by_set(file).values()} == {"dc2"}
        lost = ("--source-lost", "--force", "--set", "default")
        assert "dc1 is active (epoch 2)" in promote(file, "dc1", *lost)
        promote(file, "dc2", "--set", "default")
        create_topic(sites.dc2, "seven.orders")
        produce(sites.dc2, "seven.orders", range(5))
        wait_length(sites.dc1, "seven.orders", 5)
        promote(file, "dc1", "--set", "default")
        found = closed(by_set(file), "seven")
        assert found == {"default": [[], ["seven.orders"]], "payments": [[pay], []]}
