"""Whether a story of promotions keeps what was promised. Pure: it knows of no program.

What clients were told is held against both logs, the groups' positions, and what the commands said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

from tests.drill.failover.story import (
    FOLLOWER,
    Acked,
    Forwarded,
    Listing,
    Part,
    Said,
    SiteOffset,
    Story,
    Switch,
    listed_by,
    sealed_by,
    stated_by,
)
from wire.topic_partition import TopicPartition

HELD_UP_MS: Final = 15_000
"""So long a record may take on a busy machine: a promotion closes its site for longer, seldom."""
SLACK_S: Final = 0.5
"""Stated seconds are rounded, and an answer takes its time."""


class Kind(Enum):
    """What can be wrong."""

    LOST = "an acknowledged record is not on the active site, and is not listed"
    NOT_SAVED = "a record is listed as set aside, and a site has not kept it"
    NOT_MIRRORED = "a promotion called a record mirrored that the new site does not have"
    MISSTATED = "a promotion stated a smaller loss than there was, or an end that never was"
    ENDS_DIFFER = "a key of a compacted topic ends differently, and nobody has merged"
    TWO_SITES = "a site took a write while the other one was active"
    NOT_LISTED = "an idle site that was open took a write, and no command has listed it"
    DOUBLED = "a record is on the active site more than once"
    NOT_CLEAN = "a command ended with status 0, and has given up records"
    NOT_LEVEL = "a lag is called 0, and the target lacks records"
    NOT_ACTIVE = "a command ended well and named a site active that is not"
    SKIPPED = "a record before the group's position was never read"
    READ_AGAIN = "a record was read again without a reason"
    HOOKS = "hooks were not called as the journal says"
    FAILED = "a producer behind an endpoint has given up a record"
    NOT_ORDERED = "a site became active, and nobody had ordered it for these topics"
    HELD_UP = "a record waited while nothing was done but to move other topics"
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
        *_lost_forwarded(story),
        *_not_saved(story),
        *_not_mirrored(story),
        *_misstated(story),
        *_ends_differ(story),
        *_two_sites(story),
        *_not_ordered(story),
        *_held_up(story),
        *_doubled(story),
        *_not_clean(story),
        *_not_level(story),
        *_not_active(story),
        *_skipped(story),
        *_read_again(story),
    ]


def _listed(story: Story) -> list[Part]:
    return [part for said in story.said for part in listed_by(said)]


def _last_told(parts: Iterable[Part]) -> Mapping[SiteOffset, int]:
    """Return when each place was listed last."""
    told: dict[SiteOffset, int] = {}
    for part in parts:
        for place in part.places():
            told[place] = max(told.get(place, 0), part.told_ms)
    return told


def listed_last(said: Sequence[Said]) -> list[Part]:
    """Return what the last look at the divergence has listed."""
    looks = [one for one in said if one.command[0] == "divergence"]
    return [*listed_by(looks[-1])] if looks else []


def _has(told: Mapping[SiteOffset, int], ack: Acked) -> bool:
    """Tell whether it was listed after it was sent: offsets of a log may come again."""
    return ack.sent_ms <= told.get(ack.place, -1)


def _values(story: Story, site: str) -> Mapping[TopicPartition, frozenset[str]]:
    logs = story.logs.get(site, {})
    return {partition: frozenset(log.values()) for partition, log in logs.items()}


# --- records --------------------------------------------------------------------------------------


def _is_saved(story: Story, ack: Acked, site: str) -> bool:
    return story.saved.get(site, {}).get(ack.place) == ack.value


def _lost(story: Story) -> Iterator[Finding]:
    """A record may be missing where it waits for a decision, was set aside, or was deleted by one.

    It has to be listed by the last look, or be kept; listed by an earlier one is not enough.
    """
    kept, now, deleted = _values(story, story.active), listed_last(story.said), _deleted(story)
    still_open = _last_told(part for part in now if part.what is not Listing.FOREIGN)
    for ack in story.acked:
        if ack.value in kept.get(ack.partition, ()) or ack.partition.topic in story.deleted:
            continue
        is_given_up = _has(still_open, ack) or _has(deleted, ack)
        if not is_given_up and not _is_saved(story, ack, story.active):
            yield Finding(Kind.LOST, str(ack))


def _lost_forwarded(story: Story) -> Iterator[Finding]:
    """Hold against the same what was written behind an endpoint, at whichever site it was taken."""
    kept, now, deleted = _values(story, story.active), listed_last(story.said), _deleted(story)
    still_open = _last_told(part for part in now if part.what is not Listing.FOREIGN)
    saved = {*story.saved.get(story.active, {}).values()}
    for one in story.forwarded:
        if one.value in kept.get(one.partition, ()) or one.value in saved:
            continue
        if not any(
            _has_at(told, one, site) for told in (still_open, deleted) for site in story.logs
        ):
            yield Finding(Kind.LOST, str(one))


def _has_at(told: Mapping[SiteOffset, int], one: Forwarded, site: str) -> bool:
    return one.sent_ms <= told.get((site, one.partition, one.offset), -1)


def _deleted(story: Story) -> Mapping[SiteOffset, int]:
    """Return what was listed before somebody had a copy deleted that held it."""
    return _last_told(_ordered(story, "--from-earliest"))


def _ordered(story: Story, end: str) -> Iterator[Part]:
    """Yield what was listed before somebody decided about its topic like this."""
    orders = [
        (said.began_ms, said.command[2].partition(":")[0])
        for said in story.said
        if said.command[0] == "restart" and end in said.command
    ]
    for part in _listed(story):
        topic = part.partition.topic
        if any(part.told_ms <= began_ms and topic == of for began_ms, of in orders):
            yield part


def _not_saved(story: Story) -> Iterator[Finding]:
    acks = {(one.site, one.partition, one.offset): one for one in story.acked}
    for part in listed_last(story.said):
        ack = acks.get((part.site, part.partition, part.start))
        if part.what is not Listing.SET_ASIDE or ack is None:
            continue
        for site in story.logs:
            if not _is_saved(story, ack, site):
                yield Finding(Kind.NOT_SAVED, str(ack), f"not in {site}'s topic of set aside ones")


def _not_mirrored(story: Story) -> Iterator[Finding]:
    values = {site: _values(story, site) for site in story.logs}
    deleted = _deleted(story)
    for sealed in (one for said in story.said for one in sealed_by(said)):
        there = values[sealed.site].get(sealed.partition, frozenset())
        for ack in story.acked:
            is_below = ack.offset < sealed.end and ack.at_ms < sealed.began_ms
            if not is_below or (ack.site, ack.partition) != (sealed.source, sealed.partition):
                continue
            is_known = ack.value in there or _is_saved(story, ack, sealed.site)
            if not is_known and not _has(deleted, ack):
                says = f"mirrored up to {sealed.end}, and not on {sealed.site}"
                yield Finding(Kind.NOT_MIRRORED, str(ack), says)


def _misstated(story: Story) -> Iterator[Finding]:
    """Compare stated losses with what the lost site had acknowledged before the command.

    What it took while our programs did not reach it, nobody could know.
    """
    for said in story.said:
        ends = {sealed.partition: sealed for sealed in sealed_by(said)}
        for stated in stated_by(said):
            sealed = ends.get(stated.partition)
            if sealed is None or stated.partition.topic in story.deleted:
                continue
            log = story.logs[sealed.source].get(stated.partition, {})
            if stated.known_end > max(log, default=-1) + 1:
                says = f"last known end {stated.known_end}, and it ends at {max(log, default=-1)}"
                yield Finding(Kind.MISSTATED, f"{sealed.source} {stated.partition}", says)
            lost = [
                ack.at_ms
                for ack in story.acked
                if (ack.site, ack.partition) == (sealed.source, sealed.partition)
                and ack.offset >= sealed.end
                and ack.at_ms < said.began_ms
                and not _is_excused(story, ack)
            ]
            if lost and stated.seconds is not None:
                spread_s = (max(lost) - min(lost)) / 1000
                if spread_s > stated.seconds + SLACK_S:
                    says = f"up to {stated.seconds} s were stated, and {spread_s} s are lost"
                    yield Finding(Kind.MISSTATED, f"{sealed.source} {stated.partition}", says)


def _ends_differ(story: Story) -> Iterator[Finding]:
    """What is merged ends behind newer values, or is on one site alone until the failback."""
    merged = {
        (part.partition, story.logs[part.site].get(part.partition, {}).get(part.start))
        for part in _ordered(story, "--merge")
    }
    names = sorted(story.ends)
    for one, other in pairwise(names):
        for partition, key in sorted({*story.ends[one], *story.ends[other]}):
            values = [story.ends[name].get((partition, key), "") for name in (one, other)]
            is_merged = any((partition, value) in merged for value in values)
            if values[0] != values[1] and partition.topic not in story.deleted and not is_merged:
                says = f"{values[0]} on {one}, {values[1]} on {other}"
                yield Finding(Kind.ENDS_DIFFER, f"{key} in {partition}", says)


# --- which site takes writes ----------------------------------------------------------------------


def _two_sites(story: Story) -> Iterator[Finding]:
    """Between the opening of the new site and the switch, only the new one may take writes.

    An idle site may take some while it was out of reach or opened by hand, or when a promotion that
    was taken back had opened it; and each is listed.
    """
    listed = _last_told(_listed(story))
    for ack in story.acked:
        if _is_active(story, ack):
            continue
        switched = [one for one in story.switches if _is_opening(one, ack)]
        taken_back = [one for one in story.openings if _is_opening(one, ack)]
        for opening in (switched or taken_back)[:1]:
            yield from _beside(story, opening, ack)
        if switched:
            continue
        if not taken_back and not _is_excused(story, ack):
            yield Finding(Kind.TWO_SITES, str(ack), f"sent {ack.sent_ms}, taken {ack.at_ms}")
        elif not _has(listed, ack) and ack.partition.topic not in story.deleted:
            yield Finding(Kind.NOT_LISTED, str(ack), f"sent {ack.sent_ms}, taken {ack.at_ms}")


def _beside(story: Story, opening: Switch, ack: Acked) -> Iterator[Finding]:
    for late in story.acked:
        is_beside = late.site == opening.old and late.sent_ms > ack.at_ms
        if is_beside and late.at_ms <= opening.switched_ms and not _is_excused(story, late):
            yield Finding(Kind.TWO_SITES, str(late), f"behind {ack}")


def _is_excused(story: Story, ack: Acked) -> bool:
    return any(
        one.site == ack.site and one.from_ms <= ack.at_ms and ack.sent_ms <= one.until_ms
        for one in story.windows
    )


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
    is_within = switch.started_ms <= ack.at_ms and ack.sent_ms <= switch.switched_ms
    return ack.site == switch.new and is_within


def _not_ordered(story: Story) -> Iterator[Finding]:
    """Each switch is of a promotion that somebody has ordered since the switch before."""
    before_ms = 0
    for switch in sorted(story.switches, key=lambda one: one.switched_ms):
        if not any(_orders(said, switch, before_ms) for said in story.said):
            yield Finding(Kind.NOT_ORDERED, switch.new, f"at {switch.switched_ms}")
        before_ms = switch.switched_ms


def _orders(said: Said, switch: Switch, before_ms: int) -> bool:
    is_in_time = said.began_ms <= switch.switched_ms and said.ended_ms >= before_ms
    is_promotion = said.command[0] == "promote" and said.command[1] == switch.new
    is_by_hand = said.command[0] == "recover" and switch.new in said.command
    return is_in_time and (is_promotion or is_by_hand)


def _held_up(story: Story) -> Iterator[Finding]:
    if story.left_alone is None:
        return
    from_ms, until_ms = story.left_alone
    for ack in story.acked:
        if ack.who == FOLLOWER and from_ms <= ack.sent_ms < until_ms:
            took_ms = ack.at_ms - ack.sent_ms
            if took_ms > HELD_UP_MS:
                yield Finding(Kind.HELD_UP, str(ack), f"took {took_ms} ms")


def _doubled(story: Story) -> Iterator[Finding]:
    """What one site alone had may have been sent again to the other one, and have come back.

    Set aside, it stays in one log; merged, it is appended behind the other copy. A client behind an
    endpoint sends again what a lost site has not answered, and does not look whether it is there.
    """
    listed = _last_told(_listed(story))
    excused = {(ack.partition, ack.value) for ack in story.acked if _has(listed, ack)} | {
        (partition, value)
        for site, logs in story.logs.items()
        for partition, log in logs.items()
        for offset, value in log.items()
        if (site, partition, offset) in listed
    }
    excused |= {
        (one.partition, one.value)
        for one in story.forwarded
        if story.once_from_ms is None or one.sent_ms < story.once_from_ms
    }
    for partition, log in story.logs.get(story.active, {}).items():
        first: dict[str, int] = {}
        for offset, value in sorted(log.items()):
            if value in first and (partition, value) not in excused:
                says = f"offsets {first[value]} and {offset}"
                yield Finding(Kind.DOUBLED, f"{value} in {partition}", says)
            first.setdefault(value, offset)


# --- what the programs said -----------------------------------------------------------------------


def _not_clean(story: Story) -> Iterator[Finding]:
    """A planned promotion or a look at the divergence that lists anything open ends with 1."""
    for said in story.said:
        if said.status == 0 and _is_open(said):
            yield Finding(Kind.NOT_CLEAN, " ".join(said.command), said.text)


def _is_open(said: Said) -> bool:
    found = {part.what for part in listed_by(said)}
    if said.command[0] == "promote" and "--source-lost" not in said.command:
        return bool(found)
    return Listing.ONLY_THERE in found


def _not_level(story: Story) -> Iterator[Finding]:
    """What was set aside, or waits for a decision, is no lag; anything else is."""
    open_ones = {Listing.ONLY_THERE, Listing.SET_ASIDE}
    listed = _last_told(part for part in listed_last(story.said) if part.what in open_ones)
    aside = {place for one in story.saved.values() for place in one} | {*listed}
    for lag in story.lags:
        if lag.records:
            continue
        source = story.logs[lag.source].get(lag.partition, {})
        target = _values(story, lag.target).get(lag.partition, frozenset())
        for offset, value in source.items():
            is_aside = (lag.source, lag.partition, offset) in aside
            if value not in target and not is_aside:
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


# --- groups ---------------------------------------------------------------------------------------


def _skipped(story: Story) -> Iterator[Finding]:
    """A group passes over what was set aside on the active site before that became active."""
    seen = {(read.group, read.partition, read.value) for read in story.reads}
    saved = story.saved.get(story.active, {})
    for group, positions in story.positions.items():
        for partition, position in positions.items():
            for offset, value in story.logs[story.active].get(partition, {}).items():
                is_aside = (story.active, partition, offset) in saved
                if offset < position and not is_aside and (group, partition, value) not in seen:
                    of = f"{value} at {story.active} {partition} offset {offset}"
                    yield Finding(Kind.SKIPPED, of, f"{group} is at {position}")


def _read_again(story: Story) -> Iterator[Finding]:
    if story.once_from_ms is None:
        return
    seen: set[tuple[str, TopicPartition, str]] = set()
    for read in sorted(story.reads, key=lambda one: one.at_ms):
        what = (read.group, read.partition, read.value)
        if what in seen and read.at_ms >= story.once_from_ms:
            of = f"{read.value} at {read.site} {read.partition} offset {read.offset}"
            yield Finding(Kind.READ_AGAIN, of, f"by {read.group}")
        seen.add(what)
