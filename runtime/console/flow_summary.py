"""What a mirror says of each flow every few seconds: little, whatever the flow's size. Pure.

`/status/flows` of `mirror run` has a list of these, beside the process that tells:

    {"flow": "dc1->dc2", "role": "running", "reason": "", "faults": [], "taken_ms": 0,
     "states": {"mirroring": 12}, "groups": 3,
     "lag_records": 0, "lag_seconds": 0.0, "lost_records": 0,
     "history": [[0, 0, 0.0]]}        time, lag in records, lag in seconds; null is not known
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from runtime.untrusted_json import LARGEST, rate, text, whole_number
from wire.values import frozen


class LagSample(NamedTuple):
    """A flow's lag at one time; None is not known, and not level."""

    at_ms: int
    records: int | None
    seconds: float | None


@frozen
class FlowSummary:
    """One flow, as one worker sees its own share."""

    flow: str
    role: str
    reason: str
    faults: tuple[str, ...]
    taken_ms: int
    states: Mapping[str, int]
    """How many partitions are in each state."""
    groups: int
    lag_records: int | None
    lag_seconds: float | None
    """Of the partition that is furthest behind."""
    lost_records: int
    history: Sequence[LagSample] = ()

    @property
    def partitions(self) -> int:
        """Return how many there are."""
        return sum(self.states.values())

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def decode_summary(found: Any) -> FlowSummary:  # noqa: ANN401 - another process' JSON
    """Return what a document says; raises ValueError, KeyError and TypeError."""
    return FlowSummary(
        flow=text(found["flow"]),
        role=text(found["role"]),
        reason=text(found["reason"]),
        faults=tuple(map(text, found["faults"])),
        taken_ms=whole_number(found["taken_ms"]),
        states={text(state): whole_number(count) for state, count in found["states"].items()},
        groups=whole_number(found["groups"]),
        lag_records=_or_unknown(found["lag_records"]),
        lag_seconds=_seconds(found["lag_seconds"]),
        lost_records=whole_number(found["lost_records"]),
        history=[
            LagSample(whole_number(at_ms), _or_unknown(records), _seconds(seconds))
            for at_ms, records, seconds in found["history"]
        ],
    )


def merged_summary(shares: Sequence[FlowSummary]) -> FlowSummary:
    """Return a flow as all of its workers see it, of whom the first leads.

    What one of them does not know, nobody knows. The history is the leader's where they differ in
    their clocks: samples are put together by their order, the newest last.
    """
    first = shares[0]
    if len(shares) == 1:
        return first
    states: dict[str, int] = {}
    for share in shares:
        for state, count in share.states.items():
            states[state] = states.get(state, 0) + count
    length = min(len(one.history) for one in shares)
    columns = zip(*(one.history[len(one.history) - length :] for one in shares), strict=True)
    return FlowSummary(
        flow=first.flow,
        role=first.role,
        reason=first.reason,
        faults=tuple(fault for one in shares for fault in one.faults),
        taken_ms=min(one.taken_ms for one in shares),
        states=states,
        groups=first.groups,
        lag_records=_sum([one.lag_records for one in shares]),
        lag_seconds=_most([one.lag_seconds for one in shares]),
        lost_records=sum(one.lost_records for one in shares),
        history=[
            LagSample(
                column[0].at_ms,
                _sum([one.records for one in column]),
                _most([one.seconds for one in column]),
            )
            for column in columns
        ],
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [one for one in numbers if one is not None]
    return sum(known) if len(known) == len(numbers) else None


def _most(numbers: Sequence[float | None]) -> float | None:
    known = [one for one in numbers if one is not None]
    return max(known, default=0.0) if len(known) == len(numbers) else None


def _or_unknown(value: Any) -> int | None:  # noqa: ANN401
    return None if value is None else whole_number(value, LARGEST)


def _seconds(value: Any) -> float | None:  # noqa: ANN401
    return None if value is None else rate(value)
