"""Batches under way to the target: routed, and not acknowledged yet.

What waits for the map or for a thread, and what fetches may still bring, is not counted here.

    enqueue ─► queue ─► send_next ─► sent ─┬─► acknowledge   the target holds them
                 │                         └─► release       refused, or nobody will ever know
                 └─► abandon                                 dropped before they were sent

`InFlight` holds those of one partition and `InFlightBudget` the bytes of all partitions of a flow.
Both change here and nowhere else, in one step: the total is the sum of the partitions. No clock
here: times are arguments, wall clock in milliseconds.
"""

from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from mirror.state.batches import Forward

STUCK_MS: Final = 1_000
"""Nothing acknowledged for this long of what is under way: the target is slow, or away."""
REMEMBERED_MS: Final = 600_000
"""So often brokers look for producers to forget (producer.id.expiration.check.interval.ms): by the
times of their records, so that those of a backlog are forgotten at the next look."""

SIZE_OF: Final[Callable[[Forward], int]] = itemgetter(Forward._fields.index("size"))


class Room(NamedTuple):
    """The bytes that may be under way, of all partitions and of one, without a setting."""

    in_flight_bytes: int
    partition_in_flight_bytes: int


NEAR: Final = Room(32 << 20, 4 << 20)
"""More of it would leave the processor's cache before it is sent, for nothing. Less is kinder to
the cache and dearer in wake-ups: at 100 KiB half of it with fetches of half the size costs 1.00 of
the processor time, a quarter 1.10, three quarters 1.03."""
FAR: Final = Room(64 << 20, 8 << 20)
"""Over 80 ms 570-690 MB/s at 100 KiB, where the room of a near one lets 350-380 through."""


SECONDS_UNDER_WAY: Final = 8
"""No more is under way than the target takes in so long: what is fetched now waits behind it, and
so does a promotion that drains."""
LEAST_ROOM_BYTES: Final = 1 << 20
WINDOW_MS: Final = 1_000
FASTEST: Final = 1e12
WINDOWS: Final = 5
"""The fastest of so many windows counts: a target that has paused is not a slow one."""


class Pace:
    """How fast the target takes what is under way, while there is always more for it to take."""

    __slots__ = ("_began_ms", "_bytes", "_is_full", "_rates")

    def __init__(self) -> None:
        self._began_ms: int | None = None
        self._bytes = 0
        self._is_full = True
        self._rates: deque[float] = deque(maxlen=WINDOWS)

    def note(self, size: int, now_ms: int, *, is_full: bool) -> float | None:
        """Note what was acknowledged; return the bytes per second at the end of a window.

        `is_full` says that a good part of what may be under way still is. A target that has taken
        nearly all once is not what limits the flow: its pace is as if it took twice as much.
        """
        if self._began_ms is None:
            self._began_ms = now_ms
            return None
        self._bytes += size
        self._is_full &= is_full
        elapsed_ms = now_ms - self._began_ms
        if 0 <= elapsed_ms < WINDOW_MS:
            return None
        was_full, bytes_taken = self._is_full, self._bytes
        self._began_ms, self._bytes, self._is_full = now_ms, 0, True
        if elapsed_ms <= 0:
            return None
        if was_full:
            self._rates.append(bytes_taken * 1_000 / elapsed_ms)
        elif self._rates:
            self._rates.append(min(2 * max(self._rates), FASTEST))
        return max(self._rates, default=None)


class InFlightBudget:
    """The bytes of a flow that are under way, and the limits for them."""

    __slots__ = (
        "_all_bytes",
        "_each_bytes",
        "_pace",
        "is_far",
        "most_bytes",
        "most_bytes_each",
        "total",
    )

    def __init__(self, all_bytes: int | None = None, each_bytes: int | None = None) -> None:
        """Limit all partitions together and each; None goes by the distance of the clusters."""
        self.total = 0
        """Bytes under way, of all partitions."""
        self.is_far = False
        """Whether answers of one of the clusters take long: more must be under way meanwhile."""
        self.most_bytes = self.most_bytes_each = 0
        self._pace = Pace()
        self.limit_to(all_bytes, each_bytes)

    def limit_to(self, all_bytes: int | None, each_bytes: int | None) -> None:
        """Take other limits; batches that are under way stay so."""
        self._all_bytes, self._each_bytes = all_bytes, each_bytes
        room = FAR if self.is_far else NEAR
        self.most_bytes = all_bytes or room.in_flight_bytes
        self.most_bytes_each = each_bytes or room.partition_in_flight_bytes

    def make_room_for_distance(self) -> None:
        """Let more be under way from now on: one of the clusters is far away."""
        self.is_far = True
        self.limit_to(self._all_bytes, self._each_bytes)

    def acknowledge(self, size: int, now_ms: int) -> None:
        """Let go of bytes that the target holds, and have the limits follow its pace."""
        self.total -= size
        bytes_per_s = self._pace.note(size, now_ms, is_full=self.total >= self.most_bytes // 4)
        if bytes_per_s is not None:
            self._adapt(max(LEAST_ROOM_BYTES, int(bytes_per_s * SECONDS_UNDER_WAY)))

    def _adapt(self, room_bytes: int) -> None:
        self.limit_to(self._all_bytes, self._each_bytes)
        self.most_bytes = min(self.most_bytes, room_bytes)
        self.most_bytes_each = min(self.most_bytes_each, room_bytes)

    @property
    def has_room(self) -> bool:
        """Whether to fetch on: half of what may be under way is free.

        With less, each acknowledgement in a backlog would be followed by a fetch of its size: one
        partition's records, in a request of their own.
        """
        return self.total <= self.most_bytes // 2


class InFlight:
    """The batches of one partition that are under way, and how far the target knows us by them."""

    __slots__ = (
        "_budget",
        "bytes",
        "is_taken",
        "mirrored_bytes",
        "progress_ms",
        "queue",
        "queued_at",
        "sent_count",
    )

    def __init__(self, budget: InFlightBudget) -> None:
        self._budget = budget
        self.queue: deque[Forward] = deque()
        """Batches to send."""
        self.queued_at: int | None = None
        """The target broker in whose line of ready partitions this one is."""
        self.sent_count = 0
        """Batches sent and not yet answered, of every attempt."""
        self.bytes = 0
        """Of the batches queued or sent."""
        self.mirrored_bytes = 0
        """Of batches acknowledged since this worker took the partition."""
        self.progress_ms = 0
        """When the target has acknowledged a batch last."""
        self.is_taken = False
        """Whether the target has taken a batch of this attempt, over the connection that there is
        now; until then it may not know us."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way."""
        return self.sent_count == 0 and not self.queue

    def begin(self, now_ms: int) -> None:
        """Let the partition flow: from now on a target that says nothing is slow."""
        self.progress_ms = now_ms

    def enqueue(self, forwards: Sequence[Forward]) -> None:
        """Take batches to send."""
        self.queue.extend(forwards)
        size = sum(map(SIZE_OF, forwards))
        self.bytes += size
        self._budget.total += size

    def line_up(self, node: int) -> bool:
        """Enter the line of a target broker; return whether that is news."""
        is_new = self.queued_at != node
        self.queued_at = node
        return is_new

    def leave_line(self) -> None:
        """Be in no line any more."""
        self.queued_at = None

    def send_next(self, now_ms: int) -> Forward | None:
        """Take the next batch off the queue to send it; None where none may go now.

        Behind a first batch nothing goes before the target has taken it (see forward.target).
        Where nothing more may go, the partition leaves its line.
        """
        queue = self.queue
        if not self.sent_count:
            self.is_taken &= now_ms - self.progress_ms < REMEMBERED_MS
        elif not self.is_taken:
            self.queued_at = None  # the acknowledgement of the first batch brings it back
            return None
        if not queue:
            self.queued_at = None
            return None
        forward = queue.popleft()
        self.sent_count += 1
        if not queue:
            self.queued_at = None
        return forward

    def acknowledge(self, forwards: Sequence[Forward], now_ms: int) -> int:
        """Let go of batches that the target holds; return their bytes."""
        size = sum(map(SIZE_OF, forwards))
        self.sent_count -= len(forwards)
        self.bytes -= size
        self._budget.acknowledge(size, now_ms)
        self.mirrored_bytes += size
        self.is_taken = True
        self.progress_ms = now_ms
        return size

    def release(self, forward: Forward) -> None:
        """Let go of a batch that was sent, and is not known to be on the target."""
        self.sent_count -= 1
        self.bytes -= forward.size
        self._budget.total -= forward.size

    def abandon(self) -> None:
        """Drop batches that have not been sent; those that were sent are still answered."""
        size = sum(map(SIZE_OF, self.queue))
        self.queue.clear()
        self.bytes -= size
        self._budget.total -= size
        self.is_taken = False

    def forget_taken(self) -> None:
        """Take the target for one that does not know us, until it takes a batch again."""
        self.is_taken = False

    def copied_if_stuck(self, records: memoryview, now_ms: int) -> memoryview:
        """Return records as they are to wait; a copy where those before have waited for long.

        A view holds all of its answer in memory, the records of other partitions too.
        """
        is_stuck = self.bytes > 0 and now_ms - self.progress_ms > STUCK_MS
        return memoryview(bytearray(records)) if is_stuck else records
