"""Lists of partitions and groups: searched, sorted, paged; what is not known comes first."""

import re
from time import process_time

import pytest

from runtime.console.flow_lines import lines_of
from runtime.console.flow_pages import flows_page, groups_page, partitions_page
from runtime.pages.browsing import BadTarget
from tests.failover.serve.console.seen import HOSTILE, many, summary

SEEN = many(5_000, 10_000)


def rows(html: str) -> list[str]:
    """Return the first cell of each row."""
    return re.findall(r"<tr><td[^>]*><strong>(.*?)</strong>", html)


def html(parts: object) -> str:
    return " ".join(part.html for part in parts.parts)  # type: ignore[attr-defined]


def test_the_worst_come_first_and_a_page_has_a_hundred() -> None:
    page = html(partitions_page(SEEN, {}))
    assert rows(page)[0] == "topic-250-0"
    assert len(rows(page)) == 100
    assert "5,000 partitions, page 1 of 50" in page
    assert len(rows(html(partitions_page(SEEN, {"page": "50"})))) == 100
    assert rows(html(partitions_page(SEEN, {"page": "51"}))) == []


def test_a_search_finds_whatever_the_case() -> None:
    page = html(groups_page(SEEN, {"q": "GROUP-999", "sort": "name"}))
    assert rows(page)[:2] == ["group-999", "group-9990"]
    assert "11 of 10,000 groups" in page
    assert "<script>" not in html(groups_page(SEEN, {"q": HOSTILE}))


def test_what_is_not_known_is_no_zero() -> None:
    page = html(groups_page(SEEN, {}))
    assert "of 1 group more it is not known" in page
    assert "in 4 of 10 partitions" in page
    assert "script&gt;alert(1)" in page
    assert "is being asked" in html(groups_page(None, {}))
    assert "is being asked" in html(flows_page(None, ()))
    assert "not known at 19 of 720 times" in html(flows_page([summary()], ()))


@pytest.mark.parametrize(
    "query",
    [
        {"page": "0"},
        {"page": "-1"},
        {"page": "1e3"},
        {"page": "9" * 400},
        {"page": "٣"},
        {"sort": "../../etc/passwd"},
        {"q": "x" * 201},
    ],
)
def test_what_no_list_can_show_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadTarget) as bad:
        partitions_page(SEEN, query)
    assert bad.value.status == 400


def test_pages_of_many_are_made_soon() -> None:
    began = process_time()
    groups_page(SEEN, {"q": "9"})
    partitions_page(SEEN, {"q": "9"})
    assert process_time() - began < 0.5


async def test_the_lines_are_those_of_every_worker() -> None:
    partition = {
        "topic": "orders", "partition": 0, "state": "streaming", "since_ms": 1, "reason": "",
        "advice": "", "lag_records": 4, "lag_seconds": 1.5, "lost_records": 0,
        "skipped_records": 0,
    }  # fmt: skip
    group = {
        "group": "billing", "topic": "orders", "partition": 0, "state": "settled",
        "source_lag": 7, "reread": 3,
    }  # fmt: skip
    other = {**partition, "partition": 1, "lag_records": None}
    elsewhere = {**group, "partition": 1, "reread": None, "state": "waiting for data"}
    seen = await lines_of(
        [
            ("a:1", {"flow": "f", "partitions": [partition], "groups": [group, elsewhere]}),
            ("b:2", {"flow": "f", "partitions": [other], "groups": []}),
        ],
        5,
    )
    assert [(one.name, one.worker) for one in seen.partitions] == [
        ("orders-0", "a:1"),
        ("orders-1", "b:2"),
    ]
    [billing] = seen.groups
    assert (billing.partitions, billing.lag, billing.reread, billing.unknown) == (2, 14, None, 1)
    assert billing.waiting == ("waiting for data",)
    with pytest.raises((ValueError, KeyError, TypeError)):
        await lines_of([("a:1", {"flow": "f", "partitions": [{"topic": 7}], "groups": []})], 5)
