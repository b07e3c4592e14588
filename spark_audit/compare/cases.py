"""An outcome on its way to a judgement: what a promotion says of it, which side lacks it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_audit.compare.outcomes import Kind, Outcome
from spark_audit.scan.entries import Entry
from spark_audit.snapshot.side import Side

_MISSING = (Kind.LOST, Kind.IN_FLIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An outcome and its kind behind a promotion, if one ended the flow."""

    outcome: Outcome
    kind: Kind
    unmirrored_by: int | None
    """The promotion before which the record was not mirrored."""

    @property
    def lacking(self) -> Side | None:
        """Return the side that lacks the record; None where no hole could tell why."""
        if self.kind is Kind.LOST and self.unmirrored_by is None:
            return Side.TARGET
        return Side.SOURCE if self.kind in {Kind.PHANTOM, Kind.DUPLICATED} else None

    @property
    def holding(self) -> Side:
        """Return the side that has the record."""
        return Side.TARGET if self.lacking is Side.SOURCE else Side.SOURCE

    @property
    def holder(self) -> Entry:
        """Return the record as the side has it that does not lack it."""
        entry = self.outcome.target if self.lacking is Side.SOURCE else self.outcome.source
        assert entry is not None, "one side has the record"
        return entry

    def after(self, side: Side) -> int:
        """Return the offset of the neighbour before it on the source or the target."""
        bracket = self.outcome.bracket
        return bracket.source_after if side is Side.SOURCE else bracket.target_after

    def before(self, side: Side) -> int:
        """Return the offset of the neighbour behind it."""
        bracket = self.outcome.bracket
        return bracket.source_before if side is Side.SOURCE else bracket.target_before


def cases_of(
    outcomes: Iterable[Outcome], promotion: int | None, mirrored_source_end: int | None
) -> list[Case]:
    """Return the outcomes with what a promotion says of the unmirrored end.

    Behind a promotion nothing is in flight any more: a record beyond the mirrored end is lost,
    unless applications have written it again, which is for later to ask.
    """
    cases: list[Case] = []
    for outcome in outcomes:
        is_missing = outcome.kind in _MISSING
        is_unmirrored = (
            is_missing
            and outcome.source is not None
            and mirrored_source_end is not None
            and outcome.source.offset >= mirrored_source_end
        )
        cases.append(
            Case(
                outcome=outcome,
                kind=Kind.LOST if is_missing and promotion is not None else outcome.kind,
                unmirrored_by=promotion if is_unmirrored else None,
            )
        )
    return cases
