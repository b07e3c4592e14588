"""Whether a story of promotions keeps what was promised. Pure: it knows of no program.

What clients were told is held against both logs, the group's positions, and what the commands said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from tests.drill.failover.story import Acked, Part, Said, Story, Switch, parts_given_up
from wire.topic_partition import TopicPartition


class Kind(Enum):
    """What can be wrong."""

    LOST = "an acknowledged record is not on the active site, and no command has listed it"
    TWO_SITES = "a site took a write while the other one was active"
    DOUBLED = "a record is on the active site more than once"
    NOT_CLEAN = "a command ended with status 0, and has given up records"
    NOT_LEVEL = "a lag is called 0, and the target lacks records"
    NOT_ACTIVE = "a command ended well and named a site active that is not"
    SKIPPED = "a record before the group's position was never read"
    READ_AGAIN = "a record was read again without a reason"
    STUCK = "something did not come to its end"


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise that was not kept, and of which record, partition or command."""

    kind: Kind
    of: str
    says: str = ""

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.of}: {self.says or self.kind.value}"


def check(story: Story) -> list[Finding]:
    """Return everything that was not kept."""
    return [
        *_lost(story),
        *_two_sites(story),
        *_doubled(story),
        *_not_clean(story),
        *_not_level(story),
        *_not_active(story),
        *_skipped(story),
        *_read_again(story),
    ]


def _given_up(story: Story) -> list[Part]:
    return [part for said in story.said for part in parts_given_up(said)]


def _is_in(parts: list[Part], ack: Acked) -> bool:
    """Tell whether it was listed after it was sent: offsets of a log may come again."""
    return any(
        part.has(ack.site, ack.partition, ack.offset) and ack.sent_ms <= part.told_ms
        for part in parts
    )


def _values(story: Story, site: str) -> Mapping[TopicPartition, frozenset[str]]:
    logs = story.logs.get(site, {})
    return {partition: frozenset(log.values()) for partition, log in logs.items()}


def _lost(story: Story) -> Iterator[Finding]:
    parts, kept = _given_up(story), _values(story, story.active)
    for ack in story.acked:
        is_kept = ack.value in kept.get(ack.partition, ())
        if not is_kept and ack.partition.topic not in story.deleted and not _is_in(parts, ack):
            yield Finding(Kind.LOST, str(ack))


def _two_sites(story: Story) -> Iterator[Finding]:
    """Between the opening of the new site and the switch, only the new one may take writes."""
    parts = _given_up(story)
    for ack in story.acked:
        if _is_active(story, ack) or _is_in(parts, ack):
            continue
        opening = [one for one in story.switches if _is_opening(one, ack)]
        if not opening:
            yield Finding(Kind.TWO_SITES, str(ack), f"sent {ack.sent_ms}, taken {ack.at_ms}")
            continue
        for late in story.acked:
            is_beside = late.site == opening[0].old and late.sent_ms > ack.at_ms
            if is_beside and late.at_ms <= opening[0].switched_ms:
                yield Finding(Kind.TWO_SITES, str(late), f"behind {ack}")


def _is_active(story: Story, ack: Acked) -> bool:
    """Tell whether the site was the active one at some time between sending and answer."""
    if not story.switches:
        return ack.site == story.active
    switches = sorted(story.switches, key=lambda one: one.switched_ms)
    first, last = switches[0], switches[-1]
    if ack.sent_ms <= first.switched_ms and ack.site == first.old:
        return True
    if ack.at_ms >= last.switched_ms and ack.site == last.new:
        return True
    return any(
        ack.site == earlier.new
        and ack.at_ms >= earlier.switched_ms
        and ack.sent_ms <= later.switched_ms
        for earlier, later in pairwise(switches)
    )


def _is_opening(switch: Switch, ack: Acked) -> bool:
    return ack.site == switch.new and switch.started_ms <= ack.at_ms <= switch.switched_ms


def _doubled(story: Story) -> Iterator[Finding]:
    """What was set aside may have been sent again to the other site, and have come back."""
    aside = [part for part in _given_up(story) if part.stop is not None]
    for partition, log in story.logs.get(story.active, {}).items():
        first: dict[str, int] = {}
        for offset, value in sorted(log.items()):
            if any(part.has(story.active, partition, offset) for part in aside):
                continue
            if value in first:
                says = f"offsets {first[value]} and {offset}"
                yield Finding(Kind.DOUBLED, f"{value} in {partition}", says)
            first.setdefault(value, offset)


def _not_clean(story: Story) -> Iterator[Finding]:
    """A planned promotion or a look at the divergence that lists anything open ends with 1."""
    for said in story.said:
        if said.status == 0 and _is_open(said):
            yield Finding(Kind.NOT_CLEAN, " ".join(said.command), said.text)


def _is_open(said: Said) -> bool:
    if said.command[0] == "promote" and "--source-lost" not in said.command:
        return any(True for _ in parts_given_up(said))
    return any(line.startswith("only there ") for line in said.text.splitlines())


def _not_level(story: Story) -> Iterator[Finding]:
    parts = _given_up(story)
    for lag in story.lags:
        if lag.records:
            continue
        source = story.logs[lag.source].get(lag.partition, {})
        target = _values(story, lag.target).get(lag.partition, frozenset())
        for offset, value in source.items():
            is_open = any(part.has(lag.source, lag.partition, offset) for part in parts)
            if value not in target and not is_open:
                of = f"{value} at {lag.source} {lag.partition} offset {offset}"
                yield Finding(Kind.NOT_LEVEL, of, f"not on {lag.target}")


def _not_active(story: Story) -> Iterator[Finding]:
    """Each promotion that says that its site is active is one that has switched."""
    for said in story.said:
        if said.command[0] != "promote" or said.status != 0:
            continue
        site = said.command[1]
        before = [one for one in story.switches if one.switched_ms <= said.ended_ms]
        last = max(before, key=lambda one: one.switched_ms, default=None)
        if last is None or last.new != site:
            yield Finding(Kind.NOT_ACTIVE, site, " ".join(said.command))


def _skipped(story: Story) -> Iterator[Finding]:
    seen = {(read.partition, read.value) for read in story.reads}
    for partition, position in story.positions.items():
        for offset, value in story.logs[story.active].get(partition, {}).items():
            if offset < position and (partition, value) not in seen:
                of = f"{value} at {story.active} {partition} offset {offset}"
                yield Finding(Kind.SKIPPED, of, f"the group is at {position}")


def _read_again(story: Story) -> Iterator[Finding]:
    if story.once_from_ms is None:
        return
    seen: set[tuple[TopicPartition, str]] = set()
    for read in sorted(story.reads, key=lambda one: one.at_ms):
        is_again = (read.partition, read.value) in seen
        if is_again and read.at_ms >= story.once_from_ms:
            of = f"{read.value} at {read.site} {read.partition} offset {read.offset}"
            yield Finding(Kind.READ_AGAIN, of)
        seen.add((read.partition, read.value))
