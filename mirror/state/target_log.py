"""A partition's log on the target, and how far it is trusted. No I/O."""

from uuid import UUID

from mirror.state.batches import Forward
from offset_translation.runs import Place


class TargetLog:
    """One partition's log on the target, of which this flow is not always the only writer."""

    __slots__ = (
        "copied_id",
        "is_anchored",
        "is_new",
        "is_positioned",
        "left_at",
        "shift",
        "topic_id",
        "untold_runs",
    )

    def __init__(self) -> None:
        self.topic_id: UUID | None = None
        """The target topic as last seen, where brokers tell."""
        self.is_new = False
        """It is another topic than before: what is in it may be anybody's."""
        self.copied_id: UUID | None = None
        """The id of the source topic whose copy the target has, where that stops another one."""
        self.is_positioned = False
        """Whether the map has been told the log's end since the start, or a doubt of it."""
        self.is_anchored = False
        """Whether the source has been seen to hold the last mirrored record, and not left since."""
        self.left_at: int | None = None
        """The log's end as far as was known when this worker last stopped writing there."""
        self.shift = 0
        """Records that others have written to the target before the next one of ours."""
        self.untold_runs: list[tuple[Place, int]] = []
        """(place, target offset) of runs that have shown and are not in the map topic yet."""

    def expect_topic(self, topic_id: UUID | None) -> None:
        """Take note of the topic that holds the copy by the map; None: the map does not say."""
        self.topic_id = topic_id

    def meet_topic(self, topic_id: UUID) -> bool:
        """Take note of the target topic; return whether it is another one than was known."""
        known = self.topic_id
        if not topic_id.int:
            return False
        self.topic_id = topic_id
        is_another = known not in {None, topic_id}
        self.is_new |= is_another
        return is_another

    def lack_topic(self) -> None:
        """Take note that the target has no such topic: what was mirrored was to another."""
        self.is_new |= self.is_positioned

    def keep_copy_of(self, source_id: UUID | None) -> None:
        """Take note that the log is the copy of this source topic, which is there no more."""
        self.copied_id = source_id

    def find_position(self) -> None:
        """Take note that the map has been told the log's end."""
        self.is_positioned = True

    def vouch(self, *, is_vouched: bool) -> None:
        """Believe the map as far as the worker says that mirrors the partition."""
        self.is_positioned = is_vouched

    def doubt_position(self) -> None:
        """Have the log's end looked at again before the map is believed."""
        self.is_positioned = False

    def go_on(self, shift: int) -> None:
        """Write behind so many records of others, at the position that was found."""
        self.shift = shift
        self.is_positioned = True
        self.is_new = False

    def anchor(self) -> None:
        """Take note that the source holds the last record that was mirrored."""
        self.is_anchored = True

    def lose_anchor(self) -> None:
        """Have the last mirrored record looked for on the source again, before anything goes on."""
        self.is_anchored = False

    def leave(self, end: int | None) -> None:
        """Stop writing; ``end`` is the log's end as far as is known."""
        self.left_at = end

    def displace(self, forward: Forward, base_offset: int) -> None:
        """Take note that a batch lies further behind than was foretold: others wrote before it."""
        place = forward.place
        self.untold_runs.append((place, base_offset))
        self.shift = base_offset - place

    def tell_runs(self, count: int | None = None) -> None:
        """Forget the first runs, or all: the map topic has them now."""
        del self.untold_runs[:count]
