"""The page of records: the form, what was looked at, each record, and the way on. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from failover.serve.peek.answer import PeekAnswer
from failover.serve.peek.counterparts import Counterpart
from failover.serve.peek.look import (
    MOST_LOOKED,
    MOST_READ_BYTES,
    MOST_SHOWN,
    Ended,
    Excerpt,
    PeekedRecord,
    PeekLook,
    TransactionState,
)
from failover.serve.peek.question import MOST_KEY, KeyForm, PeekQuestion, address_of, key_fields
from runtime.console.frame import PagePart, PageParts
from runtime.console.tables import counted, mark, unknown
from runtime.pages.markup import moment, shown
from wire.errors import ErrorCode
from wire.values import frozen

MOST_FIELD: Final = 1_200
"""So many characters of a field are put back into the form."""
_TONES: Final[Mapping[TransactionState, str]] = {
    TransactionState.COMMITTED: "good",
    TransactionState.ABORTED: "bad",
    TransactionState.OPEN: "unsure",
}
_REMEDIES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This site has no such topic, or no such partition.",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader now: the page Sites has its"
    " replicas.",
}


@frozen
class AskedPeek:
    """The form as it was sent, and whether anything is shown at all."""

    sites: Sequence[str]
    fields: Mapping[str, str]
    is_on: bool
    file: Path


def peek_page(asked: AskedPeek, found: PeekAnswer | str | None) -> PageParts:
    """Return the page; a text says why nothing was looked at, None that nothing was asked for."""
    if not asked.is_on:
        said = (
            "<p>No record is shown: they are your customers' data. <code>console.peek</code> in"
            f" <code>{shown(str(asked.file), 600)}</code> names the topics of which records are"
            " shown, to whoever may read these pages.</p>"
        )
        return PageParts(title="Records", parts=[PagePart("off", said)])
    return PageParts(title="Records", parts=_parts(found), form=_form(asked))


def _parts(found: PeekAnswer | str | None) -> Sequence[PagePart]:
    if found is None:
        said = (
            "<p>Without offset, time and key the newest records are shown. A key is searched for"
            f" from an offset or a time on, else among the last {MOST_LOOKED:,} offsets; a search"
            f" looks at {MOST_LOOKED:,} records or {MOST_READ_BYTES >> 20} MiB at a time. Each"
            " question is written to the log of this program, with who asks.</p>"
        )
        return [PagePart("asked", said)]
    if isinstance(found, str):
        return [PagePart("refused", f"<p>{mark('bad', 'not looked')} {shown(found, 600)}</p>")]
    parts = [PagePart("looked", _looked(found))]
    if found.look is not None:
        parts += [PagePart(f"r{one.offset}", _record(found, one)) for one in found.look.records]
        if len(found.look.records) > 3:
            parts.append(PagePart("on", f"<p>{_ways_on(found.question, found.look, found)}</p>"))
    return parts


# --- what was looked at ---------------------------------------------------------------------------


def _looked(found: PeekAnswer) -> str:
    question, look = found.question, found.look
    head = f"<h2>{shown(question.site)} {shown(str(question.place))}</h2>"
    note = "" if found.note is None else f"<p>{shown(found.note)}</p>"
    if found.fault is not None:
        name = mark("bad", found.code.name if found.code else "not read")
        what = f"<p>{name} {shown(found.fault, 600)}</p>"
        remedy = _remedy(found)
        return f"{head}{what}<p>{remedy}</p>" if remedy else head + what
    if look is None or found.bounds is None:
        return f"{head}<p>{unknown('the log could not be read')}</p>"
    bounds = found.bounds
    lies = f"The log has offsets {bounds.start:,} to {bounds.end - 1:,}"
    if bounds.start == bounds.end:
        lies = f"The log is empty; the next record gets offset {bounds.end:,}"
    opened = (
        f"; a transaction is open from offset {bounds.stable_end:,} on"
        if bounds.stable_end < bounds.end
        else ""
    )
    faults = "".join(f"<li>{shown(one, 600)}</li>" for one in look.faults)
    return (
        f"{head}<p>{_found(question, look)}</p>{note}"
        f"{f'<ul>{faults}</ul>' if faults else ''}"
        f'<p class="soft">{lies}{opened}. Took {found.took_ms:,} ms.</p>'
        f"<p>{_ways_on(question, look, found)}</p>"
    )


def _remedy(found: PeekAnswer) -> str:
    """Return what to do about a refusal, "" where nothing is known."""
    if found.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return "" if found.code is None else _REMEDIES.get(found.code, "")
    question, principal = found.question, found.principal
    who = "the login of this program" if principal is None else f"<code>{shown(principal)}</code>"
    command = shlex.join(
        [
            *("kafka-acls", "--add", "--allow-principal", principal or "User:NAME"),
            *("--operation", "Read", "--topic", question.place.topic),
        ]
    )
    return (
        f"The brokers of {shown(question.site)} do not let {who}, by which"
        f" <code>clusters.{shown(question.site)}</code> of the file logs in, read the topic"
        f" <code>{shown(question.place.topic)}</code>. It needs READ there: <code>"
        f"{shown(command, 600)}</code>; <code>mirror acls --program failover</code> prints the"
        " rights to all mirrored topics."
    )


def _found(question: PeekQuestion, look: PeekLook) -> str:
    what = "record" if question.key is None else "record with this key"
    many = "records" if question.key is None else "records with this key"
    found = f"<strong>{counted(len(look.records), what, many)}</strong>"
    if look.next_offset <= look.start:
        return f"{found}: there is nothing behind offset {look.start:,}."
    ended = look.ended or Ended.TIME
    return (
        f"{found} among {counted(look.looked, 'record')} at offsets {look.start:,} to"
        f" {look.next_offset - 1:,} ({look.read_bytes:,} bytes); ended by {ended.value}."
    )


def _ways_on(question: PeekQuestion, look: PeekLook, found: PeekAnswer) -> str:
    """Return links to what lies before and behind what was looked at."""
    bounds = found.bounds
    assert bounds is not None, "a look has bounds"
    key = key_fields(question.key)
    links = []
    if look.start > bounds.start:
        span = MOST_SHOWN if question.key is None else MOST_LOOKED
        before = max(bounds.start, look.start - span)
        address = address_of(question.place, question.site, offset=before, **key)
        links.append(f'<a rel="prev" href="{escape(address)}">← from {before:,}</a>')
    if look.next_offset < bounds.end:
        address = address_of(question.place, question.site, offset=look.next_offset, **key)
        links.append(f'<a rel="next" href="{escape(address)}">on from {look.next_offset:,} →</a>')
    return " &nbsp; ".join(links)


# --- a record -------------------------------------------------------------------------------------


def _record(found: PeekAnswer, record: PeekedRecord) -> str:
    tone = _TONES.get(record.state, "calm")
    state = "" if record.state is TransactionState.NONE else f" {mark(tone, record.state.value)}"
    rows = [
        ("time", _time(record)),
        *(() if record.state.is_marker else (("key", _bytes(record.key, "no key")),)),
        *(() if record.state.is_marker else (("value", _bytes(record.value, "null (tombstone)")),)),
        *((("headers", _headers(record)),) if record.headers else ()),
        ("leader epoch", "not told" if record.leader_epoch < 0 else f"{record.leader_epoch:,}"),
        ("producer", "no id" if record.producer_id < 0 else f"id {record.producer_id}"),
        *(("other site", one) for one in _counterparts(found, record)),
    ]
    if record.state is TransactionState.OPEN:
        rows.append(("transaction", "neither committed nor aborted as far as was looked"))
    listed = "".join(f"<dt>{name}</dt><dd>{cell}</dd>" for name, cell in rows)
    return f"<h2>Offset {record.offset:,}{state}</h2><dl>{listed}</dl>"


def _time(record: PeekedRecord) -> str:
    kind = "set by the broker" if record.is_append_time else "set by the producer"
    if record.timestamp_ms < 0:
        return "none"
    try:
        said = f"{moment(record.timestamp_ms)[:-4]}.{record.timestamp_ms % 1_000:03d} UTC"
    except (ValueError, OverflowError, OSError):
        said = f"{record.timestamp_ms} ms, which no calendar has"
    return f'{said} <span class="soft">{kind}</span>'


def _bytes(excerpt: Excerpt | None, null: str) -> str:
    """Return bytes as text if they are UTF-8, else as hex, with their number."""
    if excerpt is None:
        return f'<span class="soft">{null}</span>'
    data, size = excerpt
    if not size:
        return '<span class="soft">empty</span>'
    text = _text(data, is_cut=size > len(data))
    form = "hex" if text is None else "text"
    body = data.hex(" ") if text is None else text
    cut = f", the first {len(data):,} of them" if size > len(data) else ""
    lines = "\n".join(shown(line, len(line)) for line in body.split("\n"))
    return f'<pre>{lines}</pre><span class="soft">{counted(size, "byte")}{cut}, {form}</span>'


def _text(data: bytes, *, is_cut: bool) -> str | None:
    """Return what bytes say in UTF-8, None if they are none; a cut may lie within a character."""
    for left_out in range(4 if is_cut else 1):
        try:
            return data[: len(data) - left_out].decode()
        except UnicodeDecodeError as fault:
            if fault.end < len(data) - 3:
                return None
    return None


def _headers(record: PeekedRecord) -> str:
    rows = [
        f"<dt>{shown(name)}</dt><dd>{_bytes(data, 'null')}</dd>" for name, data in record.headers
    ]
    more = f"<p>{record.more_headers:,} more</p>" if record.more_headers else ""
    return f"<dl>{''.join(rows)}</dl>{more}"


def _counterparts(found: PeekAnswer, record: PeekedRecord) -> Sequence[str]:
    if found.counterparts is None:
        return [unknown("there was no time to read the map")]
    several = found.counterparts.get(record.offset, ())
    if not several:
        return ['<span class="soft">no flow mirrors this topic</span>']
    return [_counterpart(found.question, one) for one in several]


def _counterpart(question: PeekQuestion, one: Counterpart) -> str:
    if one.offset is None:
        return f"{shown(one.site)}: {unknown(one.why_not)}"
    place = question.place if one.topic is None else question.place._replace(topic=one.topic)
    address = address_of(place, one.site, offset=one.offset)
    named = "" if one.topic is None else f"{shown(one.topic)}, "
    return f'<a href="{escape(address)}">{shown(one.site)}, {named}offset {one.offset:,}</a>'


# --- the form -------------------------------------------------------------------------------------


def _form(asked: AskedPeek) -> str:
    site = asked.fields.get("site", "")
    sites = "".join(
        f"<option{' selected' if name == site else ''}>{escape(name)}</option>"
        for name in asked.sites
    )
    form = asked.fields.get("key_form", "")
    forms = "".join(
        f"<option{' selected' if one == form else ''}>{one.value}</option>" for one in KeyForm
    )
    inputs = (
        ("topic", "Topic", 'required accesskey="s" maxlength="249"'),
        ("partition", "Partition", 'inputmode="numeric" size="6"'),
        ("offset", "From offset", 'inputmode="numeric" size="12"'),
        ("time", "or time", 'placeholder="2026-03-01T12:30:00Z"'),
        ("key", "With key", f'maxlength="{2 * MOST_KEY}"'),
    )
    return (
        f'<form class="ask" role="search"><label>Site <select name="site">{sites}</select></label>'
        f"{''.join(_input(asked, *one) for one in inputs)}"
        f'<label>written as <select name="key_form">{forms}</select></label>'
        "<button>Read</button></form>"
    )


def _input(asked: AskedPeek, name: str, label: str, more: str) -> str:
    typed = asked.fields.get(name, "")[:MOST_FIELD]
    value = escape(
        "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in typed)
    )
    return f'<label>{label} <input name="{name}" value="{value}" autocomplete="off" {more}></label>'
