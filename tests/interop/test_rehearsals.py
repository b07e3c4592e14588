"""Rehearsals beside production, some of them killed: what is not theirs stays as it is.

Of two sets of applications one is written and read on dc1 all the while, the other rests on dc2.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import trio
from confluent_kafka.admin import AclOperation, ResourceType

from failover.journal.steps import PromotionState, StepName
from failover.rehearsal.outcome import RehearsalState
from failover.serve import rehearsals
from failover.serve.rehearsal_metrics import RehearsalCollector
from runtime.configuration.config import load
from runtime.configuration.topic_sets import REHEARSAL_SET
from runtime.process.clock import now_ms
from tests.dc_yaml import dc_yaml, flow
from tests.failover.promoting import (
    Ended,
    WitnessView,
    failover,
    kill_at,
    open_witness,
    run_mirror,
    tell,
)
from tests.failover.two_sites import TIMEOUTS, run_sites
from tests.interop.applications import LibrdkafkaApplications, run_librdkafka, wait_more
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.rights import KRAFT_AUTHORIZER, give
from tests.interop.secured import run_secured
from tests.interop.sites import Site, commit, create_topic, write
from tests.interop.untouched import FenceWatch, Untouched, look_at_all
from tests.mirror.daemon import wait_until
from tests.secured_cluster import USER
from tests.zookeeper import run_witness

PATIENCE_S = 90
PATH = "/rehearsed"
LIVE, RESTING = "orders", "pay.in"
TOPICS = [LIVE, "pay.*", "failover.rehearsal.*"]
FAILOVER: dict[str, Any] = {
    "initial_active": "dc1",
    "rehearsal": {"load_ms": 500, "partitions": 2},
    "sets": {"payments": {"topics": ["pay.*"]}},
    "orphan_after_ms": 1_000,
    **TIMEOUTS,
}


@dataclass(frozen=True, slots=True)
class Ground:
    """Two sites, by the file of all programs."""

    dc1: Site
    dc2: Site
    file: Path
    witness: str
    application: Mapping[str, Any]
    """The settings of a client at dc1."""


@contextmanager
def bundled(folder: Path) -> Iterator[Ground]:
    with run_witness(folder / "witness") as witness, run_sites(folder, witness) as sites:
        dc1, dc2 = sites.dc1, sites.dc2
        file = configure(folder, dc1, dc2, witness)
        yield Ground(dc1, dc2, file, witness, {"bootstrap.servers": dc1.bootstrap})


@contextmanager
def apache(folder: Path) -> Iterator[Ground]:
    """Run sites that are closed by rights; the application is an ordinary user."""
    with (
        run_secured(folder, KAFKA_4_KRAFT, "dc1", KRAFT_AUTHORIZER) as dc1,
        run_secured(folder, KAFKA_4_KRAFT, "dc2", KRAFT_AUTHORIZER) as dc2,
        run_witness(folder / "witness") as witness,
    ):
        for site in (dc1.cluster, dc2.cluster):
            give(site, USER, ResourceType.TOPIC, "*", AclOperation.ALL)
            give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)
        file = configure(folder, dc1.cluster, dc2.cluster, witness)
        yield Ground(dc1.cluster, dc2.cluster, file, witness, dc1.client("SASL_PLAINTEXT"))


GROUNDS = {"bundled brokers": bundled, "Apache Kafka": apache}


def configure(folder: Path, dc1: Site, dc2: Site, witness: str) -> Path:
    file, ways = folder / "dc.yaml", (("dc1", "dc2"), ("dc2", "dc1"))
    file.write_text(
        dc_yaml(
            *(flow(*way, TOPICS, discovery_interval_ms=200) for way in ways),
            dc1=dc1.bootstrap,
            dc2=dc2.bootstrap,
            witness=witness,
            path=PATH,
            coordination={"session_timeout_ms": 4_000},
            failover=FAILOVER,
        )
    )
    return file


@contextmanager
def serving(file: Path) -> Iterator[None]:
    """Run `failover serve` until the block ends."""
    program = failover("serve", str(file))
    try:
        yield
    finally:
        program.process.terminate()
        program.finish(60)


def wait_flows(file: Path, *running: str) -> None:
    def run() -> bool:
        told = tell("status", "--json", str(file))
        if told.status != 0:
            return False
        of_sets = json.loads(told.output)["sets"].values()
        states = {one["name"]: one["state"] for each in of_sets for one in each["flows"]}
        return all(states[name] == "runs" for name in running)

    wait_until(f"{running} run", run, PATIENCE_S)


def promote(ground: Ground, site: str, name: str) -> None:
    ended = tell("promote", site, "--set", name, str(ground.file))
    assert ended.status == 0, ended.output + ended.complaint


def rehearse(ground: Ground) -> Ended:
    ended = tell("rehearse", "dc2", str(ground.file))
    assert ended.status == 0, ended.output + ended.complaint
    return ended


def kept_states(ground: Ground) -> list[str]:
    kept = json.loads(tell("history", "--json", str(ground.file)).output)["rehearsals"]
    return [one["state"] for one in kept]


def kill_rehearsal(ground: Ground, witness: WitnessView, step: StepName, epoch: int) -> None:
    """Kill a rehearsal in its promotion."""
    program = failover("rehearse", "dc2", str(ground.file), niceness=10)
    assert kill_at(witness, program, step, epoch), "the rehearsal was faster"


def state_of(witness: WitnessView, epoch: int) -> PromotionState:
    [journal] = (one for one in witness.journals() if one.epoch == epoch)
    return journal.state


def assert_untouched(before: Untouched, after: Untouched, live: LibrdkafkaApplications) -> None:
    """All is as it was, but for what the application has written and committed meanwhile."""
    assert after.logs.keys() == before.logs.keys()
    for (site, partition), log in before.logs.items():
        now = after.logs[site, partition]
        assert now[: len(log)] == log, f"{partition} on {site}"
        assert (now == log) is (partition.topic != LIVE), f"{partition} on {site}"
    assert after.positions.keys() == before.positions.keys()
    for (site, group), held in before.positions.items():
        now_held = after.positions[site, group]
        if group.startswith(LIVE):
            assert all(now_held[place] >= offset for place, offset in held.items())
        else:
            assert now_held == held, f"{group} on {site}"
    assert after.rights == before.rights
    assert after.fences == before.fences
    assert after.nodes == before.nodes
    assert live.failed() == []


@pytest.mark.parametrize("kind", GROUNDS)
def test_rehearsals_that_pass_and_that_are_killed_change_nothing_outside_their_set(
    kind: str, tmp_path: Path
) -> None:
    with (
        GROUNDS[kind](tmp_path) as ground,
        run_mirror(ground.file),
        open_witness(ground.witness, PATH) as pair,
        ThreadPoolExecutor(1) as aside,
    ):
        witness = WitnessView(pair.client, pair.paths.of_set(REHEARSAL_SET))
        for topic in (LIVE, RESTING):
            create_topic(ground.dc1, topic, 1)
        write(ground.dc1, RESTING, 0, 50)
        commit(ground.dc1, "payers", RESTING, 20)
        wait_flows(ground.file, "dc1->dc2", "payments:dc1->dc2", "rehearsal:dc1->dc2")
        promote(ground, "dc2", "payments")
        with run_librdkafka(ground.application, LIVE) as live:
            wait_more(live, 100)
            rehearse(ground)  # makes the topic, for which fences and rights grow once
            wait_until("commits", lambda: len(groups_of(ground, pair)) == 4, PATIENCE_S)
            before = look_at_all(ground.file, pair.client)
            assert {place.topic for _, place in before.logs} == {LIVE, RESTING}
            fences, done = FenceWatch(ground.file), Event()
            watching = aside.submit(fences.run, done)
            try:
                kill_and_rehearse_again(ground, witness)
            finally:
                done.set()
                watching.result(PATIENCE_S)
            after = look_at_all(ground.file, pair.client)
            wait_more(live, 100)
            live.stop_writing()
            written = len(live.acknowledged())
            wait_until("all is read", lambda: len(live.read()) >= written, PATIENCE_S)
            assert_untouched(before, after, live)
        assert live.read() == list(range(written))
        assert fences.looks > 10
        assert fences.closed == {"dc1": {frozenset({RESTING})}, "dc2": {frozenset({LIVE})}}
        assert kept_states(ground) == ["passed", *["interrupted", "passed"] * 3]


def kill_and_rehearse_again(ground: Ground, witness: WitnessView) -> None:
    """Kill rehearsals; `failover serve` ends one's promotion, the next rehearsal that of others."""
    with serving(ground.file):
        kill_rehearsal(ground, witness, StepName.DRAIN, 3)
        wait_until(
            "the promotion is taken back",
            lambda: state_of(witness, 3) is PromotionState.ROLLED_BACK,
            PATIENCE_S,
        )
    interrupted = ["passed", "interrupted"]
    wait_until("it is seen", lambda: kept_states(ground) == interrupted, PATIENCE_S)
    assert "rehearsal 2 of dc2 was interrupted" in rehearse(ground).output
    kill_rehearsal(ground, witness, StepName.CONFIRM, 6)
    assert witness.active().site == "dc2"
    assert "it is taken to dc1 first" in rehearse(ground).output
    assert state_of(witness, 6) is PromotionState.DONE
    kill_rehearsal(ground, witness, StepName.FENCE, 10)
    rehearse(ground)
    assert state_of(witness, 10) is PromotionState.ROLLED_BACK


def groups_of(ground: Ground, pair: WitnessView) -> set[tuple[str, str]]:
    """Return which groups have positions on which site."""
    held = look_at_all(ground.file, pair.client).positions
    return {place for place, offsets in held.items() if offsets}


def test_of_several_that_serve_one_rehearses_when_it_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others find in the witness that it was done."""
    with bundled(tmp_path) as ground, run_mirror(ground.file):
        wait_flows(ground.file, "dc1->dc2", "rehearsal:dc1->dc2")
        configuration = load(ground.file)
        config = configuration.failover.rehearsal
        assert config is not None
        due_ms = now_ms()

        def is_due(_: object, *, since_ms: int, **_now: int) -> bool:
            return since_ms < due_ms

        monkeypatch.setattr(rehearsals, "is_due", is_due)
        collectors = [RehearsalCollector(config) for _ in range(2)]

        async def serve_both() -> None:
            nonlocal due_ms
            async with trio.open_nursery() as nursery:
                for one in collectors:
                    nursery.start_soon(rehearsals.follow_rehearsals, configuration, config, one)
                await trio.sleep(0.5)
                due_ms = now_ms()
                with trio.fail_after(PATIENCE_S):
                    await wait_passed(collectors)
                await trio.sleep(2 * rehearsals.LOOK_EVERY_S)
                nursery.cancel_scope.cancel()

        trio.run(serve_both)
        assert kept_states(ground) == [RehearsalState.PASSED]
        kept = json.loads(tell("history", "--json", str(ground.file)).output)["rehearsals"]
        assert kept[0]["given"]["what"] == "failover serve: rehearse dc2"


async def wait_passed(collectors: Sequence[RehearsalCollector]) -> None:
    while True:
        if all(map(has_passed, collectors)):
            return
        await trio.sleep(0.2)


def has_passed(collector: RehearsalCollector) -> bool:
    return any(
        sample.labels.get("result") == RehearsalState.PASSED
        for metric in collector.collect()
        for sample in metric.samples
    )
