"""A line for each topic and each group, where `mirror status` has many partitions. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from mirror.report.status import GroupReport, PartitionReport, topic_words
from runtime.program.page import Part
from runtime.program.table import UNKNOWN, Table, duration

MOST_ROWS: Final = 100
"""Beyond so many rows of partitions there is a row for each topic; so many of these are shown."""
MOST_STANDING: Final = 20
"""So many partitions that need somebody have rows of their own beside the topics."""
TOPIC_HEAD: Final = ("TOPIC", "PARTITIONS", "LAG", "LAG TIME", "STATES")
GROUP_HEAD: Final = ("GROUP", "POSITIONS", "LAG", "TARGET LAG", "STATES")
LEFT: Final = frozenset({"TOPIC", "GROUP", "STATES"})


def topic_rows(partitions: Sequence[PartitionReport]) -> Iterator[Part]:
    """Yield a table with a row for each topic: what needs somebody first, then the longest lags."""
    topics: Mapping[str, list[PartitionReport]] = defaultdict(list)
    for one in partitions:
        topics[topic_words(one)].append(one)
    ordered = sorted(topics.items(), key=_urgency)
    rows = [_topic(topic, of_topic) for topic, of_topic in ordered[:MOST_ROWS]]
    marked = {place for place, (_, found) in enumerate(ordered) if any(p["advice"] for p in found)}
    yield Table(head=TOPIC_HEAD, rows=rows, left=LEFT, indent="  ", marked=marked)
    yield (
        f"  {_more(len(ordered), 'topic')}--all lists each of the {len(partitions)} partitions;"
        " --topic, --state and --lag-over choose"
    )


def group_rows(groups: Sequence[GroupReport]) -> Iterator[Part]:
    """Yield a table with a row for each group, the longest lag first."""
    named: Mapping[str, list[GroupReport]] = defaultdict(list)
    for one in groups:
        named[one["group"]].append(one)
    lags = {group: _sum(one["source_lag"] for one in found) for group, found in named.items()}
    ordered = sorted(named.items(), key=lambda item: (_unknown_first(lags[item[0]]), item[0]))
    rows = [
        (
            group,
            str(len(found)),
            _told(lags[group]),
            _told(_sum(one["target_lag"] for one in found)),
            _states(one["state"] for one in found),
        )
        for group, found in ordered[:MOST_ROWS]
    ]
    yield Table(head=GROUP_HEAD, rows=rows, left=LEFT, indent="  ")
    yield (
        f"  {_more(len(ordered), 'group')}--all lists each of the {len(groups)} positions;"
        " --group, --topic and --lag-over choose"
    )


def _more(count: int, what: str) -> str:
    return f"and {count - MOST_ROWS} {what}s more; " if count > MOST_ROWS else ""


def _urgency(item: tuple[str, Sequence[PartitionReport]]) -> tuple[bool, tuple[bool, int], str]:
    topic, found = item
    stands = any(one["advice"] for one in found)
    return not stands, _unknown_first(_sum(one["lag_records"] for one in found)), topic


def _unknown_first(lag: tuple[int, int]) -> tuple[bool, int]:
    known, unknown = lag
    return not unknown, -known


def _topic(topic: str, found: Sequence[PartitionReport]) -> Sequence[str]:
    times = [one["lag_seconds"] for one in found]
    longest = UNKNOWN if None in times else _longest(time for time in times if time is not None)
    return (
        topic,
        str(len(found)),
        _told(_sum(one["lag_records"] for one in found)),
        longest,
        _states(one["state"] for one in found),
    )


def _longest(times: Iterable[float]) -> str:
    return duration(round(max(times, default=0.0) * 1000))


def _sum(lags: Iterable[int | None]) -> tuple[int, int]:
    """Return the lag that is known, and of how many it is not."""
    listed = list(lags)
    return sum(lag for lag in listed if lag is not None), listed.count(None)


def _told(lag: tuple[int, int]) -> str:
    """Return a sum; with `?` where it is not all."""
    known, unknown = lag
    if not unknown:
        return str(known)
    return f"{known}+{UNKNOWN}" if known else UNKNOWN


def _states(states: Iterable[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in Counter(states).most_common())
