"""What somebody who peeks asks for, taken from the fields of a form. Pure."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from runtime.console.frame import ROOT
from wire.record_batch.header import MOST_OFFSET
from wire.topic_partition import TopicPartition
from wire.values import frozen

PATH: Final = "peek"
MOST_KEY: Final = 512
"""So many bytes a key has at most that is searched for: it stands in the page's address."""
MOST_PARTITION: Final = 1_000_000
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LAST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class BadQuestion(ValueError):
    """A field of the form cannot be; the message names it and says what it may be."""


class KeyForm(StrEnum):
    """How a key is written in the form."""

    TEXT = "text"
    HEX = "hex"


@frozen
class PeekQuestion:
    """A partition of a site, and where to begin: at an offset, at a time, or near the end."""

    site: str
    place: TopicPartition
    offset: int | None = None
    time_ms: int | None = None
    key: bytes | None = None
    """Only records with this key are shown."""

    def __str__(self) -> str:
        """Return it for the log; a key may be somebody's name, so its size alone."""
        where = f"{self.site} {self.place}"
        if self.offset is not None:
            where += f" from offset {self.offset}"
        elif self.time_ms is not None:
            where += f" from time {self.time_ms} ms"
        return where if self.key is None else f"{where} by a key of {len(self.key)} bytes"


def question_of(query: Mapping[str, str], sites: Collection[str]) -> PeekQuestion | None:
    """Return what the fields say; None where no topic is asked for. Raises BadQuestion."""
    fields = {name: value.strip() for name, value in query.items()}
    topic = fields.get("topic", "")
    if not topic:
        return None
    if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
        raise BadQuestion("topic: a name has 1 to 249 letters, digits, '.', '_' or '-'")
    site = fields.get("site", "")
    if site not in sites:
        raise BadQuestion(f"site: it is one of {', '.join(sites)}")
    partition = _number("partition", fields.get("partition") or "0", MOST_PARTITION)
    offset, time = fields.get("offset"), fields.get("time")
    if offset and time:
        raise BadQuestion("offset and time: a search begins at one of them")
    return PeekQuestion(
        site=site,
        place=TopicPartition(topic, partition),
        offset=_number("offset", offset.replace(",", ""), MOST_OFFSET) if offset else None,
        time_ms=_time_ms(time) if time else None,
        key=_key(query.get("key", ""), fields.get("key_form") or KeyForm.TEXT),
    )


def address_of(place: TopicPartition, site: str, **more: object) -> str:
    """Return the address of the page that shows a partition; fields that are None are left out."""
    known = {name: value for name, value in more.items() if value is not None}
    fields = {"site": site, "topic": place.topic, "partition": place.partition, **known}
    return f"{ROOT}/{PATH}?{urlencode(fields)}"


def key_fields(key: bytes | None) -> Mapping[str, str]:
    """Return the fields of the form that ask for a key."""
    return {} if key is None else {"key": key.hex(), "key_form": KeyForm.HEX.value}


def _number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise BadQuestion(f"{name}: it is a number from 0 to {most}")
    return int(text)


def _time_ms(text: str) -> int:
    said = "time: it is written as 2026-03-01T12:30:00Z (RFC 3339), with Z or an offset"
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise BadQuestion(said)
        at_ms = round(moment.timestamp() * 1_000)
    except (ValueError, OverflowError) as fault:
        raise BadQuestion(said) from fault
    if not 0 <= at_ms <= _LAST_MS:
        raise BadQuestion("time: it lies between 1970 and 9999")
    return at_ms


def _key(text: str, form: str) -> bytes | None:
    if form not in set(KeyForm):
        raise BadQuestion(f"key: it is written as {' or '.join(KeyForm)}")
    if not text.strip():
        return None
    if form == KeyForm.TEXT:
        found = text.encode()
    else:
        try:
            found = bytes.fromhex(text.strip().removeprefix("0x"))
        except ValueError:
            raise BadQuestion("key: hex has two digits 0-9 or a-f for each byte") from None
    if len(found) > MOST_KEY:
        raise BadQuestion(f"key: it has {len(found)} bytes, and {MOST_KEY} are searched for")
    return found
