"""Every key of the configuration that a page names is one that programs read."""

from pathlib import Path

import pytest

from tests.docs.keys import unknown_broker_settings, unknown_keys
from tests.docs.pages import ROOT, all_pages

PAGES = [page for page in all_pages() if page.name != "CHANGELOG.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_key_is_read(page: Path) -> None:
    assert [*unknown_keys(page), *unknown_broker_settings(page)] == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Set `failover.drain_timeout`.", "failover.drain_timeout"),
        ("Set `flows[].throttle.bytes_a_second`.", "flows[].throttle.bytes_a_second"),
        ("Set `throttle.bytes_a_second`.", "throttle.bytes_a_second"),
        ("```yaml\nfailover: {drain_ms: 1}\n```", "failover.drain_ms"),
        ("```yaml\nclusters:\n  dc1: {bootstraps: [a]}\n```", "clusters.<name>.bootstraps"),
        ("```yaml\nflows:\n  - source: a\n    names_: b\n```", "flows[].names_"),
        ("```properties\nlistener=PLAINTEXT://:9092\n```", "listener"),
        ("```properties\nlistener.name.x.ssl.keystores=a\n```", "listener.name.x.ssl.keystores"),
    ],
)
def test_a_key_that_nobody_reads_is_found(tmp_path: Path, text: str, key: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}\n")
    [found] = [*unknown_keys(page), *unknown_broker_settings(page)]
    assert found.endswith(f": {key}")


def test_keys_that_are_read_are_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "```yaml\nflows:\n  - source: a\n    throttle: {topics: {'x.*': 1}}\n```"
    page.write_text(f"`failover.drain_timeout_ms` `flows[].source` `throttle.topics`\n{block}\n")
    assert list(unknown_keys(page)) == []
