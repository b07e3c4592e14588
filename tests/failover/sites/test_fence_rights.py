"""Closing topics by rights: what is given and taken, in which order, and when it holds."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

import failover.sites.fence
import failover.sites.fence_rights
from failover.journal.execute import StepFailed
from failover.journal.facts import Facts
from failover.journal.steps import PromotionKind, StepName
from failover.journal.store import WitnessStore
from failover.moving.flow import FlowControl
from failover.sites.fence import (
    LIFTED_TIMEOUT_S,
    NOBODY,
    Fence,
    FenceDoesNotHold,
    as_allowed,
    read_fence,
    set_fence,
    wait_holds,
    wait_lifted,
    would_shut_us_out,
)
from failover.sites.fence_rights import changes
from failover.sites.pair_evidence import PairEvidence
from failover.sites.site import SiteUnclear
from runtime.pair.evidence import TOPIC
from runtime.rights.closable import why_creatable, why_unfenceable
from runtime.rights.closing import (
    FenceNote,
    barring,
    closing,
    closings,
    fenced,
    noted,
    noting,
    of_fence,
)
from runtime.rights.creation import OF_CLUSTER
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_rights import FakeRights, everybodys
from tests.failover.between import effects_between
from tests.failover.journals import begun, unnoted
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault, open_cluster
from wire.net.rights import ALLOW, PREFIXED, READ, Right
from wire.topic_partition import TopicPartition

TOPICS = ("orders", "payments", "archive")
CLIENT = "mirror-dc2-dc1"
EVERYONE: dict[str, str | None] = {"allow.everyone.if.no.acl.found": None}
"""What Apache Kafka tells of a setting of its authorizer, true or false."""
BARS = (barring("pay", pattern=PREFIXED), barring("*"), OF_CLUSTER)
FENCE = Fence(topics=("orders", "payments"), allowed_clients=(CLIENT,))
READABLE = everybodys(TOPICS, READ, ALLOW)
PLACES = [TopicPartition("orders", 0), TopicPartition("payments", 0), TopicPartition("payments", 1)]


@asynccontextmanager
async def guarded(brokers: int = 1) -> AsyncIterator[tuple[Cluster, FakeRights]]:
    """A cluster with an authorizer, by which everybody may read three topics."""
    async with run_fake_cluster(brokers) as fake:
        for topic, leaders in (("orders", [0]), ("payments", [0, 0])):
            fake.create_topic(topic, *leaders)
        rights = FakeRights(fake, *READABLE)
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            yield cluster, rights


async def test_a_lifted_fence_is_waited_for_until_the_last_broker_has_heard(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    """An application's producer that is denied gives up, and nobody may blame the switch."""
    async with guarded(brokers=2) as (cluster, rights):
        await set_fence(cluster, FENCE)
        closed = await read_fence(cluster)
        rights.deaf[1] = set(rights.rights)
        await set_fence(cluster, Fence())
        began = trio.current_time()
        assert await wait_lifted(cluster, closed) == len(FENCE.topics)
        assert trio.current_time() - began >= LIFTED_TIMEOUT_S
        del rights.deaf[1]
        began = trio.current_time()
        assert await wait_lifted(cluster, closed) == 0
        assert trio.current_time() - began < LIFTED_TIMEOUT_S


async def test_a_fence_is_read_as_it_was_set_and_leaves_nothing_behind() -> None:
    async with guarded() as (cluster, rights):
        assert await read_fence(cluster) == Fence()
        await set_fence(cluster, FENCE)
        assert await read_fence(cluster) == FENCE
        await wait_holds(cluster, PLACES)
        await set_fence(cluster, Fence(topics=("payments",), allowed_clients=(CLIENT,)))
        assert (await read_fence(cluster)).topics == ("payments",)
        await set_fence(cluster, Fence())
        assert rights.rights == READABLE
        before = len(rights.log)
        await set_fence(cluster, Fence())
        assert len(rights.log) == before


async def test_a_topic_is_closed_and_opened_by_one_request_of_its_entries() -> None:
    async with guarded() as (cluster, rights):
        await set_fence(cluster, FENCE)
        await set_fence(cluster, Fence())
    entries = frozenset(
        entry
        for topic in FENCE.topics
        for entry in (closing(topic), noting(closing(topic), FenceNote(client=CLIENT)))
    )
    assert rights.log == [("give", entries), ("take", entries)]


def test_a_note_is_there_before_what_it_notes_and_goes_after_it() -> None:
    wanted = {*map(closing, FENCE.topics), *BARS}
    given_, taken = changes(set(), wanted, [CLIENT])
    assert (len(given_), taken) == (2 * len(wanted), [])
    for number, right in enumerate(given_):
        if noted(right) is None:
            assert noting(right, FenceNote(client=CLIENT)) in given_[:number]
    nothing, back = changes(set(given_), (), [CLIENT])
    assert (nothing, {*back}) == ([], {*given_})
    for number, right in enumerate(back):
        if noted(right) is None:
            assert noting(right, FenceNote(client=CLIENT)) not in back[:number]


async def test_half_a_fence_of_somebody_killed_is_none_and_is_taken_away() -> None:
    async with guarded() as (cluster, rights):
        rights.rights.add(noting(closing("orders"), FenceNote(client=CLIENT)))
        assert await read_fence(cluster) == Fence()
        await set_fence(cluster, Fence())
        assert rights.rights == READABLE


async def test_what_somebody_else_has_closed_stays_closed() -> None:
    async with guarded() as (cluster, rights):
        rights.rights.add(closing("archive"))
        before = set(rights.rights)
        assert await read_fence(cluster) == Fence()
        for _ in range(2):
            await set_fence(cluster, Fence(topics=TOPICS, allowed_clients=(CLIENT,)))
            assert (await read_fence(cluster)).topics == tuple(sorted(TOPICS))
        await set_fence(cluster, Fence())
        assert rights.rights == before


@pytest.mark.parametrize("late", [0, 1, 2])
async def test_a_fence_does_not_go_by_what_one_broker_has_not_heard_yet(late: int) -> None:
    """One that was lifted a moment ago, and one that was set: whichever broker lags behind."""
    async with guarded(brokers=3) as (cluster, rights):
        await set_fence(cluster, FENCE)
        closed = set(rights.rights)
        rights.rights = set(READABLE)  # somebody has lifted it
        rights.deaf[late] = closed
        await set_fence(cluster, FENCE)
        assert rights.rights == closed
        rights.deaf[late] = set(READABLE)
        await set_fence(cluster, Fence())
        assert rights.rights == READABLE


async def test_a_fence_holds_once_the_last_broker_has_heard_of_it() -> None:
    async with guarded(brokers=3) as (cluster, rights):
        rights.deaf[2] = set(READABLE)
        await set_fence(cluster, FENCE)
        with pytest.raises(FenceDoesNotHold, match=r"^orders-0 broker 2 does not know .* \(3 of 3"):
            await wait_holds(cluster, PLACES, timeout_s=0.2)
        rights.deaf.clear()
        await wait_holds(cluster, PLACES)


@pytest.mark.parametrize(("every_s", "is_waited_for"), [(8, True), (11, False)])
async def test_a_fence_that_spreads_slowly_is_waited_for_while_it_spreads(
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,  # noqa: ARG001
    *,
    every_s: float,
    is_waited_for: bool,
) -> None:
    began = trio.current_time()

    async def no_settings(_: object) -> None:
        return None

    async def still_open(
        _: object, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, str]:
        closed = int((trio.current_time() - began) / every_s)
        return {partition: "is open" for partition in partitions if partition in PLACES[closed:]}

    monkeypatch.setattr(failover.sites.fence, "read_fence_settings", no_settings)
    monkeypatch.setattr(failover.sites.fence_rights, "still_open", still_open)
    cluster = cast("Cluster", None)
    with nullcontext() if is_waited_for else pytest.raises(FenceDoesNotHold, match="3 of 3"):
        await wait_holds(cluster, PLACES, timeout_s=10)
    assert trio.current_time() - began == pytest.approx(3 * every_s if is_waited_for else 10, 0.1)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ErrorCode.SECURITY_DISABLED, "it has no write fence, and no authorizer"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "to describe rights: CLUSTER_AUTHORIZATION_FAILE"),
    ],
)
async def test_where_nothing_can_be_closed_nothing_is_and_nothing_can_be_set(
    error: ErrorCode, why: str
) -> None:
    async with guarded() as (cluster, rights):
        rights.error = error
        assert await read_fence(cluster) == Fence()
        assert why in (await why_unfenceable(cluster, TOPICS) or "")
        await set_fence(cluster, Fence())
        with pytest.raises(NetworkFault):
            await set_fence(cluster, FENCE)
        assert rights.log == []


async def test_a_topic_that_no_entry_concerns_is_not_closed_by_the_first_one() -> None:
    async with guarded() as (cluster, rights):
        assert await why_unfenceable(cluster, ("bare",)) is None, "nobody uses it"
        rights.settings = EVERYONE
        assert await why_unfenceable(cluster, TOPICS) is None
        reason = await why_unfenceable(cluster, (*TOPICS, "bare", "barren"))
        assert reason is not None
        assert reason.startswith("no ACL concerns bare (and 1 more)")
        [right] = everybodys(["bar"], READ, ALLOW)
        rights.rights.add(replace(right, pattern=PREFIXED))
        assert await why_unfenceable(cluster, (*TOPICS, "bare", "barren")) is None
        rights.rights = everybodys(["*"], READ, ALLOW)
        assert await why_unfenceable(cluster, ("anything",)) is None


async def test_the_step_closes_the_source_by_rights_and_its_undoing_opens_it(
    tmp_path: Path,
) -> None:
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        source.create_topic("orders", 0)
        rights = FakeRights(source, *READABLE)
        async with effects_between(tmp_path, source, target, "o.*") as effects:
            outcome = await effects.run(StepName.FENCE, begun(), unnoted)
            assert outcome.facts == {"fenced": True, "partitions": 1, "topics": {"orders": 1}}
            assert fenced(rights.rights) == {"orders": {FenceNote(client=CLIENT)}}
            bars = {barring("o", pattern=PREFIXED), barring("*"), OF_CLUSTER}
            assert closings(rights.rights).keys() == {closing("orders"), *bars}
            await effects.undo(StepName.FENCE, begun())
        assert rights.rights == READABLE


def test_a_note_is_known_by_its_principal_alone() -> None:
    for denied in (closing("orders"), *BARS):
        for note in (FenceNote(client=CLIENT), FenceNote(client=CLIENT, was_closed=True)):
            assert noted(noting(denied, note)) == note
            assert of_fence([noting(denied, note)])
        assert noted(denied) is None
    [readable] = everybodys(["orders"], READ, ALLOW)
    assert not of_fence([readable, *BARS])
    assert of_fence([closing("orders")])


@st.composite
def held_rights(draw: st.DrawFn) -> set[Right]:
    """Any fences, also half ones that were left by somebody killed, and what others have closed."""
    possible = [*map(closing, TOPICS), *BARS]
    possible += [
        noting(denied, FenceNote(client=client, was_closed=was_closed))
        for denied in (*map(closing, TOPICS), *BARS)
        for client in (CLIENT, "mirror-dc1-dc2")
        for was_closed in (False, True)
    ]
    return draw(st.sets(st.sampled_from(possible)))


ANY_DENIAL = st.sampled_from([*map(closing, TOPICS), *BARS])


@given(held=held_rights(), wanted=st.sets(ANY_DENIAL), cut=st.integers(0, 40))
def test_from_wherever_somebody_was_killed_the_same_fence_is_reached(
    held: set[Right], wanted: set[Right], cut: int
) -> None:
    killed = applied(held, wanted, cut)
    done = applied(killed, wanted)
    assert closings(done).keys() == wanted
    assert all({note.client for note in notes} == {CLIENT} for notes in closings(done).values())
    assert changes(done, wanted, [CLIENT]) == ([], [])


@given(
    before=st.sets(ANY_DENIAL),
    wanted=st.sets(ANY_DENIAL),
    cuts=st.tuples(st.integers(0, 14), st.integers(0, 14)),
)
def test_a_fence_that_is_lifted_leaves_what_others_have_denied(
    before: set[Right], wanted: set[Right], cuts: tuple[int, int]
) -> None:
    half = applied(applied(before, wanted, cuts[0]), wanted)
    assert applied(applied(half, set(), cuts[1]), set()) == before


def applied(held: set[Right], wanted: set[Right], steps: int | None = None) -> set[Right]:
    """What is held behind so many of all entries given and taken, or behind all."""
    given_, taken = changes(held, wanted, [CLIENT])
    found = set(held)
    for right in [*given_, *taken][:steps]:
        found ^= {right}
    return found


async def test_topics_are_kept_from_being_made_and_let_again_by_the_same_fence() -> None:
    barred = replace(FENCE, bars=frozenset(BARS))
    async with guarded(brokers=2) as (cluster, rights):
        await set_fence(cluster, barred)
        assert await read_fence(cluster) == barred
        rights.deaf[1] = rights.rights - {OF_CLUSTER}
        with pytest.raises(FenceDoesNotHold, match=r"^the cluster broker 1 .* make such topics"):
            await wait_holds(cluster, PLACES, barred=barred.bars, timeout_s=0.2)
        rights.deaf.clear()
        await wait_holds(cluster, PLACES, barred=barred.bars)
        assert not await would_shut_us_out(cluster)
        assert await read_fence(cluster) == barred
        await set_fence(cluster, FENCE)
        assert await read_fence(cluster) == FENCE
        await set_fence(cluster, Fence())
        assert rights.rights == READABLE


async def test_where_the_first_entry_would_shut_others_out_topics_can_be_made() -> None:
    barred = replace(FENCE, bars=frozenset(BARS))
    async with guarded() as (cluster, rights):
        assert await why_creatable(cluster, BARS) is None
        assert (await as_allowed(cluster, barred)).bars == barred.bars
        rights.settings = EVERYONE
        reason = await why_creatable(cluster, BARS)
        assert reason is not None
        assert reason.startswith("no ACL of others speaks of *, pay*, the cluster, and a DENY")
        assert (await as_allowed(cluster, barred)).bars == frozenset()
        rights.rights |= everybodys(["*"], READ, ALLOW)
        assert (await as_allowed(cluster, barred)).bars == barred.bars - {OF_CLUSTER}
        rights.rights.add(replace(OF_CLUSTER, principal="User:broker", permission=ALLOW))
        assert await why_creatable(cluster, BARS) is None
        await set_fence(cluster, barred)
        assert (await as_allowed(cluster, barred)).bars == barred.bars


async def test_a_trial_that_is_cancelled_or_was_killed_leaves_nothing_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def wait_long(*_: object) -> None:
        assert TOPIC in fenced(rights.rights)
        await trio.sleep_forever()

    async with guarded() as (cluster, rights):
        monkeypatch.setattr(failover.sites.fence, "wait_holds", wait_long)
        with trio.move_on_after(0.3) as stopped:
            await would_shut_us_out(cluster)
        assert stopped.cancelled_caught
        assert rights.rights == READABLE
        monkeypatch.setattr(failover.sites.fence, "wait_holds", wait_holds)
        await set_fence(cluster, Fence(topics=(TOPIC,), allowed_clients=(NOBODY,)))
        assert not await would_shut_us_out(cluster)
        assert rights.rights == READABLE


async def test_a_flow_back_is_kept_at_rest_until_its_own_step(tmp_path: Path) -> None:
    """It would run from the switch on, before the old site has been looked at once more."""
    ordered: list[tuple[str, str]] = []

    class Flow:
        def __init__(self, name: str) -> None:
            self.name = name

        async def forbid(self, *_: object) -> None:
            ordered.append((self.name, "rest"))

        async def start(self, *_: object) -> None:
            ordered.append((self.name, "run"))

        async def stop(self, *_: object) -> Facts:
            ordered.append((self.name, "rest"))
            return {"flow": "settled"}

    async with (
        run_fake_cluster() as source,
        run_fake_cluster() as target,
        effects_between(tmp_path, source, target, "o.*") as effects,
    ):
        both = replace(
            effects,
            store=cast("WitnessStore", SimpleNamespace(claim=None)),
            control=cast("FlowControl", Flow("there")),
            reverse=cast("FlowControl", Flow("back")),
        )
        await both.run(StepName.STOP_FLOW, begun(), unnoted)
        await both.undo(StepName.STOP_FLOW, begun())
    assert ordered == [("back", "rest"), ("there", "rest"), ("there", "run"), ("back", "run")]


async def test_evidence_that_may_not_be_written_is_found_before_the_fence(tmp_path: Path) -> None:
    class Evidence:
        async def require_writable(self, sites: frozenset[str]) -> None:
            raise SiteUnclear(f"{', '.join(sorted(sites))}: TOPIC_AUTHORIZATION_FAILED")

    lost = replace(begun(), kind=PromotionKind.SOURCE_LOST)
    async with run_fake_cluster() as source, run_fake_cluster() as target:
        target.create_topic("orders", 0)
        async with effects_between(tmp_path, source, target, "o.*") as effects:
            silent = replace(effects, evidence=cast("PairEvidence", Evidence()))
            with pytest.raises(StepFailed, match="dc2: TOPIC_AUTHORIZATION_FAILED"):
                await silent.run(StepName.PREFLIGHT, lost, unnoted)
