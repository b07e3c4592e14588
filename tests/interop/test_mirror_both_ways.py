"""Both sites written to at once, with Apache Kafka on one side or on both."""

from functools import partial
from pathlib import Path

import pytest

from tests.interop.sites import (
    RunningPair,
    Site,
    commit,
    committed,
    create_topic,
    read_committed,
    write,
    write_transactions,
)
from tests.mirror.daemon import run_mirror, wait_until

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")

BACK = """\
  - source: dc2
    target: dc1
    topics: {{include: ["{topic}"]}}
    discovery_interval_ms: 300
    active_active: true
coordination:"""
COUNT = 200


def test_what_is_written_on_either_site_is_once_on_both_and_groups_are_at_rest(
    sites: RunningPair, tmp_path: Path
) -> None:
    topic = "both-ways"
    configuration = sites.configure(tmp_path, topic, "active_active: true")
    text = configuration.read_text().replace("coordination:", BACK.format(topic=topic), 1)
    configuration.write_text(text.replace("failover: {", "failover: {initial_active: dc1, "))
    for number, site in enumerate((sites.dc1, sites.dc2)):
        create_topic(site, topic)
        write(site, topic, number * 10_000, COUNT)
    with run_mirror(configuration) as mirror:
        for number, site in enumerate((sites.dc1, sites.dc2)):
            write(site, topic, number * 10_000 + COUNT, COUNT)
        if sites.pair.has_apache_source:
            write_transactions(sites.dc1, topic, count=2, each=5)
        more = 10 if sites.pair.has_apache_source else 0

        def is_all_there() -> bool:
            logs = [read_committed(site, topic) for site in (sites.dc1, sites.dc2)]
            return [len(log) for log in logs] == [4 * COUNT + more] * 2

        try:
            wait_until("all records on both sites", is_all_there)
        except AssertionError as late:
            raise AssertionError(f"{late}; {mirror.log}") from late
        for site in (sites.dc1, sites.dc2):
            values = [int(value or b"-1") for _, _, value in read_committed(site, topic)]
            for first in (0, 10_000):
                own = [one for one in values if first <= one < first + 10_000]
                assert own[: 2 * COUNT] == list(range(first, first + 2 * COUNT))
        for here, there in ((sites.dc1, sites.dc2), (sites.dc2, sites.dc1)):
            end, group = end_behind_records(here, topic), f"at-rest-{here.bootstrap}"
            commit(here, group, topic, end)
            wait_until(
                f"position {end_behind_records(there, topic)} of {group}",
                partial(is_at_end, there, group, topic),
            )


def is_at_end(site: Site, group: str, topic: str) -> bool:
    return committed(site, group, topic) >= end_behind_records(site, topic)


def end_behind_records(site: Site, topic: str) -> int:
    """Return the offset behind the last committed record."""
    return read_committed(site, topic)[-1][0] + 1
