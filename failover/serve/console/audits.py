"""The results of the audit, read from the folder where `spark-audit run` keeps them.

    <audit.output>/verdict.json, <audit.output>/history/<night>.json

Both are another program's: what is not as expected is a reason why nothing is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from runtime.console.frame import ROOT, PagePart, PageParts
from runtime.console.tables import Column, ListQuery, counted, mark, pager, search_form, table, when
from runtime.pages.markup import shown
from runtime.untrusted_json import read_json, text, whole_number
from wire.values import frozen

OLD_MS: Final = 36 * 3_600_000
"""A verdict of that age says nothing of today; alerts take the same."""
CLOCKS_DIFFER_MS: Final = 60_000
"""By so much the clock of whoever audits may be ahead of ours."""
NIGHTS: Final = 30
MOST_BYTES: Final = 16 * 1024 * 1024
TONES: Final[Mapping[str, str]] = {"clean": "good", "findings": "bad", "unknown": "unsure"}
SORTS: Final = ("kind",)
_NIGHTS: Final = (
    Column("ended"),
    Column("verdict"),
    Column("source records", is_number=True),
    Column("target records", is_number=True),
    Column("findings", is_number=True),
    Column("why not known"),
)
_FINDINGS: Final = (
    Column("kind"),
    Column("flow"),
    Column("where"),
    Column("source offset", is_number=True),
    Column("target offset", is_number=True),
    Column("records", is_number=True),
    Column("what"),
)


@frozen
class NightSeen:
    """One night's verdict, or why it cannot be read."""

    name: str
    answer: str = ""
    problem: str | None = None
    ended_ms: int = 0
    compared: tuple[int, int] = (0, 0)
    findings: Sequence[Sequence[Any]] = ()
    left_out: int = 0
    why_not: str | None = None


@frozen
class AuditSeen:
    """The last verdict, and the nights before it, the newest first."""

    folder: Path
    answer: str | None
    """clean, findings or unknown; None where it is not known, which `why_not` explains."""
    ended_ms: int = 0
    problem: str | None = None
    why_not: str | None = None
    nights: Sequence[NightSeen] = field(default=())
    now_ms: int = 0


def read_audit_folder(folder: Path, now_ms: int) -> AuditSeen:
    """Read the verdict and the newest nights; blocks on files, and raises nothing for theirs."""
    nights = [
        _night(path) for path in sorted((folder / "history").glob("*.json"), reverse=True)[:NIGHTS]
    ]
    try:
        found = read_json(_read(folder / "verdict.json"))
        answer = _verdict(found["verdict"])
        problem = found["problem"]
        return AuditSeen(
            folder=folder,
            answer=answer,
            ended_ms=whole_number(found["ended_ms"]),
            problem=None if problem is None else text(problem),
            nights=nights,
            now_ms=now_ms,
        )
    except FileNotFoundError:
        why = f"{folder} holds no verdict: run the audit, or serve where its results are"
    except (OSError, ValueError, KeyError, TypeError) as fault:
        why = f"{folder}/verdict.json cannot be read: {fault}"
    return AuditSeen(folder=folder, answer=None, why_not=why, nights=nights, now_ms=now_ms)


def _read(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES} bytes")
    return path.read_text()


def _verdict(found: object) -> str:
    answer = text(found)
    if answer not in TONES:
        raise ValueError(f"verdict {answer!r:.40} is not known here")
    return answer


def _night(path: Path) -> NightSeen:
    try:
        found = read_json(_read(path))
        compared = found["compared"]
        problem = found["problem"]
        return NightSeen(
            name=path.stem,
            answer=text(found["verdict"]),
            problem=None if problem is None else text(problem),
            ended_ms=whole_number(found["ended_ms"]),
            compared=(whole_number(compared["source"]), whole_number(compared["target"])),
            findings=[_finding(row) for row in found["findings"]],
            left_out=whole_number(found["left_out"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as fault:
        return NightSeen(name=path.stem, why_not=str(fault))


def _finding(row: Any) -> Sequence[Any]:  # noqa: ANN401 - another program's JSON
    kind, flow, topic, partition, source, target, records, reason = row
    for word in (kind, flow, topic, reason):
        text(word)
    for number in (partition, source, target, records):
        if number is not None and type(number) is not int:
            raise ValueError(f"{number!r:.40} is no number")
    return (kind, flow, topic, partition, source, target, records, reason)


def audit_line(seen: AuditSeen | None) -> str:
    """Return what the last audit says, in a line."""
    link = f'<a href="{ROOT}/audit">Last audit</a>'
    if seen is None:
        return f"{link}: being read."
    if seen.answer is None:
        return f'{link}: <span class="unknown">not known</span> {shown(seen.why_not or "", 600)}'
    doubt = ""
    if seen.now_ms - seen.ended_ms > OLD_MS:
        doubt = f" {mark('unsure', 'old')} It says nothing of what was written since."
    elif seen.ended_ms > seen.now_ms + CLOCKS_DIFFER_MS:
        doubt = f" {mark('unsure', 'dated in the future')} A clock is wrong: its age is not known."
    verdict = mark(TONES[seen.answer], seen.answer)
    return f"{link}: {verdict} {when(seen.ended_ms)}.{doubt}"


def audit_page(by_set: Mapping[str, AuditSeen] | None, query: Mapping[str, str]) -> PageParts:
    """Return the verdicts, and the findings of the newest night; raises BadTarget."""
    asked = ListQuery.of(query, SORTS)
    form = search_form(asked, "Kind, topic or reason of a finding")
    if by_set is None:
        said = "<p>The results are being read; they show here by themselves.</p>"
        return PageParts(title="Audit", parts=[PagePart("asked", said)], form=form)
    parts = [
        part
        for number, (name, seen) in enumerate(by_set.items())
        for part in _of_set(name, seen, asked, f"s{number}")
    ]
    return PageParts(title="Audit", parts=parts, form=form)


def _of_set(name: str, seen: AuditSeen, asked: ListQuery, at: str) -> Sequence[PagePart]:
    named = f"{shown(name)}: " if name else ""
    problem = "" if seen.problem is None else f"<p>Could not tell: {shown(seen.problem, 600)}</p>"
    head = (
        f"<h2>{named}Verdict</h2><p>{audit_line(seen)}</p>{problem}"
        f'<p class="soft">In {shown(str(seen.folder))}; <code>spark-audit report</code> has it'
        " with pictures.</p>"
    )
    parts = [PagePart(f"{at}-verdict", head)]
    if seen.nights:
        nights = table("Nights", _NIGHTS, [_night_row(one) for one in seen.nights])
        parts.append(PagePart(f"{at}-nights", f"<h2>{named}Nights</h2>{nights}"))
        parts.append(PagePart(f"{at}-findings", _findings(named, seen.nights[0], asked)))
    return parts


def _night_row(one: NightSeen) -> Sequence[str]:
    if one.why_not is not None:
        cannot = f'<span class="unknown">cannot be read</span> {shown(one.why_not)}'
        return (shown(one.name), cannot, "-", "-", "-", "")
    return (
        when(one.ended_ms),
        mark(TONES.get(one.answer, "unsure"), one.answer),
        *(f"{number:,}" for number in one.compared),
        f"{len(one.findings) + one.left_out:,}",
        shown(one.problem or "", 600),
    )


def _findings(named: str, night: NightSeen, asked: ListQuery) -> str:
    head = f"<h2>{named}Findings of the newest night</h2>"
    if night.why_not is not None:
        return f'{head}<p class="unknown">Not known: {shown(night.why_not)}</p>'
    if not night.findings:
        said = "It has none." if night.answer == "clean" else "It names none."
        return f"{head}<p>{said}</p>"
    found = [row for row in night.findings if asked.finds(row[0], row[2], row[7])]
    rows = [_finding_row(row) for row in asked.part(found)]
    more = f"<p>{counted(night.left_out, 'more')} are not kept.</p>" if night.left_out else ""
    return (
        head
        + pager(asked, len(found), len(night.findings), "findings")
        + table("Findings", _FINDINGS, rows)
        + more
    )


def _finding_row(row: Sequence[Any]) -> Sequence[str]:
    kind, flow, topic, partition, source, target, records, reason = row
    where = f"{topic}-{partition}" if partition >= 0 else topic
    numbers = ("-" if one is None else f"{one:,}" for one in (source, target, records))
    return (mark("bad", kind), shown(flow), shown(where), *numbers, shown(reason, 600))
