"""Whether each group was given every record, and nothing again that it had committed. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from tests.drill.checker import Kind, Offence, Story
from tests.drill.history import Committed, Position, Read, Took


def check_group(story: Story) -> list[Offence]:
    """Return everything that is wrong, in the order of kind, log and offset."""
    found: set[Offence] = set()
    for one in _by_group(story):
        found |= {*_reread(one), *_gone_back(one), *_missed(one)}
    return sorted(found)


def _by_group(story: Story) -> Iterator[Story]:
    """Yield what happened in each group."""
    reads = [read for read in story.reads if read.in_group]
    for group in sorted({read.group for read in reads}):
        yield replace(
            story,
            reads=[read for read in reads if read.group == group],
            took=[one for one in story.took if one.group == group],
            committed=[one for one in story.committed if one.group == group],
            positions=[one for one in story.positions if one.group == group],
        )


def _reread(story: Story) -> Iterator[Offence]:
    """Nobody in the group is given what was committed before the log was taken over.

    Nor anything twice while one member has the log. What was read and not committed may come again.
    """
    steps: dict[str, list[Took | Committed | Read]] = defaultdict(list)
    everything: list[Took | Committed | Read] = [*story.took, *story.committed]
    everything += story.reads
    for step in sorted(everything, key=lambda one: one.at_s):
        steps[step.log].append(step)
    for log, in_order in steps.items():
        committed = 0
        begins: dict[str, int] = {}
        for step in in_order:
            match step:
                case Committed():
                    committed = max(committed, step.offset)
                case Took():
                    begins[step.who] = committed
                case Read():
                    least = begins.get(step.who, 0)
                    if step.offset < least:
                        says = f"{step.who} was given it; {least} was committed or given before"
                        yield Offence(Kind.REREAD.name, log, step.offset, says)
                    begins[step.who] = max(least, step.offset + 1)


def _gone_back(story: Story) -> Iterator[Offence]:
    """A position is never below one that was acknowledged, or seen, before it was asked for."""
    known: dict[str, list[tuple[float, int]]] = defaultdict(list)
    everything: list[Committed | Position] = [*story.committed, *story.positions]
    for told in everything:
        known[told.log].append((told.at_s, told.offset))
    for log, told_positions in known.items():
        told_positions.sort()
        highest = [*accumulate((offset for _, offset in told_positions), max)]
        for position in story.positions:
            before = bisect_left(told_positions, (position.asked_s, -1)) - 1
            if position.log == log and before >= 0 and position.offset < highest[before]:
                says = f"{position.who} was told it at {position.at_s:.3f} s; {highest[before]} was"
                yield Offence(Kind.WENT_BACK.name, log, position.offset, f"{says} committed before")


def _missed(story: Story) -> Iterator[Offence]:
    given = {(read.log, read.offset) for read in story.reads}
    for log, contents in story.final.items():
        for offset, content in contents.items():
            if (log, offset) not in given:
                yield Offence(Kind.MISSED.name, log, offset, f"no member was given {content}")
