"""The durable map under any order of data, holes, compaction, crashes and late writers."""

from bisect import bisect_left

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from offset_translation.map_records import PieceStartKey, encode_key, piece_start, withdrawal
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import translate
from wire.topic_partition import TopicPartition

TOPIC = TopicPartition("t", 0)


class MirroredPartition(RuleBasedStateMachine):
    """A source whose offsets have holes, a target log, and the map topic between them.

    The target log is a plain list of the source offsets whose records it holds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.source: list[int] = []
        self.source_end = 0
        self.target: list[int] = []
        self.map_log: list[tuple[bytes, bytes | None]] = []
        self.live = OffsetMap()
        self.position = 0
        self._write_start(0, 0)

    def _write_start(self, source_start: int, target_start: int) -> None:
        record = piece_start("t", 0, source_start=source_start, place=Place(target_start))
        self.map_log.append(record)
        self.live.announce(source_start, Place(target_start))

    def _replayed(self) -> OffsetMap:
        state = MapState()
        for key, value in self.map_log:
            state.replay(key, value)
        assert state.rejected == []
        state.advance({TOPIC: len(self.target)})
        return state.maps[TOPIC]

    @rule(count=st.integers(1, 5))
    def produce(self, count: int) -> None:
        self.source += range(self.source_end, self.source_end + count)
        self.source_end += count

    @rule()
    def write_a_marker(self) -> None:
        self.source_end += 1

    @rule(offset=st.integers(0, 60))
    def compact(self, offset: int) -> None:
        """Compaction may take any record; those mirrored before stay on the target."""
        if offset in self.source and offset != self.source[-1]:
            self.source.remove(offset)

    def _announce_chunk(self, limit: int) -> list[int]:
        """Announce every hole of the next chunk in one write; return the chunk's records."""
        first = bisect_left(self.source, self.position)
        chunk = self.source[first : first + limit]
        expected, target = self.position, len(self.target)
        for offset in chunk:
            if offset != expected:
                self._write_start(offset, target)
            expected, target = offset + 1, target + 1
        if first + limit >= len(self.source) and expected != self.source_end:
            self._write_start(self.source_end, target)
            expected = self.source_end
        self.position = expected
        return chunk

    @rule(limit=st.integers(1, 8))
    def mirror(self, limit: int) -> None:
        self.target += self._announce_chunk(limit)
        self.live.advance(len(self.target))

    @rule(limit=st.integers(1, 8), arrived=st.integers(0, 8))
    def crash_behind_the_announcement(self, limit: int, arrived: int) -> None:
        self.target += self._announce_chunk(limit)[:arrived]
        self._recover()

    @precondition(lambda self: self.target)
    @rule(lost=st.integers(1, 4))
    def the_target_loses_its_tail(self, lost: int) -> None:
        del self.target[-lost:]
        self._recover()

    def _recover(self) -> None:
        """What the daemon does at start: take back what never arrived, go on at the log's end."""
        self.live = self._replayed()
        for start in self.live.beyond().pieces:
            key = PieceStartKey(topic="t", partition=0, place=start)
            self.map_log.append(withdrawal(key))
            self.live.withdraw(start)
        position = self.live.mirrored_source_end
        assert position is not None
        self.position = position

    @rule()
    def a_late_writer_repeats_itself(self) -> None:
        """A worker that was stopped for long sends an announcement again that stands already."""
        starts = [piece for piece in self.live.pieces() if piece.count]
        if starts:
            middle = starts[len(starts) // 2]
            self.map_log.append(
                piece_start(
                    "t", 0, source_start=middle.source_start, place=Place(middle.target_start)
                )
            )

    @rule()
    def compact_the_map_topic(self) -> None:
        last = {key: index for index, (key, _) in enumerate(self.map_log)}
        self.map_log = [
            record
            for index, record in enumerate(self.map_log)
            if last[record[0]] == index and record[1] is not None
        ]

    @invariant()
    def the_durable_map_says_the_same_as_the_one_in_memory(self) -> None:
        replayed = self._replayed()
        self.live.advance(len(self.target))
        assert list(replayed.pieces()) == list(self.live.pieces())

    @invariant()
    def every_mirrored_record_translates_exactly(self) -> None:
        assert self.target == sorted(set(self.target))
        for position, offset in enumerate(self.target):
            assert translate(self.live, offset) == position

    @invariant()
    def no_position_skips_an_unread_record(self) -> None:
        for source_offset in range(self.position + 1):
            answer = translate(self.live, source_offset)
            if isinstance(answer, int):
                assert answer == bisect_left(self.target, source_offset)

    @invariant()
    def nothing_that_still_exists_was_left_out(self) -> None:
        end = self.live.mirrored_source_end
        assert end is not None
        assert {offset for offset in self.source if offset < end} <= set(self.target)


TestMirroredPartition = MirroredPartition.TestCase


def test_a_withdrawn_start_is_gone_after_replay() -> None:
    state = MapState()
    state.replay(*piece_start("t", 0, source_start=0, place=Place(0)))
    state.replay(*piece_start("t", 0, source_start=9, place=Place(5)))
    state.replay(encode_key(PieceStartKey(topic="t", partition=0, place=Place(5))), None)
    state.advance({TOPIC: 7})
    assert state.maps[TOPIC].mirrored_source_end == 7
