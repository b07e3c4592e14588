"""Whole promotions: two bundled sites, the mirror daemon, the clients, and the program itself."""

import getpass
import json
import os
import re
import signal
from pathlib import Path
from time import monotonic

import pytest
import trio
import yaml
from confluent_kafka import Consumer, TopicPartition
from prometheus_client import CollectorRegistry

from failover.canary.watch import watch_canaries
from failover.client import SiteConsumer, SiteProducer
from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName
from failover.planning.readiness import Readiness
from failover.planning.refusal import Cause
from failover.view.readiness import look_at_readiness
from runtime.configuration.config import load
from runtime.configuration.witness_session import open_witness as open_witness_session
from runtime.coordination.known_ends import UNSEEN_MS
from runtime.coordination.witness import ActiveSite
from tests.commands import run_mirror_command
from tests.failover.promoting import (
    CONSUMER,
    PARTITIONS,
    Application,
    Ended,
    end_lease,
    failover,
    finish,
    kill_at,
    numbers_in_order_per_partition,
    open_witness,
    run_mirror,
    tell,
    wait_mirroring,
)
from tests.failover.two_sites import (
    QUIET,
    Sites,
    committed,
    create_topic,
    pause,
    produce,
    read_all,
    values_of,
    wait_length,
)

pytestmark = pytest.mark.integration


def add_hooks(file: Path, told: Path, *points: str) -> None:
    """Have a promotion say at these points what is active and what was."""
    document = yaml.safe_load(file.read_text())
    script = f'echo "$KAFKA_DR_STEP $KAFKA_DR_ACTIVE $KAFKA_DR_SOURCE" >> {told}'
    document.setdefault("failover", {})["hooks"] = [
        {"name": point.replace(" ", "-"), when: step, "command": ["/bin/sh", "-c", script]}
        for point in points
        for when, step in [point.split()]
    ]
    file.write_text(yaml.safe_dump(document))


def test_a_planned_promotion_loses_doubles_and_rereads_nothing(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "planned"
    create_topic(sites.dc1, topic, PARTITIONS)
    file = sites.configure(tmp_path, "/p-planned", topic)
    told = tmp_path / "told"
    add_hooks(file, told, "before fence", "after switch")
    application = Application(file, topic, "g-planned")
    with (
        run_mirror(file),
        SiteProducer(file, producer_config=QUIET) as producer,
        SiteConsumer(file, "g-planned", [topic], consumer_config=CONSUMER) as consumer,
    ):
        wait_mirroring(file)
        application.work_until(producer, consumer, lambda: len(application.read) > 300)
        program = failover("promote", "dc2", str(file))
        application.work_until(producer, consumer, lambda: program.process.poll() is not None)
        ended = finish(program)
        assert (ended.status, ended.complaint) == (0, ""), ended
        more = application.sent + 300
        application.work_until(
            producer, consumer, lambda: application.sent > more and consumer.site == "dc2"
        )
        application.catch_up(producer, consumer)
        assert producer.site == consumer.site == "dc2"
    assert sorted(application.read) == list(range(application.sent))
    assert len(application.delivered) == application.sent
    assert sorted(numbers_in_order_per_partition(sites, topic)) == list(range(application.sent))
    assert re.search(r"^dc2 is active \(epoch 1\), RTO \d+\.\d\d s$", ended.output, re.MULTILINE)
    assert "group    g-planned: planned-0@" in ended.output
    assert told.read_text() == "fence dc1 dc1\nswitch dc2 dc1\n", "the active site, and the source"
    assert re.search(r"^  hook     after-switch \(after switch\) done", ended.output, re.MULTILINE)
    assert f"command  failover promote dc2, by {getpass.getuser()} on " in ended.output
    with open_witness(sites.witness, "/p-planned") as witness:
        [journal] = witness.journals()
        assert witness.active() == ActiveSite(site="dc2", epoch=1)
    assert journal.state is PromotionState.DONE
    assert len(journal.partitions) == PARTITIONS
    assert all(ends.source_end == ends.mirrored_source_end for ends in journal.partitions)
    check_after_promotion(file, ended)


def check_after_promotion(file: Path, ended: Ended) -> None:
    """The old site is closed, the status says so, and the same command is now refused."""
    status = json.loads(tell("status", str(file), "--json").output)
    assert status["active"] == {"site": "dc2", "epoch": 1, "moving_to": None}
    assert {site["name"]: site["is_active"] for site in status["sites"]} == {
        "dc1": False,
        "dc2": True,
    }
    assert status["sites"][0]["fenced_topics"] == ["planned"]
    assert status["flows"][0]["state"] == "stopped"
    assert status["last"]["state"] == "done"
    report = json.loads(tell("report", "--json", str(file)).output)
    assert (report["lost"]["records"], report["groups"]["bounded"]) == (0, {})
    assert 0 < report["closed_ms"] <= report["rto_ms"]
    [line] = json.loads(tell("history", "--json", str(file)).output)
    assert (line["epoch"], line["state"], line["lost"]) == (1, "done", 0)
    again = tell("promote", "dc2", str(file))
    assert (again.status, again.complaint) == (2, "failover: dc2 is already the active site")
    back = tell("promote", "dc1", str(file))
    assert (back.status, back.complaint) == (
        2,
        "failover: no flow from dc2 to dc1 is configured, so dc1 has nothing to go on with",
    )
    assert ended.output.splitlines()[0] == "promote dc2: planned, from dc1, epoch 1"


def test_a_canary_arrives_over_the_mirror_and_is_measured(sites: Sites, tmp_path: Path) -> None:
    file = sites.configure(tmp_path, "/p-canary", "canary")
    document = yaml.safe_load(file.read_text())
    document["failover"]["canary"] = {"topic": "canary", "interval_ms": 100}
    file.write_text(yaml.safe_dump(document))
    registry = CollectorRegistry()
    with sites.active_site("/p-canary"), run_mirror(file):
        trio.run(watch_until_arrived, file, registry, 5)
    shown = {
        sample.name: sample.value for metric in registry.collect() for sample in metric.samples
    }
    assert shown["failover_canary_arrived_total"] >= 5
    assert shown["failover_canary_latency_seconds_count"] == shown["failover_canary_arrived_total"]
    assert shown["failover_canary_sent_total"] >= shown["failover_canary_arrived_total"]
    for nothing in ("lost", "out_of_order", "unknown"):
        assert shown[f"failover_canary_{nothing}_total"] == 0


async def watch_until_arrived(file: Path, registry: CollectorRegistry, count: int) -> None:
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_canaries, load(file), registry, lambda: "dc1")
            while arrived(registry) < count:  # noqa: ASYNC110 - a count in a page
                await trio.sleep(0.1)
            nursery.cancel_scope.cancel()


def arrived(registry: CollectorRegistry) -> float:
    flow = {"flow": "dc1->dc2"}
    return registry.get_sample_value("failover_canary_arrived_total", flow) or 0


async def look_whether_ready(file: Path) -> list[Readiness]:
    configuration = load(file)
    async with open_witness_session(configuration.coordination) as zookeeper:
        return await look_at_readiness(configuration, zookeeper)


def test_refusals_are_one_line_and_change_nothing(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "refused")
    file = sites.configure(tmp_path, "/p-refused", "refused")
    with sites.active_site("/p-refused"):
        pass  # a pair that has begun
    for arguments, complaint in (
        (("promote", "dc9", str(file)), "unknown site dc9 (the file has dc1, dc2)"),
        (("promote", "dc1", str(file)), "dc1 is already the active site"),
        (("plan", "dc1", str(file)), "dc1 is already the active site"),
        (
            ("promote", "dc2", str(file)),
            (
                "no mirror daemon runs the flow dc1->dc2, so dc1 cannot be drained; start"
                " `mirror run`, or give up what is not mirrored with --source-lost"
            ),
        ),
        (
            ("promote", "dc2", str(file), "--source-lost"),
            (
                "dc1 answers, and a planned promotion loses nothing: leave out --source-lost, or"
                " insist with --force"
            ),
        ),
        (("abort", str(file)), "no promotion is unfinished"),
        (("status", str(tmp_path / "none.yaml")), f"{tmp_path / 'none.yaml'}: No such file or d"),
    ):
        ended = tell(*arguments)
        assert ended.status == 2
        assert ended.complaint.startswith(f"failover: {complaint}")
        assert "\n" not in ended.complaint
    [ready] = trio.run(look_whether_ready, file)
    assert (ready.site, ready.cause) == ("dc2", Cause.NO_MIRROR), "what `failover serve` shows"
    with open_witness(sites.witness, "/p-refused") as witness:
        assert witness.active() == ActiveSite(site="dc1", epoch=0)
        assert not witness.client.exists(witness.paths.journals)


def test_an_operators_file_that_names_fewer_topics_than_the_mirrors_is_refused_by_name(
    sites: Sites, tmp_path: Path
) -> None:
    for topic in ("wide-a", "wide-b"):
        create_topic(sites.dc1, topic)
    path = "/p-wide"
    (tmp_path / "narrow").mkdir()
    narrow = sites.configure(tmp_path / "narrow", path, "wide-a")
    wide = sites.configure(tmp_path, path, "wide-.*")
    told = 'topics.include: the mirror runs ["wide-.*"], the file has ["wide-a"]'
    with run_mirror(wide) as daemon:
        wait_mirroring(wide)
        for command in ("plan", "promote"):
            ended = tell(command, "dc2", str(narrow))
            assert ended.status == 2
            assert told in ended.complaint
        checked = run_mirror_command("check", str(narrow))
        assert checked.returncode == 2
        assert told in checked.stderr
        wide.write_text(narrow.read_text())
        os.kill(daemon.pid, signal.SIGHUP)
        deadline = monotonic() + 20
        while tell("plan", "dc2", str(narrow)).status:
            assert monotonic() < deadline, "the mirror has not published what it runs now"
    with open_witness(sites.witness, path) as witness:
        assert witness.active() == ActiveSite(site="dc1", epoch=0)


@pytest.mark.story
def test_whatever_step_a_controller_is_killed_at_the_same_command_goes_on(
    sites: Sites, tmp_path: Path
) -> None:
    """One promotion, killed once at every step that it reaches."""
    create_topic(sites.dc1, "killed")
    produce(sites.dc1, "killed", range(100))
    file = sites.configure(tmp_path, "/p-killed", "killed")
    with run_mirror(file), open_witness(sites.witness, "/p-killed") as witness:
        wait_mirroring(file)
        killed: list[StepName] = []
        for step in ORDER[PromotionKind.PLANNED]:
            if kill_at(witness, failover("promote", "dc2", str(file), niceness=10), step):
                killed.append(step)
            end_lease(witness)
        ended = tell("promote", "dc2", str(file))
        [journal] = witness.journals()
        assert witness.active() == ActiveSite(site="dc2", epoch=1)
    assert ended.status in {0, 2}, ended
    assert len(killed) > 5, f"only {killed} were slow enough to be killed in"
    assert journal.state is PromotionState.DONE
    assert [record.name for record in journal.steps] == [*ORDER[PromotionKind.PLANNED]]
    assert values_of(read_all(sites.dc2, "killed")) == list(range(100))


def keep_sessions(file: Path) -> None:
    """Let the witness wait for a daemon that is stopped for as long as the test may take."""
    text = file.read_text()
    file.write_text(text.replace("session_timeout_ms: 4000", "session_timeout_ms: 60000"))


@pytest.mark.story
@pytest.mark.parametrize("begun", [False, True])
def test_a_source_whose_every_process_is_killed_is_given_up(
    mortal_sites: Sites, tmp_path: Path, *, begun: bool
) -> None:
    """With `begun`, a planned promotion was under way, and its controller died with the source."""
    sites, topic = mortal_sites, f"disaster-{begun}"
    path = f"/p-{topic}"
    create_topic(sites.dc1, topic, PARTITIONS)
    file = sites.configure(tmp_path, path, topic)
    application = Application(file, topic, f"g-{topic}")
    with (
        run_mirror(file) as daemon,
        SiteProducer(file, producer_config=QUIET) as producer,
        SiteConsumer(file, f"g-{topic}", [topic], consumer_config=CONSUMER) as consumer,
    ):
        wait_mirroring(file)
        application.work_until(producer, consumer, lambda: len(application.read) > 300)
        if begun:
            with open_witness(sites.witness, path) as witness:
                kill_at(witness, failover("promote", "dc2", str(file)), StepName.FENCE)
        else:
            os.kill(daemon.pid, signal.SIGSTOP)  # so that dc1 acknowledges what dc2 never sees
            goal = len(application.delivered) + 300
            application.work_until(producer, consumer, lambda: len(application.delivered) > goal)
        sites.dc1.kill()
        os.kill(daemon.pid, signal.SIGCONT)
        refused = tell("plan", "dc2", str(file))
        if not begun:
            assert refused.status == 2
            assert "if it is lost, promote with --source-lost" in refused.complaint
        program = failover("promote", "dc2", str(file), "--source-lost")
        application.work_until(producer, consumer, lambda: program.process.poll() is not None)
        ended = finish(program)
        assert ended.status == 0, ended
        more = application.sent + 300
        application.work_until(
            producer, consumer, lambda: application.sent > more and consumer.site == "dc2"
        )
        application.catch_up(producer, consumer)
    on_dc2 = numbers_in_order_per_partition(sites, topic)
    assert len(on_dc2) == len(set(on_dc2)), "nothing is there twice"
    if not begun:
        check_returned_site_is_closed(sites, file, topic)
    with open_witness(sites.witness, path) as witness:
        *earlier, journal = witness.journals()
    assert [found.state for found in earlier] == [PromotionState.ROLLED_BACK] * begun
    mirrored_to = {ends.partition: ends.mirrored_source_end for ends in journal.partitions}
    lost = {
        number
        for number, (site, partition, offset) in application.delivered.items()
        if site == "dc1" and offset >= mirrored_to[partition]
    }
    assert set(range(application.sent)) - set(on_dc2) == lost
    assert begun or len(lost) > 100
    assert len(application.read) == len(set(application.read)), "nothing processed is read again"
    assert set(on_dc2) <= set(application.read)
    assert "warning  dc1 could not be fenced" in ended.output
    # The mirror that slept when dc1 took records does not say that it heard of all.
    [seconds] = re.findall(r"loss     at least .*, (up to [0-9.]+ s|time not known);", ended.output)
    unknown = f"of {PARTITIONS} of {PARTITIONS} partitions it is not known for sure"
    assert unknown not in ended.output or not begun, ended.output
    assert seconds == "time not known" or float(seconds.split()[2]) >= UNSEEN_MS / 1000


def check_returned_site_is_closed(sites: Sites, file: Path, topic: str) -> None:
    """dc1 comes back, takes writes, and `failover serve` closes it."""
    sites.dc1.start()
    produce(sites.dc1, topic, [1])
    server = failover("serve", str(file))
    try:
        deadline = monotonic() + 120
        fenced: list[str] = []
        while topic not in fenced:
            assert monotonic() < deadline, "dc1 stays open"
            pause(0.3)
            status = json.loads(tell("status", str(file), "--json").output)
            fenced = status["sites"][0]["fenced_topics"]
    finally:
        server.process.terminate()
        ended = server.finish(120)
    assert ended.returncode == 0


def test_a_mirror_that_stands_still_is_found_before_the_source_is_closed(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "undrained"
    create_topic(sites.dc1, topic)
    file = sites.configure(tmp_path, "/p-undrained", topic)
    soon = "catch_up_timeout_ms: 500, drain_timeout_ms: 20000"
    file.write_text(file.read_text().replace("drain_timeout_ms: 20000", soon))
    keep_sessions(file)
    with run_mirror(file) as daemon, open_witness(sites.witness, "/p-undrained") as witness:
        wait_mirroring(file)
        produce(sites.dc1, topic, range(10))
        wait_length(sites.dc2, topic, 10)
        os.kill(daemon.pid, signal.SIGSTOP)
        produce(sites.dc1, topic, range(10, 20))
        ended = tell("promote", "dc2", str(file))
        os.kill(daemon.pid, signal.SIGCONT)
        [journal] = witness.journals()
        assert witness.active() == ActiveSite(site="dc1", epoch=0)
    assert ended.status == 2, ended
    assert ended.complaint.startswith(
        "failover: rolled back, dc1 stays active: preflight: 10 records in 1 partitions were not"
        " mirrored within 0.5 s"
    )
    assert journal.state is PromotionState.ROLLED_BACK
    assert StepName.FENCE not in journal.step_states
    produce(sites.dc1, topic, range(20, 30))
    assert values_of(read_all(sites.dc1, topic)) == list(range(30))


def test_clients_that_do_not_follow_are_waited_for_before_the_fence_and_wants_force_to_leave_them(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "staying"
    create_topic(sites.dc1, topic)
    produce(sites.dc1, topic, range(20))
    file = sites.configure(tmp_path, "/p-staying", topic)
    text = file.read_text()
    text = text.replace("group_drain_timeout_ms: 5000", "group_drain_timeout_ms: 300")
    # Others may have been killed with the site, in another test, and be there until their time.
    only = '    groups: {include: ["g-staying"]}\n    topics:'
    file.write_text(text.replace("    topics:", only))
    plain = Consumer(
        {
            **CONSUMER,
            "bootstrap.servers": sites.dc1.bootstrap,
            "group.id": "g-staying",
            "enable.auto.commit": False,
        }
    )
    with run_mirror(file):
        wait_mirroring(file)
        plain.subscribe([topic])
        assert len(plain.consume(20, 20)) == 20
        plain.commit(offsets=[TopicPartition(topic, 0, 12)], asynchronous=False)
        refused = tell("promote", "dc2", str(file))
        produce(sites.dc1, topic, [20])
        ended = tell("promote", "dc2", str(file), "--force")
        plain.close()
    stays = "group g-staying has 1 member that would stay: stop them, and start them on dc2"
    assert refused.status == 2, refused
    assert f"  waits    {stays} behind the promotion" in refused.output, refused.output
    assert refused.complaint.startswith(
        f"failover: rolled back, dc1 stays active: preflight: {stays}"
    )
    with open_witness(sites.witness, "/p-staying") as witness:
        [taken_back, _] = witness.journals()
    assert StepName.FENCE not in taken_back.step_states
    assert ended.status == 0, ended
    assert f"  insists  {stays}" in ended.output
    assert "1 of 1 groups had members; still there: g-staying (1)" in ended.output
    assert "group    g-staying: staying-0@12" in ended.output
    assert "group    g-staying still has 1 member on dc1" in ended.output
    assert committed(sites.dc2, "g-staying", topic) == 12


@pytest.mark.story
def test_another_promotion_waits_for_the_unfinished_one_which_can_be_aborted(
    sites: Sites, tmp_path: Path
) -> None:
    topic = "aborted"
    create_topic(sites.dc1, topic)
    produce(sites.dc1, topic, range(10))
    file = sites.configure(tmp_path, "/p-aborted", topic)
    keep_sessions(file)
    with run_mirror(file) as daemon, open_witness(sites.witness, "/p-aborted") as witness:
        wait_mirroring(file)
        wait_length(sites.dc2, topic, 10)
        os.kill(daemon.pid, signal.SIGSTOP)
        produce(sites.dc1, topic, range(10, 15))
        program = failover("promote", "dc2", str(file))
        while not (
            witness.client.exists(witness.paths.journal(1))
            and StepName.PREFLIGHT in witness.journals()[0].step_states
        ):
            assert program.process.poll() is None, finish(program)
            pause(0.02)
        program.process.send_signal(signal.SIGINT)
        stopped = finish(program)
        os.kill(daemon.pid, signal.SIGCONT)
        assert (stopped.status, stopped.complaint) == (
            1,
            "failover: stopped; run the same command again to go on, or `failover abort`",
        )
        other = tell("promote", "dc1", str(file))
        assert (other.status, other.complaint) == (
            2,
            (
                "failover: the planned promotion of dc2 (epoch 1) is unfinished: finish it with"
                " `failover promote dc2` or take it back with `failover abort`"
            ),
        )
        aborted = tell("abort", str(file))
        assert aborted.status == 0, aborted
        assert witness.active() == ActiveSite(site="dc1", epoch=0)
        [journal] = witness.journals()
        assert journal.state is PromotionState.ROLLED_BACK
        produce(sites.dc1, topic, range(15, 20))
        again = tell("promote", "dc2", str(file))
        assert again.status == 0, again
        assert witness.active() == ActiveSite(site="dc2", epoch=2)
    assert values_of(read_all(sites.dc2, topic)) == list(range(20))
    assert committed(sites.dc2, "nobody", topic) < 0
    assert load(file).failover.initial_active == "dc1"
