"""The page of records: hostile bytes are text, what is not known is said, and there is a way on."""

import logging
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from failover.serve.peek.answer import PeekAnswer
from failover.serve.peek.bounds import PeekBounds
from failover.serve.peek.counterparts import Counterpart
from failover.serve.peek.look import Ended, Excerpt, PeekLook, TransactionState
from failover.serve.peek.peek_page import AskedPeek, peek_page
from failover.serve.peek.peeker import Peeker
from runtime.configuration.config import load
from runtime.console.frame import PageParts
from runtime.pages.browsing import PageRequest
from tests.dc_yaml import FREE_PORTS, dc_yaml
from tests.failover.serve.console.seen import HOSTILE, peeked, question
from wire.errors import ErrorCode

ASKED = AskedPeek(sites=("dc1", "dc2"), fields={}, is_on=True, file=Path("/etc/dc.yaml"))


def answer(**changes: object) -> PeekAnswer:
    look = PeekLook(start=40, end=100, stable_end=90)
    look.records.append(peeked(40))
    look.looked, look.read_bytes, look.next_offset, look.ended = 1, 70, 41, Ended.TIME
    told = PeekAnswer(
        question=question(),
        bounds=PeekBounds(start=10, end=100, stable_end=90),
        look=look,
        counterparts={40: [Counterpart(site="dc2", offset=1_039)]},
    )
    return replace(told, **changes)  # type: ignore[arg-type]


def html(page: PageParts) -> str:
    return page.form + "".join(part.html for part in page.parts)


def test_a_record_has_its_counterpart_and_ways_on() -> None:
    shown = html(peek_page(ASKED, answer()))
    assert (
        'site=dc2&amp;topic=orders&amp;partition=0&amp;offset=1039">dc2, offset 1,039</a>' in shown
    )
    assert "offset=41" in shown
    assert "offset=20" in shown
    assert "1 record</strong> among 1 record at offsets 40 to 40 (70 bytes)" in shown
    assert "a transaction is open from offset 90 on" in shown


def test_what_is_not_known_of_the_other_site_is_no_offset() -> None:
    unknown = {40: [Counterpart(site="dc2", why_not="the map has a hole there")]}
    shown = html(peek_page(ASKED, answer(counterparts=unknown)))
    assert 'dc2: <span class="unknown">not known</span>' in shown
    assert "the map has a hole there" in shown
    assert "no time to read the map" in html(peek_page(ASKED, answer(counterparts=None)))


def test_hostile_names_keys_and_values_are_text() -> None:
    hostile = HOSTILE.encode()
    record = peeked(
        40,
        key=Excerpt(hostile, len(hostile)),
        value=Excerpt(b"\xff\xfe" + hostile, 2 + len(hostile)),
        headers=((HOSTILE + "\udcff", Excerpt(hostile, 9_999)),),
        more_headers=3,
        state=TransactionState.OPEN,
        timestamp_ms=1 << 61,
    )
    told = answer()
    assert told.look is not None
    told.look.records[:] = [record]
    told.look.faults.append(HOSTILE)
    fields = dict.fromkeys(("site", "topic", "partition", "offset", "time", "key"), HOSTILE)
    for page in (
        peek_page(replace(ASKED, fields=fields), told),
        peek_page(ASKED, HOSTILE),
        peek_page(ASKED, answer(fault=HOSTILE)),
    ):
        shown = html(page)
        assert "<script" not in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        shown.encode()
    assert "ff fe 22" in html(peek_page(ASKED, told)), "no UTF-8, so it is hex"
    assert "the first" in html(peek_page(ASKED, told))


def test_text_that_is_cut_within_a_character_is_text() -> None:
    data = ("я" * 1_025).encode()[:2_047]
    told = answer()
    assert told.look is not None
    told.look.records[:] = [peeked(40, value=Excerpt(data, 2_050))]
    assert "2,050 bytes, the first 2,047 of them, text" in html(peek_page(ASKED, told))


def test_a_topic_that_may_not_be_read_is_named_with_what_to_do() -> None:
    refused = answer(
        look=None, fault="topic orders", code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, bounds=None
    )
    refused.principal = "User:it's us"
    shown = html(peek_page(ASKED, refused))
    assert "TOPIC_AUTHORIZATION_FAILED" in shown
    assert "do not let <code>User:it&#x27;s us</code>, by which" in shown
    command = """kafka-acls --add --allow-principal 'User:it'"'"'s us' --operation Read"""
    assert f"{escape(command)} --topic orders" in shown
    refused.principal = None
    assert "the login of this program" in html(peek_page(ASKED, refused))


async def test_it_is_off_unless_topics_are_named(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    page = await Peeker(load(file)).page(PageRequest("/console/peek", {"topic": "orders"}))
    assert "No record is shown" in html(page)
    assert not page.form


async def test_nobody_peeks_where_the_log_would_not_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "dc.yaml"
    guarded = {**FREE_PORTS, "token": "t"}
    file.write_text(dc_yaml(metrics=guarded, console={"peek": ["orders"]}))
    caplog.set_level(logging.WARNING, "failover.serve.peek.peeker")
    asked = PageRequest("/console/peek", {"topic": "orders", "site": "dc1"})
    page = await Peeker(load(file)).page(asked)
    assert "log.levels.failover.serve.peek.peeker" in html(page)
    caplog.set_level(logging.INFO, "failover.serve.peek.peeker")
    assert "not read" in html(await Peeker(load(file)).page(asked)), "nobody listens there"
    assert "somebody asks for dc1 orders-0" in caplog.text
