"""Verdicts of earlier nights, each in one small file, and what changed between two. Pure.

{"version": 1, "verdict": ..., "started_ms": ..., "counts": ..., "findings": [[KIND, ...], ...]}
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from runtime.untrusted_json import read_json
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.result.coverage import SIDES
from spark_audit.result.verdict import Answer, Verdict

FORMAT_VERSION: Final = 1
MOST_FINDINGS: Final = 10_000
"""So many findings of a night are kept; of others only their number."""
OF_SITES: Final = ("setting", "right")
"""Kinds of findings that are of no partition."""
_NO_PARTITION: Final = -1


class KeptFinding(NamedTuple):
    """A finding as it is known again in another night."""

    kind: str
    flow: str
    topic: str
    partition: int
    source_offset: int | None
    target_offset: int | None
    records: int
    reason: str

    @property
    def place(self) -> tuple[Any, ...]:
        """Return what makes it the same finding: all but the words and the number of records."""
        return self if self.kind in OF_SITES else self[:6]

    @property
    def words(self) -> str:
        """Return it as a line; a record is named topic:partition:offset, as in a report."""
        if self.kind in OF_SITES:
            return f"{self.kind} {self.reason}"
        source = "-" if self.source_offset is None else self.source_offset
        target = "" if self.target_offset is None else f", target offset {self.target_offset}"
        more = f", {self.records} records" if self.records > 1 else ""
        place = f"{self.topic}:{self.partition}:{source}"
        return f"{self.kind} {place}{target}{more}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVerdict:
    """One night's verdict, as far as it is kept."""

    night: str
    answer: Answer
    problem: str | None
    started_ms: int
    ended_ms: int
    compared: Mapping[str, int]
    remembered: Mapping[str, int]
    counts: Mapping[str, int]
    findings: tuple[KeptFinding, ...]
    left_out: int = 0
    """How many findings are not kept."""
    only: tuple[str, ...] = ()
    """The topics that alone were looked at; none where all were."""

    def looked_at(self, finding: KeptFinding) -> bool:
        """Return whether the topic of another night's finding was looked at."""
        return not self.only or finding.topic in self.only


class UnreadableNight(NamedTuple):
    """A night whose file cannot be read, and why."""

    night: str
    why: str


def night_of(started_ms: int) -> str:
    """Return the name of a night; names sort as time does."""
    return datetime.fromtimestamp(started_ms / 1_000, UTC).strftime("%Y%m%dT%H%M%SZ")


def kept(verdict: Verdict, findings: Sequence[Mapping[str, Any]]) -> KeptVerdict:
    """Return what is kept of a verdict and its findings: rows of `summary.ARROW_FINDINGS`."""
    rows = [row for flow in verdict.flows for row in flow.partitions]
    of_sites = list(_of_sites(verdict))
    of_records = [KeptFinding(*(row[name] for name in KeptFinding._fields)) for row in findings]
    counts = {kind: sum(one.kind == kind for one in of_sites) for kind in OF_SITES}
    return KeptVerdict(
        night=night_of(verdict.started_ms),
        answer=verdict.answer,
        problem=verdict.problem,
        started_ms=verdict.started_ms,
        ended_ms=verdict.ended_ms,
        compared=verdict.records_compared,
        remembered={side: sum(row.get(f"{side}_remembered", 0) for row in rows) for side in SIDES},
        counts={kind: count for kind, count in {**verdict.counts, **counts}.items() if count},
        findings=(*of_sites, *of_records)[:MOST_FINDINGS],
        left_out=max(0, len(of_sites) + len(of_records) - MOST_FINDINGS),
        only=verdict.only,
    )


def _of_sites(verdict: Verdict) -> Iterator[KeptFinding]:
    """Yield the findings that are about topics or clusters, and about no record."""
    setting, right = OF_SITES
    nowhere = (_NO_PARTITION, None, None, 1)
    for flow in verdict.flows:
        for one in flow.settings:
            if one.loses is not None:
                yield KeptFinding(setting, flow.flow, one.topic, *nowhere, one.words)
        for entry in flow.rights:
            if entry.explained is None:
                yield KeptFinding(right, flow.flow, entry.resource, *nowhere, entry.words)


def encode(one: KeptVerdict) -> str:
    """Return a night's file."""
    return json.dumps(
        {
            "version": FORMAT_VERSION,
            "verdict": one.answer.value,
            "problem": one.problem,
            "started_ms": one.started_ms,
            "ended_ms": one.ended_ms,
            "compared": dict(one.compared),
            "remembered": dict(one.remembered),
            "counts": dict(one.counts),
            "findings": [list(finding) for finding in one.findings],
            "left_out": one.left_out,
            "only_topics": list(one.only),
        }
    )


def decode(night: str, text: str) -> KeptVerdict:
    """Return what a night's file says; ValueError if it is none, or of another version."""
    try:
        document = read_json(text)
        if document["version"] != FORMAT_VERSION:
            raise ValueError(f"version {document['version']}, this program knows {FORMAT_VERSION}")
        return KeptVerdict(
            night=night,
            answer=Answer(document["verdict"]),
            problem=document["problem"],
            started_ms=int(document["started_ms"]),
            ended_ms=int(document["ended_ms"]),
            compared={side: int(document["compared"][side]) for side in SIDES},
            remembered={side: int(document["remembered"][side]) for side in SIDES},
            counts={str(kind): int(count) for kind, count in document["counts"].items()},
            findings=tuple(KeptFinding(*row) for row in document["findings"]),
            left_out=int(document["left_out"]),
            only=tuple(map(str, document.get("only_topics", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no verdict of a night: {error!r}") from error


def history_lines(nights: Iterable[KeptVerdict]) -> Iterator[str]:
    """Yield a line for each night, in order."""
    for one in nights:
        seconds = (one.ended_ms - one.started_ms) / 1_000
        named = [
            f"{one.counts[kind.column]:,} {kind.value}"
            for kind in (*FINDINGS, Kind.IN_FLIGHT)
            if one.counts.get(kind.column)
        ]
        named += [f"{one.counts[kind]:,} {kind}s" for kind in OF_SITES if one.counts.get(kind)]
        of_evidence = sum(one.remembered.values())
        only = f"; only of {', '.join(one.only)}" if one.only else ""
        from_evidence = f", {of_evidence:,} offsets from evidence" if of_evidence else ""
        yield (
            f"{one.night}  {one.answer.value:<8}  {one.compared['source']:,} / "
            f"{one.compared['target']:,} records in {seconds:,.1f} s{from_evidence}  "
            f"{', '.join(named) or one.problem or 'equal'}"
            f"{only}"
        )


def history_document(nights: Iterable[KeptVerdict]) -> list[Mapping[str, Any]]:
    """Return the JSON form of nights, without their findings."""
    return [
        {
            "night": one.night,
            "verdict": one.answer.value,
            "problem": one.problem,
            "started_ms": one.started_ms,
            "ended_ms": one.ended_ms,
            "compared": dict(one.compared),
            "remembered": dict(one.remembered),
            "counts": dict(one.counts),
            "left_out": one.left_out,
            "only_topics": list(one.only),
        }
        for one in nights
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The findings of a later night that an earlier one had not, and the other way round."""

    new: tuple[KeptFinding, ...]
    gone: tuple[KeptFinding, ...]
    same: int


def change_between(earlier: KeptVerdict, later: KeptVerdict) -> Change:
    """Return what changed from one night to another; what was not looked at is not gone."""
    before = {one.place for one in earlier.findings}
    after = {one.place for one in later.findings}
    return Change(
        new=tuple(one for one in later.findings if one.place not in before),
        gone=tuple(
            one for one in earlier.findings if one.place not in after and later.looked_at(one)
        ),
        same=len(before & after),
    )


def change_lines(earlier: KeptVerdict, later: KeptVerdict) -> Iterator[str]:
    """Yield what changed, new findings first; what is not known is said."""
    change = change_between(earlier, later)
    yield (
        f"{earlier.night} {earlier.answer.value}, {later.night} {later.answer.value}: "
        f"{len(change.new):,} findings are new, {len(change.gone):,} gone, {change.same:,} in both"
    )
    for one in (earlier, later):
        if one.problem is not None:
            yield f"could not tell in {one.night}: {one.problem}"
        if one.only:
            yield f"{one.night} looked at these topics only: {', '.join(one.only)}"
        if one.left_out:
            yield f"{one.left_out:,} findings of {one.night} are not kept, and not compared here"
    yield from (f"new   {one.words}" for one in change.new)
    yield from (f"gone  {one.words}" for one in change.gone)


def change_document(earlier: KeptVerdict, later: KeptVerdict) -> Mapping[str, Any]:
    """Return the JSON form of what changed; findings that are not kept are only counted."""
    change = change_between(earlier, later)
    return {
        "earlier": earlier.night,
        "later": later.night,
        "new": [one._asdict() for one in change.new],
        "gone": [one._asdict() for one in change.gone],
        "same": change.same,
        "not_kept": earlier.left_out + later.left_out,
    }
