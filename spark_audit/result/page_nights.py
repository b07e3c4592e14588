"""The part of the page about earlier nights: a mark for each, and their numbers. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from runtime.pages.markup import heads, numbers_of, shown
from spark_audit.compare.outcomes import FINDINGS
from spark_audit.result.history import OF_SITES, KeptVerdict, UnreadableNight

_SIGNS: Final = {"clean": "", "findings": "!"}
"""Beside the colour, for those who do not see it."""
_NUMBERS: Final = ("source records", "target records", "from evidence", "seconds", "findings")


def nights(kept: Sequence[KeptVerdict | UnreadableNight]) -> Iterator[str]:
    """Yield the newest nights, the oldest of them first."""
    if not kept:
        return
    yield "<section><h2>Nights</h2><p>"
    yield "".join(_mark(one) for one in kept)
    yield "</p><details><summary>Numbers of each night, the newest first</summary>"
    yield '<div class="wide"><table>' + heads("night", "verdict", *_NUMBERS, numbers=_NUMBERS)
    yield from map(_row, reversed(kept))
    yield "</table></div></details></section>"


def _mark(one: KeptVerdict | UnreadableNight) -> str:
    answer = "unreadable" if isinstance(one, UnreadableNight) else one.answer.value
    words = f"{shown(one.night)}: {answer}"
    sign = _SIGNS.get(answer, "?")
    named = f'role="img" aria-label="{words}" title="{words}"'
    return f'<span class="night {answer}" {named}>{sign}</span>'


def _row(one: KeptVerdict | UnreadableNight) -> str:
    name = f"<tr><td>{shown(one.night)}</td>"
    if isinstance(one, UnreadableNight):
        return f'{name}<td colspan="{1 + len(_NUMBERS)}">cannot be read: {shown(one.why)}</td></tr>'
    verdict = one.answer.value if one.problem is None else f"{one.answer.value}: {one.problem}"
    numbers = (
        one.compared["source"],
        one.compared["target"],
        sum(one.remembered.values()),
        round((one.ended_ms - one.started_ms) / 1_000),
        sum(one.counts.get(kind, 0) for kind in (*(one.column for one in FINDINGS), *OF_SITES)),
    )
    return f'{name}<td class="why">{shown(verdict)}</td>{numbers_of(numbers)}</tr>'
