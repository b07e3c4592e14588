"""Promotions that have come to some step."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

import trio

from failover.journal.facts import Facts, JsonValue, SealFacts
from failover.journal.journal import Journal, PartitionEnds, begin_step, end_step
from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName, StepState


def begun() -> Journal:
    """A promotion of dc2 that knows what moves."""
    kind = PromotionKind.PLANNED
    journal = Journal(epoch=1, site="dc2", source="dc1", kind=kind, started_ms=0)
    journal = begin_step(journal, StepName.PREFLIGHT, 0)
    facts: Facts = {"topics": {"orders": 1}, "fence": []}
    return end_step(journal, StepName.PREFLIGHT, state=StepState.DONE, facts=facts, now_ms=0)


def done(journal: Journal, step: StepName, facts: Facts) -> Journal:
    """The journal with a step that has ended."""
    return end_step(journal, step, state=StepState.DONE, facts=facts, now_ms=0)


def drained(journal: Journal, **ends: int) -> Journal:
    """The journal behind the drain of logs with these ends."""
    logs = {topic: {"0": end} for topic, end in ends.items()}
    facts: Facts = {"records": 0, "starts": logs, "ends": logs}
    return done(begin_step(journal, StepName.DRAIN, 0), StepName.DRAIN, facts)


async def unnoted(_: Facts) -> None:
    """Have no journal hold what a step finds out before it acts."""
    await trio.lowlevel.checkpoint()


def ended_promotion(kind: PromotionKind, facts: dict[StepName, Facts]) -> Journal:
    """A promotion that has ended well."""
    ends = PartitionEnds(
        topic="orders", partition=0, mirrored_source_end=42, target_end=40, source_end=None
    )
    journal = Journal(
        epoch=1,
        site="dc2",
        source="dc1",
        kind=kind,
        state=PromotionState.DONE,
        started_ms=1_000,
        switched_ms=3_250,
        partitions=(ends,),
    )
    for step, found in facts.items():
        journal = begin_step(journal, step, 0)
        journal = end_step(journal, step, state=StepState.DONE, facts=found, now_ms=0)
    return journal


FURTHEST: Final = 2**63 - 1


def full_facts(topics: Mapping[str, int]) -> dict[StepName, Facts]:
    """What the steps note of these topics, all of them fenced on the target before."""
    logs: JsonValue = {
        topic: {str(index): FURTHEST for index in range(count)} for topic, count in topics.items()
    }
    ids = tuple(UUID(int=number) for number in range(len(topics)))
    return {
        StepName.PREFLIGHT: {"topics": topics, "fence": [*topics]},
        StepName.FENCE: {"fenced": True, "partitions": FURTHEST, "topics": topics},
        StepName.DRAIN: {"records": FURTHEST, "starts": logs, "ends": logs},
        StepName.SEAL: {"partitions": FURTHEST, **SealFacts(source_ids=ids).encode()},
        StepName.VERIFY_FENCE: {"partitions": FURTHEST, "made": [*topics], "committed": FURTHEST},
        StepName.OPEN_TARGET: {"was_fenced": [*topics], "evidence": {}},
    }


def full_ends(topics: Mapping[str, int]) -> tuple[PartitionEnds, ...]:
    """The seals of all partitions of these topics."""
    return tuple(
        PartitionEnds(
            topic=topic,
            partition=index,
            mirrored_source_end=FURTHEST,
            target_end=FURTHEST,
            source_end=FURTHEST,
        )
        for topic, count in topics.items()
        for index in range(count)
    )


def fullest(topics: Mapping[str, int]) -> Journal:
    """A promotion of these topics that has ended."""
    facts = full_facts(topics)
    journal = ended_promotion(
        PromotionKind.PLANNED, {step: facts.get(step, {}) for step in ORDER[PromotionKind.PLANNED]}
    )
    return replace(journal, partitions=full_ends(topics))
