"""Records flow both ways between two logs: maps and positions against the logs themselves."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from offset_translation.both_ways import (
    cost_of_going_on,
    first_own_record,
    translate_both_ways,
)
from offset_translation.map_records import (
    PieceStartKey,
    RunStartKey,
    piece_start,
    run_start,
    withdrawal,
)
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import Tail, TailGarbled
from offset_translation.translation import translate, translate_back
from tests.properties import examples
from wire.topic_partition import TopicPartition

DC1, DC2 = 0, 1
PLACE = TopicPartition("t", 0)
Record = tuple[int, int]
"""(the site that wrote it, its number there)"""


@dataclass
class Log:
    """Entries are records, with the place of those that a mirror wrote; None is a marker."""

    entries: list[tuple[Record, int | None] | None] = field(default_factory=list)

    def records(self) -> Iterator[tuple[int, Record, int | None]]:
        for offset, entry in enumerate(self.entries):
            if entry is not None:
                yield offset, *entry


class Mirror:
    """One direction: the map topic, the map in memory, and the place in the source."""

    def __init__(self, source: Log, target: Log) -> None:
        self.source, self.target = source, target
        self.topic: list[tuple[bytes, bytes | None]] = []
        self.map = OffsetMap()
        self.next = 0
        self._announce(0, 0)

    def _say(self, key: bytes, value: bytes | None) -> None:
        self.topic.append((key, value))
        state = MapState()
        state.replay(key, value)
        assert state.rejected == []

    def fetch(self, limit: int) -> list[tuple[Record, int]]:
        """Announce the holes of the next entries; return their records with their places."""
        chunk: list[tuple[Record, int]] = []
        expected = self.map.mirrored_source_end
        place = self.map.place_end
        stop = min(self.next + limit, len(self.source.entries))
        for offset in range(self.next, stop):
            entry = self.source.entries[offset]
            if entry is None or entry[1] is not None:
                continue
            if offset != expected:
                self._announce(offset, place)
            chunk.append((entry[0], place))
            expected, place = offset + 1, Place(place + 1)
        if expected != stop:
            self._announce(stop, place)
        self.next = stop
        return chunk

    def _announce(self, source: int, place: int) -> None:
        self._say(*piece_start("t", 0, source_start=source, place=Place(place)))
        self.map.announce(source, Place(place))

    def append(self, record: Record, place: int, *, acknowledged: bool = True) -> None:
        offset = len(self.target.entries)
        self.target.entries.append((record, place))
        if not acknowledged:
            return
        if offset != self.map.runs.start_of(Place(place)):
            self._say(*run_start("t", 0, place=Place(place), target_start=offset))
            self.map.begin_run(Place(place), offset)
            self.map.advance(offset + 1)
        else:
            self.map.reach(Place(place + 1))

    def replayed(self) -> OffsetMap:
        state = MapState()
        for key, value in self.topic:
            state.replay(key, value)
        assert state.rejected == []
        found = state.maps[PLACE]
        found.advance(len(self.target.entries))
        return found

    def compact(self) -> None:
        last = {key: index for index, (key, _) in enumerate(self.topic)}
        self.topic = [
            one for index, one in enumerate(self.topic) if last[one[0]] == index and one[1]
        ]

    def recover(self) -> None:
        """What a daemon does that knows only the map topic and both logs."""
        self.map = self.replayed()
        found, _ = self.map.runs.last_before(self.map.target_end)
        tail = Tail(self.map, found)
        start = self.map.runs.end_of(found)
        for offset, _, place in self.target.records():
            if place is not None and offset >= start:
                tail.take(offset, place, 1)
        for place, target_start in tail.runs:
            self._say(*run_start("t", 0, place=place, target_start=target_start))
            self.map.begin_run(place, target_start)
        self.map.advance(len(self.target.entries))
        self.map.reach(tail.place)
        beyond = self.map.beyond()
        for place in beyond.pieces:
            self._say(*withdrawal(PieceStartKey(topic="t", partition=0, place=place)))
            self.map.withdraw(place)
        for place in beyond.runs:
            self._say(*withdrawal(RunStartKey(topic="t", partition=0, place=place)))
            self.map.withdraw_run(place)
        position = self.map.mirrored_source_end
        assert position is not None
        self.next = position

    @property
    def is_level(self) -> bool:
        return self.next == len(self.source.entries)


class BothWays(RuleBasedStateMachine):
    """Any interleaving of records of both sites, holes, mirrors that run, lag and are killed."""

    def __init__(self) -> None:
        super().__init__()
        self.logs = (Log(), Log())
        self.mirrors = (Mirror(*self.logs), Mirror(*reversed(self.logs)))
        self.written = [0, 0]

    @rule(site=st.sampled_from([DC1, DC2]), count=st.integers(1, 4))
    def produce(self, site: int, count: int) -> None:
        for _ in range(count):
            self.logs[site].entries.append(((site, self.written[site]), None))
            self.written[site] += 1

    @rule(site=st.sampled_from([DC1, DC2]))
    def write_a_marker(self, site: int) -> None:
        self.logs[site].entries.append(None)

    @rule(flow=st.sampled_from([DC1, DC2]), limit=st.integers(1, 12))
    def mirror(self, flow: int, limit: int) -> None:
        for record, place in self.mirrors[flow].fetch(limit):
            self.mirrors[flow].append(record, place)

    @rule(flow=st.sampled_from([DC1, DC2]), own=st.integers(1, 3))
    def mirror_while_others_write(self, flow: int, own: int) -> None:
        """The target's own records come in between what is on its way."""
        for record, place in self.mirrors[flow].fetch(12):
            self.mirrors[flow].append(record, place)
            self.produce(1 - flow, own)

    @rule(
        flow=st.sampled_from([DC1, DC2]),
        arrived=st.integers(0, 6),
        own=st.integers(0, 2),
        is_compacted=st.booleans(),
    )
    def kill(self, flow: int, arrived: int, own: int, *, is_compacted: bool) -> None:
        """Some batches arrive whose answers do not, others never, and others write as well."""
        mirror = self.mirrors[flow]
        for record, place in mirror.fetch(8)[:arrived]:
            mirror.append(record, place, acknowledged=False)
            if own:
                self.produce(1 - flow, own)
        if is_compacted:
            mirror.compact()
        mirror.recover()

    @invariant()
    def nothing_is_there_twice_and_each_sites_records_are_in_order(self) -> None:
        for log in self.logs:
            for site in (DC1, DC2):
                numbers = [number for _, (by, number), _ in log.records() if by == site]
                assert numbers == list(range(len(numbers)))

    @invariant()
    def the_map_is_exact_for_every_mirrored_record(self) -> None:
        for mirror in self.mirrors:
            sources = {record: offset for offset, record, _ in mirror.source.records()}
            for offset, record, place in mirror.target.records():
                if place is not None:
                    assert mirror.map.place_of_source(sources[record]) == place
                    assert mirror.map.runs.start_of(Place(place)) == offset
                    assert translate_back(mirror.map, offset) == sources[record]

    @invariant()
    def one_map_never_goes_past_a_mirrored_record_that_is_not_read(self) -> None:
        for mirror in self.mirrors:
            copies = {
                r: offset for offset, r, place in mirror.target.records() if place is not None
            }
            unread = len(mirror.target.entries)
            entries = [*mirror.source.entries, None]
            for offset in range(len(entries) - 1, -1, -1):
                entry = entries[offset]
                if entry is not None and entry[0] in copies:
                    unread = copies[entry[0]]
                answer = translate(mirror.map, offset)
                assert not isinstance(answer, int) or answer <= unread

    @invariant()
    def a_position_goes_on_at_the_first_record_that_is_not_read(self) -> None:
        for flow in (DC1, DC2):
            here, there = self.logs[flow], self.logs[1 - flow]
            forward, backward = self.mirrors[flow], self.mirrors[1 - flow]
            records = [(at, record) for at, record, _ in there.records()]
            read: set[Record] = set()
            before, end = 0, len(there.entries)
            for offset, entry in enumerate([*here.entries, None]):
                unread = next((at for at, record in records if record not in read), end)
                answer = translate_both_ways(forward.map, backward.map, offset)
                assert answer is not None
                assert before <= answer.target_offset <= unread
                before = answer.target_offset
                if backward.is_level:
                    again = [at for at, _ in records if before <= at < unread]
                    assert again == [], "all before the first that is not read is read"
                if entry is not None:
                    read.add(entry[0])

    @invariant()
    def what_going_on_anywhere_costs_is_known_record_by_record(self) -> None:
        for flow in (DC1, DC2):
            here, there = self.logs[flow], self.logs[1 - flow]
            forward, backward = self.mirrors[flow], self.mirrors[1 - flow]
            records = [(at, record) for at, record, _ in there.records()]
            cuts = {
                begin: (
                    {record for at, record in records if at < begin},
                    {record for at, record in records if at >= begin},
                )
                for begin in range(0, len(there.entries) + 1, 1 + len(there.entries) // 4)
            }
            for offset in range(0, len(here.entries) + 1, 1 + len(here.entries) // 4):
                read = {record for at, record, _ in here.records() if at < offset}
                for begin, (earlier, later) in cuts.items():
                    cost = cost_of_going_on(forward.map, backward.map, offset, begin)
                    assert cost.again == len(later & read)
                    assert cost.passed_over >= len(earlier - read)
                    if backward.is_level:
                        assert cost.passed_over == len(earlier - read)

    @invariant()
    def what_came_from_the_other_site_is_known_at_the_start_of_a_log(self) -> None:
        for mirror in self.mirrors:
            start = first_own_record(0, mirror.map)
            assert all(
                place is not None for offset, _, place in mirror.target.records() if offset < start
            )


TestBothWays = BothWays.TestCase
TestBothWays.settings = settings(max_examples=examples(20), deadline=None)


def test_a_mirror_whose_sequences_go_back_is_noticed() -> None:
    offset_map = OffsetMap.from_starts([(0, 0)], 0)
    tail = Tail(offset_map, Place(0))
    tail.take(0, 0, 5)
    tail.take(9, 5, 1)
    assert (tail.place, tail.runs) == (6, [(5, 9)])
    with pytest.raises(TailGarbled, match="sequence 4"):
        tail.take(12, 4, 1)


def test_sequences_that_begin_again_at_zero_are_followed() -> None:
    last = 2**31 - 2
    offset_map = OffsetMap.from_starts([(0, last)], last)
    tail = Tail(offset_map, Place(last))
    tail.take(last, last, 2)
    tail.take(last + 3, 0, 4)
    assert (tail.place, tail.runs) == (2**31 + 4, [(2**31, last + 3)])


def test_behind_a_failover_the_way_back_is_exact_although_the_first_flow_rests() -> None:
    """dc1's 0..13 are dc2's 0..9; dc2 went on with 10..24, which dc1 has at 14..28."""
    backward = OffsetMap.from_starts([(0, 0), (6, 2)], 10)
    backward.seal(14, 10)
    backward.advance(25)
    forward = OffsetMap.from_starts([(10, 0)], 0)
    forward.begin_run(Place(0), 14)
    forward.advance(29)
    for position, expected in ((0, 0), (2, 6), (9, 13), (10, 14), (17, 21), (25, 29)):
        found = translate_both_ways(forward, backward, position)
        assert found is not None
        assert (found.target_offset, found.is_exact) == (expected, True)
    for position, expected in ((0, 0), (6, 2), (14, 10), (15, 11), (29, 25)):
        found = translate_both_ways(backward, forward, position)
        assert found is not None
        assert (found.target_offset, found.is_exact) == (expected, True)
