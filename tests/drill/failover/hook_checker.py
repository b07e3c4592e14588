"""Whether the hooks of promotions were called as their journals say. Pure.

What the drill's script has written down is held against the journals. Each call is of a promotion
that there was, by its key, in the order of the steps, and on the right side of the switch. A
promotion that is done has had all its hooks done; one that was taken back has had them taken back.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from failover.hooks.called import CALLED, TAKEN_BACK, Called, called_in
from failover.journal.journal import Journal
from failover.journal.steps import ORDER, PromotionState, StepName
from runtime.configuration.hooks_section import STEPS_BEHIND_SWITCH
from tests.drill.failover.checker import Finding, Kind
from tests.drill.failover.hooked import NAMES, POINTS, HookLine, Told

STEP_OF: Final = {name: StepName(step) for name, (_, step) in zip(NAMES, POINTS, strict=True)}
_Lines: TypeAlias = Sequence[HookLine]


def check_hooks(
    journals: Iterable[Journal], lines: _Lines, undisturbed: Collection[int] = ()
) -> list[Finding]:
    """Return everything that is not as the journals say.

    `undisturbed` has the times at which promotions were begun whose controllers nobody disturbed:
    of those each call is in the journal.
    """
    known = {(one.started_ms, one.epoch): one for one in journals}
    found = [
        Finding(Kind.HOOKS, f"{line.hook} {line.started_ms}-{line.epoch}", "of no promotion")
        for line in lines
        if (line.started_ms, line.epoch) not in known
    ]
    for key, journal in known.items():
        own = [line for line in lines if (line.started_ms, line.epoch) == key]
        found += _check_one(journal, own, is_exact=journal.started_ms in undisturbed)
    return found


def _check_one(journal: Journal, lines: _Lines, *, is_exact: bool) -> Iterator[Finding]:
    for says in (
        *_in_time(journal, lines),
        *_ended(journal, lines),
        *_as_written(journal, lines, is_exact=is_exact),
    ):
        of = f"promotion of {journal.site}, epoch {journal.epoch}, {journal.state.value}"
        yield Finding(Kind.HOOKS, of, says)


def _in_time(journal: Journal, lines: _Lines) -> Iterator[str]:
    """Hooks come in the order of the steps, on their side of the switch, and never behind undo."""
    first: dict[str, int] = {}
    for line in _begun(lines, is_undone=False):
        first.setdefault(line.hook, line.at_ms)
        is_before = STEP_OF[line.hook].value not in STEPS_BEHIND_SWITCH
        switched_ms = journal.switched_ms
        if switched_ms is not None and (line.at_ms <= switched_ms) is not is_before:
            yield f"{line.hook} was called at {line.at_ms}, and the switch was at {switched_ms}"
    wanted = [name for name in in_order(journal) if name in first]
    if wanted != sorted(first, key=lambda name: (first[name], wanted.index(name))):
        yield f"called in the order {', '.join(first)}"
    undone = [line.at_ms for line in _begun(lines, is_undone=True)]
    late = [line for line in _begun(lines, is_undone=False) if undone and line.at_ms > undone[0]]
    yield from (f"{line.hook} was called behind the taking back" for line in late)


def in_order(journal: Journal) -> list[str]:
    """Return the hooks as a promotion of this kind comes to them."""
    order = ORDER[journal.kind]
    there = [name for name in NAMES if STEP_OF[name] in order]
    return sorted(there, key=lambda name: order.index(STEP_OF[name]))


def _ended(journal: Journal, lines: _Lines) -> Iterator[str]:
    if journal.state is PromotionState.DONE:
        for name in in_order(journal):
            last = _last_told(lines, name, is_undone=False)
            if last is not Told.DONE:
                yield f"{name} ended with {last}"
    if journal.state is PromotionState.ROLLED_BACK:
        undone = {line.hook for line in _begun(lines, is_undone=True)}
        for name in dict.fromkeys(line.hook for line in _begun(lines, is_undone=False)):
            if name not in undone:
                yield f"{name} was called, and not to take back what it did"


def _as_written(journal: Journal, lines: _Lines, *, is_exact: bool) -> Iterator[str]:
    """Each account in the journal is of calls that there were."""
    for is_undone, key in ((False, CALLED), (True, TAKEN_BACK)):
        written = _written(journal, key)
        for name, one in written.items():
            count = sum(line.hook == name for line in _begun(lines, is_undone=is_undone))
            if count < one.attempts or (is_exact and count != one.attempts):
                yield f"{name}: {one.attempts} attempts in the journal, and {count} calls"
            is_done = _last_told(lines, name, is_undone=is_undone) is Told.DONE
            is_last = journal.state is (
                PromotionState.ROLLED_BACK if is_undone else PromotionState.DONE
            )  # what is repeated leaves an earlier account until it has ended
            if is_last and is_done is not (one.failure is None):
                yield f"{name}: the journal says {one}, and its last call was done: {is_done}"
        called = {line.hook for line in _begun(lines, is_undone=is_undone)}
        if is_exact and called != {*written}:
            yield f"{sorted(called ^ {*written})}: called, or in the journal, and not both"


def _written(journal: Journal, key: str) -> Mapping[str, Called]:
    """Return the last account of each hook: those behind the switch are called once more."""
    return {one.hook: one for step in ORDER[journal.kind] for one in called_in(journal, step, key)}


def _begun(lines: _Lines, *, is_undone: bool) -> list[HookLine]:
    return [one for one in lines if one.told is Told.BEGUN and one.is_undone is is_undone]


def _last_told(lines: _Lines, hook: str, *, is_undone: bool) -> Told | None:
    """Return how the last call went; a call that was killed has only begun."""
    told = [one.told for one in lines if one.hook == hook and one.is_undone is is_undone]
    return told[-1] if told else None
