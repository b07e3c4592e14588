"""What only one site has, as `failover divergence` lists it, while somebody reads the page.

Both logs are read for it, so it is done once in a while, for a limited time, and a limited number
of records is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import trio

from failover.journal.journal import JournalUnreadable
from failover.view.divergence import list_divergence
from failover.view.divergent_parts import Listed, Tally, UndecidedPart
from runtime.configuration.config import Configuration
from runtime.console.frame import PagePart, PageParts
from runtime.console.tables import Column, counted, mark, table, unknown, when
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.pages.markup import moment, shown
from runtime.pair.opening import PairContradicted, PairUnknown
from runtime.process.clock import wall_ms
from runtime.set_option import set_option
from wire.net import NetworkFault

LOOK_TIMEOUT_S: Final = 60.0
MOST_RECORDS: Final = 200
MOST_LINES: Final = 100
_RECORDS: Final = (
    Column("why"),
    Column("site"),
    Column("partition"),
    Column("offset", is_number=True),
    Column("time"),
    Column("key"),
)


@dataclass(slots=True, kw_only=True)
class DifferencesSeen:
    """One look at a set's logs; `why_not` says why it did not come to its end."""

    looked_ms: int
    tally: Tally | None = None
    why_not: str | None = None
    records: list[Listed] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """What is to be decided, and what was not looked at."""
    more: int = 0
    """Records and lines that are not kept."""

    def tell(self, found: Listed | UndecidedPart | str) -> None:
        """Take what was found, as far as there is room."""
        if isinstance(found, Listed):
            if len(self.records) < MOST_RECORDS:
                self.records.append(found)
                return
        elif len(self.lines) < MOST_LINES:
            self.lines.append(found if isinstance(found, str) else found.line())
            return
        self.more += 1


async def look_at_differences(configuration: Configuration) -> DifferencesSeen:
    """Compare the logs of one set of topics; reads, and writes nothing."""
    seen = DifferencesSeen(
        looked_ms=wall_ms(), why_not=f"not all was looked at within {LOOK_TIMEOUT_S:g} s"
    )
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            seen.tally = await list_divergence(configuration, seen.tell)
        except (
            ZooKeeperFault,
            WitnessGarbled,
            JournalUnreadable,
            PairUnknown,
            PairContradicted,
            NetworkFault,
        ) as fault:
            seen.why_not = str(fault)
        else:
            seen.why_not = None
    return seen


def differences_page(by_set: Mapping[str, DifferencesSeen] | None) -> PageParts:
    """Return the page."""
    if by_set is None:
        said = (
            "<p>Both logs are being compared, which takes up to a minute; what is found shows here"
            " by itself.</p>"
        )
        return PageParts(title="Divergence", parts=[PagePart("asked", said)])
    parts = [PagePart(f"s{number}", _of_set(*one)) for number, one in enumerate(by_set.items())]
    return PageParts(title="Divergence", parts=parts)


def _of_set(name: str, seen: DifferencesSeen) -> str:
    named = f"{shown(name)}: " if name else ""
    command = f"failover divergence{set_option(name or None)}"
    return (
        f"<h2>{named}Only on one site</h2><p>{_verdict(seen)}</p>{_lines(seen.lines)}"
        f"{_records(seen)}"
        f'<p class="soft">Looked at {when(seen.looked_ms)}. <code>{shown(command)}</code> lists'
        " all of it.</p>"
    )


def _verdict(seen: DifferencesSeen) -> str:
    tally = seen.tally
    if tally is None:
        return unknown(seen.why_not or "nobody has looked")
    is_left = tally.pending or tally.unseen or tally.not_looked
    if not is_left and not tally.set_aside and not tally.foreign:
        return f"{mark('good', 'none')} Neither site has a record that the other one lacks."
    tone, word = ("bad", "to be decided") if tally.pending or tally.unseen else ("calm", "known")
    if tally.not_looked and tone == "calm":
        tone, word = "unsure", "not all looked at"
    return (
        f"{mark(tone, word)} {counted(tally.pending, 'record is', 'records are')} on one site"
        f" alone, {tally.set_aside:,} were set aside, {tally.foreign:,} were written to a standby;"
        f" {tally.not_looked:,} places were not looked at."
    )


def _lines(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{shown(one, 1_000)}</li>' for one in lines)}</ul>" if lines else ""


def _records(seen: DifferencesSeen) -> str:
    if not seen.records:
        return ""
    rows = [
        (
            shown(one.what.value),
            shown(one.site),
            f"{shown(one.topic)}-{one.partition}",
            f"{one.offset:,}",
            _time(one.timestamp_ms),
            "(no key)" if one.key is None else shown(one.key.decode(errors="backslashreplace")),
        )
        for one in seen.records
    ]
    more = f"<p>{counted(seen.more, 'more')} are not listed here.</p>" if seen.more else ""
    return table("Records on one site", _RECORDS, rows) + more


def _time(timestamp_ms: int) -> str:
    """Return a record's time, or the number where no calendar has it."""
    try:
        return moment(timestamp_ms)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
