"""Journals as hypothesis draws them."""

from hypothesis import strategies as st

from failover.journal.commands_given import GivenCommand
from failover.journal.facts import Facts
from failover.journal.journal import Journal, PartitionEnds, StepRecord
from failover.journal.steps import (
    ORDER,
    Direction,
    PromotionKind,
    PromotionState,
    StepName,
    StepState,
)

offsets = st.integers(0, 2**63 - 1)
wall_clock = st.integers(0, 2**42)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
values = st.none() | st.booleans() | offsets | names
facts: st.SearchStrategy[Facts] = st.dictionaries(
    names, values | st.lists(values, max_size=3) | st.dictionaries(names, values, max_size=2)
)


def partition_ends() -> st.SearchStrategy[PartitionEnds]:
    """Ends of one partition, the source's known or lost."""
    return st.builds(
        PartitionEnds,
        topic=names,
        partition=st.integers(0, 100),
        mirrored_source_end=offsets,
        target_end=offsets,
        source_end=st.none() | offsets,
    )


@st.composite
def journals(draw: st.DrawFn) -> Journal:
    """Journals with any step states: the codec must not care which ones can come about."""
    kind = draw(st.sampled_from(PromotionKind))
    begun = draw(st.integers(0, len(ORDER[kind])))
    steps = [draw(step_records(name)) for name in ORDER[kind][:begun]]
    return Journal(
        epoch=draw(st.integers(1, 2**31)),
        site=draw(names),
        source=draw(names),
        kind=kind,
        state=draw(st.sampled_from(PromotionState)),
        direction=draw(st.sampled_from(Direction)),
        reason=draw(st.none() | names),
        started_ms=draw(wall_clock),
        switched_ms=draw(st.none() | wall_clock),
        partitions=tuple(draw(st.lists(partition_ends(), max_size=3))),
        steps=tuple(steps),
        given=tuple(draw(st.lists(given_commands(), max_size=2))),
    )


def given_commands() -> st.SearchStrategy[GivenCommand]:
    """Any command."""
    return st.builds(GivenCommand, what=names, user=names, host=names, at_ms=wall_clock)


def step_records(name: StepName) -> st.SearchStrategy[StepRecord]:
    """Any record of this step."""
    return st.builds(
        StepRecord,
        name=st.just(name),
        state=st.sampled_from(StepState),
        started_ms=wall_clock,
        ended_ms=st.none() | wall_clock,
        facts=facts,
    )
