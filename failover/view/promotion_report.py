"""What a promotion cost and what it did, made of its journal: as values, JSON and text. Pure.

    {
      "site": "dc2", "source": "dc1", "kind": "planned", "epoch": 3,
      "state": "done", "reason": null,
      "began_ms": 0, "switched_ms": 0, "rto_ms": 0,
      "closed_ms": 0,            how long the source refused writes before the switch
      "phases": [{"step": "fence", "state": "done", "after_ms": 0, "took_ms": 0}],
      "lost": {"records": 0, "at_least": 0, "seconds": 0.0, "partitions": {"orders-0": 3},
               "before_start": 0},    records of before the flow's start, which are no loss
      "slipped": [{"topic": "orders", "partition": 0, "start": 40, "stop": 42}],
      "groups": {"moved": 2, "committed": 7, "bounded": {"billing": {"partitions": 1, "reread": 5}},
                 "left": {}, "cut": {}, "unstable": [], "more": 0, "not_carried": {},
                 "still_members": {}},
      "fence": {"partitions": 12, "looked_ms": 0, "not_looked": null},
      "hooks": [], "given": [], "partitions": []
    }

`null` is what is not known, and never zero.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from failover.hooks.called import CALLED, TAKEN_BACK, called_in
from failover.journal.journal import Journal
from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName, StepState
from failover.planning.before_start import not_carried
from failover.view.report import summary
from runtime.pages.markup import moment
from wire.values import frozen


@frozen
class Phase:
    """One step: how long behind the start of the command it began, and how long it took."""

    step: StepName
    state: StepState
    after_ms: int
    took_ms: int | None
    """None for a step that has not ended."""


@frozen
class Lost:
    """What the promotion gave up of the source's records; None is not known."""

    records: int | None
    at_least: int | None
    seconds: float | None
    partitions: Mapping[str, int]
    """At least so many records of these."""
    before_start: int = 0
    """Records at most that stay on the source by the flow's start, which is no loss."""


NOT_EXACT: Final = ("bounded", "left", "cut", "unstable")
"""What the step `groups-move` says of groups that do not go on exactly where they were."""
NOTHING_LOST: Final = Lost(records=0, at_least=0, seconds=0.0, partitions={})
UNKNOWN_LOSS: Final = Lost(records=None, at_least=None, seconds=None, partitions={})


def phases(journal: Journal) -> tuple[Phase, ...]:
    """Return the steps that were begun, in the order of their kind."""
    records = [journal.record(step) for step in ORDER[journal.kind]]
    return tuple(
        Phase(
            step=one.name,
            state=one.state,
            after_ms=one.started_ms - journal.started_ms,
            took_ms=None if one.ended_ms is None else one.ended_ms - one.started_ms,
        )
        for one in records
        if one is not None
    )


def closed_ms(journal: Journal) -> int | None:
    """Return how long nobody could write before the switch; None where it was not switched.

    A source that was lost takes no writes from then on, and nobody knows when that was.
    """
    fence = journal.record(StepName.FENCE)
    if journal.kind is PromotionKind.SOURCE_LOST or journal.switched_ms is None or fence is None:
        return None
    return journal.switched_ms - fence.started_ms


def lost(journal: Journal) -> Lost:
    """Return what was given up, by what was known at the start and found behind the switch."""
    looked: Any = journal.facts(StepName.PREFLIGHT)
    stays = looked.get("before_start") or looked.get("loss", {}).get("before_start", 0)
    return replace(_lost(journal), before_start=stays)


def _lost(journal: Journal) -> Lost:
    if journal.state is PromotionState.ROLLED_BACK:
        opened = journal.facts(StepName.OPEN_TARGET)
        return UNKNOWN_LOSS if {"taken", "not_looked"} & opened.keys() else NOTHING_LOST
    confirmed = journal.facts(StepName.CONFIRM)
    if "appended" in confirmed:  # the source was asked behind the switch
        slipped = _by_partition(confirmed["appended"])
        records = sum(slipped.values())
        seconds = None if records else 0.0
        return Lost(records=records, at_least=records, seconds=seconds, partitions=slipped)
    told: Any = journal.facts(StepName.PREFLIGHT).get("loss")
    if journal.kind is PromotionKind.PLANNED or told is None:
        return UNKNOWN_LOSS
    return Lost(
        records=told.get("records"),
        at_least=told.get("records_at_least"),
        seconds=told.get("seconds"),
        partitions=dict(told.get("partitions", {})),
    )


def _by_partition(appended: Any) -> dict[str, int]:  # noqa: ANN401 - JSON
    found: dict[str, int] = {}
    for one in appended:
        name = f"{one['topic']}-{one['partition']}"
        found[name] = found.get(name, 0) + one["stop"] - one["start"]
    return found


def report_document(journal: Journal) -> Mapping[str, Any]:
    """Return the JSON form."""
    moved: Any = journal.moved_groups
    confirmed: Any = journal.facts(StepName.CONFIRM)
    fence: Any = journal.facts(StepName.FENCE)
    look = journal.record(StepName.VERIFY_FENCE)
    return {
        "site": journal.site,
        "source": journal.source,
        "kind": journal.kind.value,
        "epoch": journal.epoch,
        "state": journal.state.value,
        "reason": journal.reason,
        "began_ms": journal.started_ms,
        "switched_ms": journal.switched_ms,
        "rto_ms": journal.rto_ms,
        "closed_ms": closed_ms(journal),
        "phases": [asdict(one) for one in phases(journal)],
        "lost": asdict(lost(journal)),
        "slipped": list(confirmed.get("appended", ())),
        "groups": {
            "moved": moved.get("groups"),
            "committed": moved.get("committed"),
            "bounded": moved.get("bounded"),
            "left": moved.get("left", {}),
            "cut": moved.get("cut", {}),
            "unstable": moved.get("unstable", []),
            "more": sum(moved.get(f"more_{one}", 0) for one in NOT_EXACT),
            "not_carried": confirmed.get("not_carried", {}),
            "still_members": confirmed.get("still_members", {}),
        },
        "fence": {
            "partitions": fence.get("partitions"),
            "why_not": fence.get("why"),
            "looked_ms": None if look is None else look.ended_ms,
            "not_looked": confirmed.get("not_looked") or confirmed.get("source_silent"),
        },
        "hooks": [
            asdict(one)
            for step in ORDER[journal.kind]
            for key in (CALLED, TAKEN_BACK)
            for one in called_in(journal, step, key)
        ],
        "given": [given.document() for given in journal.given],
        "partitions": [asdict(one) for one in journal.partitions],
    }


def report_lines(journal: Journal, topic_set: str | None) -> Iterator[str]:
    """Yield the report as text: when and how long, what it cost, then what `promote` said."""
    way = f"of {journal.site} from {journal.source}"
    yield f"promotion {way}, {journal.kind}, epoch {journal.epoch}"
    yield f"  began    {moment(journal.started_ms)}"
    closed = closed_ms(journal)
    if closed is not None:
        yield f"  closed   {journal.source} refused writes {seconds_of(closed)} before the switch"
    yield f"  lost     {lost_line(lost(journal))}"
    for one in phases(journal):
        took = "not ended" if one.took_ms is None else seconds_of(one.took_ms)
        yield f"  {one.step:<13} {one.state:<7} {took:>10}, {seconds_of(one.after_ms)} in"
    yield from summary(journal, topic_set)


def lost_line(given_up: Lost) -> str:
    """Return what was given up, in words, and what stays on the source on purpose."""
    stays = not_carried(given_up.before_start)
    return f"{_lost_words(given_up)}; {stays}" if stays else _lost_words(given_up)


def _lost_words(given_up: Lost) -> str:
    if given_up.records == 0:
        return "no record"
    if given_up.at_least is None:
        return "not known"
    most = f"{given_up.at_least} records"
    if given_up.records is None:
        most = f"at least {most}; how many more is not known"
    if given_up.seconds is not None:
        most += f", of up to {given_up.seconds:.1f} s"
    return most


def seconds_of(duration_ms: int) -> str:
    """Return a duration for people."""
    return f"{duration_ms / 1_000:.2f} s"


def history_row(journal: Journal) -> Mapping[str, object]:
    """Return a promotion's line of the history, as a table and as JSON."""
    given_up = lost(journal)
    return {
        "epoch": journal.epoch,
        "began": moment(journal.started_ms),
        "to": journal.site,
        "kind": journal.kind.value,
        "state": journal.state.value,
        "rto_ms": journal.rto_ms,
        "closed_ms": closed_ms(journal),
        "lost": given_up.records,
        "by": journal.given[0].user if journal.given else None,
        "reason": journal.reason,
    }


HISTORY_TITLES: Final[Mapping[str, str]] = {
    "epoch": "EPOCH",
    "began": "BEGAN",
    "to": "TO",
    "kind": "KIND",
    "state": "STATE",
    "rto_ms": "RTO-MS",
    "closed_ms": "CLOSED-MS",
    "lost": "LOST",
    "by": "BY",
    "reason": "REASON",
}
