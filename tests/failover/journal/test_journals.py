"""Journals of earlier promotions are read once, and kept for as long as somebody needs them."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TypeVar, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.journal.facts import SealFacts
from failover.journal.journal import (
    Journal,
    JournalUnreadable,
    PartitionEnds,
    begin_step,
    decode_journal,
    encode_journal,
    end_step,
)
from failover.journal.journals import (
    KEPT,
    JournalReader,
    find_unfinished,
    forget_superfluous,
    read_journals,
    superfluous,
)
from failover.journal.lease import Lease, LeaseLost
from failover.journal.mirrored_away import mirrored_away
from failover.journal.steps import PromotionKind, PromotionState, StepName, StepState
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from spark_audit.snapshot.seals import CannotTell, promotion_of
from wire.topic_partition import TopicPartition

T = TypeVar("T")
PATHS = WitnessPaths(root="/r")
SITES = ("dc1", "dc2", "dc3")


def journal(
    epoch: int, source: str = "dc1", site: str = "dc2", state: PromotionState = PromotionState.DONE
) -> Journal:
    """A promotion with one partition that says which one it was."""
    ends = PartitionEnds(
        topic="t", partition=0, mirrored_source_end=epoch, target_end=epoch, source_end=epoch
    )
    return Journal(
        epoch=epoch,
        site=site,
        source=source,
        kind=PromotionKind.PLANNED,
        state=state,
        started_ms=0,
        partitions=(ends,),
    )


@dataclass(slots=True)
class Nodes:
    """What lies in the witness, and how often each node was read; a lease that always holds."""

    journals: dict[str, bytes] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def put(self, *journals: Journal) -> None:
        for one in journals:
            self.journals[PATHS.journal(one.epoch)] = encode_journal(one)

    async def children(self, path: str) -> list[str]:
        below = f"{path}/"
        return sorted(
            {one.removeprefix(below).split("/")[0] for one in self.journals if below in one}
        )

    async def get(self, path: str) -> ZNode | None:
        self.asked.update([path])
        data = self.journals[path]
        return ZNode(data=data, version=0, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        for one in [*self.journals]:
            if one == path or (recursive and one.startswith(f"{path}/")):
                del self.journals[one]

    async def act(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()

    @property
    def zookeeper(self) -> ZooKeeper:
        return cast("ZooKeeper", self)


async def test_a_journal_that_has_ended_is_read_once() -> None:
    nodes = Nodes()
    running = journal(3, state=PromotionState.RUNNING)
    nodes.put(journal(1), journal(2, state=PromotionState.ROLLED_BACK), running)
    reader = JournalReader(nodes.zookeeper, PATHS)
    for _ in range(5):
        found = await reader.read(active_epoch=1)
        assert found[-1] == find_unfinished(found) == running
        assert [one.epoch for one in found] == [1, 2, 3]
    assert nodes.asked == {PATHS.journal(1): 1, PATHS.journal(2): 1, PATHS.journal(3): 5}


async def test_who_reads_again_is_given_what_ended_last_and_who_made_the_site_active() -> None:
    nodes = Nodes()
    nodes.put(*(journal(epoch) for epoch in range(1, 6)))
    reader = JournalReader(nodes.zookeeper, PATHS)
    assert len(await reader.read(active_epoch=5)) == 5
    nodes.put(journal(6, state=PromotionState.ROLLED_BACK))
    assert [one.epoch for one in await reader.read(active_epoch=5)] == [5, 6]
    assert [one.epoch for one in await reader.read(active_epoch=2)] == [2, 6]


async def test_a_journal_that_cannot_be_read_is_tried_again() -> None:
    nodes = Nodes({PATHS.journal(1): b"{}"})
    reader = JournalReader(nodes.zookeeper, PATHS)
    with pytest.raises(JournalUnreadable, match="/r/failover/journal/0000000001"):
        await reader.read()
    nodes.put(journal(1))
    assert await reader.read() == [journal(1)]


async def test_what_is_not_needed_any_more_is_deleted() -> None:
    nodes = Nodes()
    rolled_back = PromotionState.ROLLED_BACK
    nodes.put(journal(1, state=PromotionState.RUNNING), journal(2))
    nodes.put(*(journal(epoch, state=rolled_back) for epoch in range(3, 10 + KEPT)))
    await forget_superfluous(nodes.zookeeper, PATHS, cast("Lease", nodes))
    left = await read_journals(nodes.zookeeper, PATHS)
    assert [one.epoch for one in left] == [1, 2, *range(10, 10 + KEPT)]


async def test_parts_of_what_is_deleted_go_too_and_those_of_a_beginning_promotion_stay() -> None:
    nodes = Nodes()
    nodes.put(*(journal(epoch, state=PromotionState.ROLLED_BACK) for epoch in range(1, 2 + KEPT)))
    for epoch in (1, 2, 100):
        nodes.journals[f"{PATHS.journal_parts(epoch)}/part"] = b""
    await forget_superfluous(nodes.zookeeper, PATHS, cast("Lease", nodes))
    assert await nodes.children(PATHS.all_journal_parts) == ["0000000002", "0000000100"]


async def test_without_the_lease_nothing_is_deleted_and_nothing_else_happens() -> None:
    class Lost(Nodes):
        async def act(self, _: Callable[[], Awaitable[T]]) -> T:
            raise LeaseLost("lost")

    nodes = Lost()
    nodes.put(*(journal(epoch) for epoch in range(100)))
    await forget_superfluous(nodes.zookeeper, PATHS, cast("Lease", nodes))
    assert len(nodes.journals) == 100


PROMOTIONS = st.tuples(
    st.sampled_from(list(permutations(SITES, 2))), st.sampled_from(PromotionState)
)


@given(history=st.lists(PROMOTIONS, max_size=10), newest=PROMOTIONS)
def test_an_audit_says_the_same_of_what_is_left_as_of_all(
    history: list[tuple[tuple[str, str], PromotionState]],
    newest: tuple[tuple[str, str], PromotionState],
) -> None:
    whole = [*history, *[newest] * KEPT]
    journals = [journal(n, *sites, state) for n, (sites, state) in enumerate(whole, start=1)]
    gone = {one.epoch for one in superfluous(journals)}
    left = [one for one in journals if one.epoch not in gone]
    assert len(left) <= KEPT + 12 + sum(one.state is PromotionState.RUNNING for one in journals)
    for source, target in permutations(SITES, 2):
        assert audited(left, source, target) == audited(journals, source, target)


def audited(journals: list[Journal], source: str, target: str) -> object:
    """What an audit of this flow goes by."""
    try:
        return promotion_of(map(encode_journal, journals), source=source, target=target)
    except CannotTell:
        return "unknown"


def test_an_unfinished_promotion_of_long_ago_is_found() -> None:
    begun = replace(journal(1), state=PromotionState.RUNNING)
    assert superfluous([begun, *(journal(n, "dc2", "dc1") for n in range(2, 90))])[0].epoch == 3


def test_what_was_mirrored_away_is_told_by_the_last_promotion_that_is_done() -> None:
    journals = [
        journal(1),
        journal(2, "dc2", "dc1"),
        journal(3),
        journal(4, "dc1", "dc3"),
        journal(5, state=PromotionState.ROLLED_BACK),
        journal(6, state=PromotionState.RUNNING),
    ]
    assert mirrored_away(journals, "dc1", "dc2", {}) == {TopicPartition("t", 0): 3}
    assert mirrored_away(journals, "dc3", "dc2", {}) == {}


@pytest.mark.parametrize(
    ("then", "now", "is_told"),
    [(1, 1, True), (1, 2, False), (None, 2, True), (1, None, True)],
    ids=["the same", "made again", "an older journal", "no ids"],
)
def test_what_was_mirrored_away_of_a_topic_says_nothing_of_another_one_of_its_name(
    then: int | None, now: int | None, *, is_told: bool
) -> None:
    known = () if then is None else (UUID(int=then),)
    sealed = end_step(
        begin_step(journal(3), StepName.SEAL, 0),
        StepName.SEAL,
        state=StepState.DONE,
        facts=SealFacts(source_ids=known).encode(),
        now_ms=0,
    )
    read = decode_journal(encode_journal(sealed))
    seen = {} if now is None else {"t": UUID(int=now)}
    expected = {TopicPartition("t", 0): 3} if is_told else {}
    assert mirrored_away([read], "dc1", "dc2", seen) == expected
