"""`failover history` and `report`: what the witness has of earlier promotions."""

import json
from collections.abc import Mapping, Sequence

from failover.commands.running import show
from failover.journal.journal import Journal
from failover.journal.journals import read_journals
from failover.promote import PromotionRefused
from failover.rehearsal.kept import read_rehearsals
from failover.rehearsal.outcome import Rehearsal
from failover.rehearsal.told import REHEARSAL_TITLES, rehearsal_row
from failover.view.promotion_page import promotion_page
from failover.view.promotion_report import (
    HISTORY_TITLES,
    history_row,
    report_document,
    report_lines,
)
from failover.view.told_facts import understood
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.program.command import Options
from runtime.program.page import show_page
from runtime.program.program import ExitStatus
from runtime.program.table import table_of


async def history(options: Options) -> int:
    """Print a line for each promotion that the witness has the journal of, and each rehearsal."""
    rows: list[Mapping[str, object]] = []
    titles = HISTORY_TITLES
    for name, of_set in options.configuration.by_set().items():
        found = [history_row(one) for one in await _journals(of_set)]
        if of_set.topic_set is None:
            rows += found
        else:
            titles = {"set": "SET", **HISTORY_TITLES}
            rows += [{"set": name, **row} for row in found]
    rehearsals = await _rehearsals(options.configuration)
    if options.json:
        kept = [one.document() for one in rehearsals or ()]
        told = rows if rehearsals is None else {"promotions": rows, "rehearsals": kept}
        for line in json.dumps(told, indent=2).splitlines():
            show(line)
    else:
        rehearsed = [rehearsal_row(one) for one in rehearsals or ()]
        show_page([table_of(rows, titles), table_of(rehearsed, REHEARSAL_TITLES)])
    return ExitStatus.DONE


async def _rehearsals(configuration: Configuration) -> Sequence[Rehearsal] | None:
    """Return the rehearsals that are kept, None where the file has none."""
    if configuration.failover.rehearsal is None:
        return None
    coordination = configuration.coordination
    async with open_witness(coordination) as zookeeper:
        return await read_rehearsals(zookeeper, coordination.paths)


async def report(options: Options) -> int:
    """Print the report of one promotion, the last one by default, or write it as a page."""
    journals = {one.epoch: one for one in await _journals(options.configuration)}
    if not journals:
        raise PromotionRefused(
            "the witness holds no journal of a promotion; `failover status` shows the epoch"
        )
    epoch = max(journals) if options.epoch is None else options.epoch
    if epoch not in journals:
        known = ", ".join(str(one) for one in sorted(journals))
        raise PromotionRefused(f"no journal of epoch {epoch} is kept (there are {known})")
    journal = journals[epoch]
    if options.html is not None:
        try:
            options.html.write_text(promotion_page(journal, options.configuration.topic_set))
        except OSError as fault:
            raise PromotionRefused(f"{options.html}: {fault.strerror}") from fault
        show(f"{journal.state}: {options.html}")
    elif options.json:
        for line in json.dumps(report_document(journal), indent=2).splitlines():
            show(line)
    else:
        for line in report_lines(journal, options.configuration.topic_set):
            show(line)
    return ExitStatus.DONE


async def _journals(configuration: Configuration) -> list[Journal]:
    coordination = configuration.coordination
    async with open_witness(coordination) as zookeeper:
        found = await read_journals(zookeeper, coordination.paths)
    return [understood(one) for one in found]
