"""The verdict of an audit: one value, its JSON, its lines for people. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from runtime.untrusted_json import read_json
from spark_audit.compare.outcomes import CERTAIN, Kind
from spark_audit.result.coverage import SIDES, Share, total_coverage, why_not_compared
from spark_audit.snapshot.different_rights import DifferentRight
from spark_audit.snapshot.topic_settings import DifferentSetting

FORMAT_VERSION: Final = 3
"""The version of verdict.json; it grows when a key changes its meaning, or one is needed that older
files lack."""


class Answer(Enum):
    """The verdict; the exit status of the program is its place in this list."""

    CLEAN = "clean"
    FINDINGS = "findings"
    UNKNOWN = "unknown"

    @property
    def exit_status(self) -> int:
        """Return the exit status of the program."""
        return list(Answer).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowVerdict:
    """One flow's numbers; `partitions` are rows of `summary.partition_summary`."""

    flow: str
    taken_ms: int
    promotion: int | None
    only_on_target: tuple[str, ...]
    partitions: tuple[Mapping[str, Any], ...]
    untold: tuple[tuple[str, int, str], ...] = ()
    """Topic, partition and reason of what could not be compared."""
    unaudited: tuple[str, ...] = ()
    """Why positions or the map were not held against the logs."""
    settings: tuple[DifferentSetting, ...] = ()
    """Settings of topics that differ; those that lose records are findings."""
    rights: tuple[DifferentRight, ...] = ()
    """Rights that one site alone has; those that nothing explains are findings."""
    prefix: str = ""
    """What stands before the name of each topic on the target, but for those `renamed`."""
    renamed: tuple[tuple[str, str], ...] = ()
    """The topics with given names on the target, each with its name there."""
    rights_not_compared: str | None = None

    @property
    def left_out(self) -> Sequence[tuple[str, int, str]]:
        """Return topic, partition and reason of what was not compared, or not all of it."""
        incomplete = (
            (row["topic"], row["partition"], why)
            for row in self.partitions
            if (why := why_not_compared(row)) is not None
        )
        return [*self.untold, *incomplete]

    def coverage(self, side: str) -> Mapping[Share, int]:
        """Return what became of the offsets of a side, "source" or "target"."""
        return total_coverage(self.partitions, side)

    def total(self, column: str) -> int:
        """Return the sum of a number over all partitions."""
        return sum(int(row[column] or 0) for row in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One run of the audit. Times are wall-clock milliseconds."""

    answer: Answer
    started_ms: int
    ended_ms: int
    flows: tuple[FlowVerdict, ...] = ()
    problem: str | None = None
    """Why the audit could not tell: one line."""
    only: tuple[str, ...] = ()
    """The topics that alone were asked for; none where all were."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many there are of each kind, kinds that are no findings included."""
        return {kind.column: sum(flow.total(kind.column) for flow in self.flows) for kind in Kind}

    @property
    def records_compared(self) -> Mapping[str, int]:
        """Return how many records were compared, by side."""
        return {
            side: sum(flow.coverage(side)[Share.COMPARED] for flow in self.flows) for side in SIDES
        }

    @property
    def oldest_in_flight_ms(self) -> int | None:
        """Return the timestamp of the oldest record looked at that was in flight."""
        timestamps = [
            row["oldest_in_flight_ms"]
            for flow in self.flows
            for row in flow.partitions
            if row["oldest_in_flight_ms"] is not None
        ]
        return min(timestamps, default=None)


def answer_for(flows: Sequence[FlowVerdict]) -> Answer:
    """Return the verdict of these numbers: a finding is certain, whatever could not be told.

    A corrupt batch is found, and what is in it was not compared: by itself it is no certain
    difference. Clean is what was compared, with nothing left: neither partitions nor offsets.
    Nothing compared is never clean.
    """
    if any(one.loses for flow in flows for one in flow.settings):
        return Answer.FINDINGS
    if any(one.explained is None for flow in flows for one in flow.rights):
        return Answer.FINDINGS
    if any(flow.total(kind.column) for flow in flows for kind in CERTAIN):
        return Answer.FINDINGS
    return Answer.CLEAN if problem_of(flows) is None else Answer.UNKNOWN


def problem_of(flows: Sequence[FlowVerdict]) -> str | None:
    """Return one line for what could not be told; of many partitions it names the first."""
    reasons = [
        why if f"{topic}-{partition}" in why else f"{topic}-{partition}: {why}"
        for flow in flows
        for topic, partition, why in flow.left_out
    ]
    more = f" ({len(reasons)} partitions)" if len(reasons) > 1 else ""
    if reasons:
        return f"{reasons[0]}{more}"
    beside = [why for flow in flows for why in flow.unaudited]
    if beside:
        return beside[0]
    if any(flow.coverage(side)[Share.COMPARED] for flow in flows for side in SIDES):
        return None
    return "nothing was compared: no partition has a record on both sides"


def encode(verdict: Verdict) -> str:
    """Return verdict.json."""
    document = {
        "version": FORMAT_VERSION,
        "verdict": verdict.answer.value,
        "problem": verdict.problem,
        "only_topics": list(verdict.only),
        "started_ms": verdict.started_ms,
        "ended_ms": verdict.ended_ms,
        "duration_s": (verdict.ended_ms - verdict.started_ms) / 1_000,
        "records_compared": dict(verdict.records_compared),
        "counts": dict(verdict.counts),
        "flows": [
            {
                "flow": flow.flow,
                "snapshot_ms": flow.taken_ms,
                "promotion": flow.promotion,
                "prefix": flow.prefix,
                "renamed": dict(flow.renamed),
                "only_on_target": list(flow.only_on_target),
                "untold": [list(row) for row in flow.untold],
                "unaudited": list(flow.unaudited),
                "settings": [list(one) for one in flow.settings],
                "rights": [list(one) for one in flow.rights],
                "rights_not_compared": flow.rights_not_compared,
                "coverage": {
                    side: {share.value: offsets for share, offsets in flow.coverage(side).items()}
                    for side in SIDES
                },
                "partitions": [dict(row) for row in flow.partitions],
            }
            for flow in verdict.flows
        ],
    }
    return json.dumps(document, indent=1)


def decode(text: str) -> Verdict:
    """Return the verdict of a verdict.json; ValueError if it is none, or of another version."""
    try:
        document = read_json(text)
        if document["version"] != FORMAT_VERSION:
            raise ValueError(f"version {document['version']}, this program knows {FORMAT_VERSION}")
        return Verdict(
            answer=Answer(document["verdict"]),
            started_ms=document["started_ms"],
            ended_ms=document["ended_ms"],
            problem=document["problem"],
            only=tuple(document.get("only_topics", ())),
            flows=tuple(
                FlowVerdict(
                    flow=flow["flow"],
                    taken_ms=flow["snapshot_ms"],
                    promotion=flow["promotion"],
                    prefix=flow.get("prefix", ""),
                    renamed=tuple(flow.get("renamed", {}).items()),
                    only_on_target=tuple(flow["only_on_target"]),
                    untold=tuple((row[0], row[1], row[2]) for row in flow.get("untold", ())),
                    unaudited=tuple(flow["unaudited"]),
                    settings=tuple(DifferentSetting(*one) for one in flow["settings"]),
                    rights=tuple(DifferentRight(*one) for one in flow.get("rights", ())),
                    rights_not_compared=flow.get("rights_not_compared"),
                    partitions=tuple(flow["partitions"]),
                )
                for flow in document["flows"]
            ),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"no verdict of an audit: {error!r}") from error
