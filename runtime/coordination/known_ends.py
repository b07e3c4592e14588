"""Where a flow's source ended when the mirror last heard of it, as the witness keeps it. Pure.

When a source is lost, nobody can ask it any more where its logs ended. So the worker that leads
the flow writes it down again and again: a long document (`runtime.coordination.long_document`).

    {"at_ms": 1763620000000,           wall clock of the worker that wrote it
     "topics": {"orders": [            for each partition:
        [0,                            its number
         1142,                         the source's high watermark, as heard last
         350,                          so many milliseconds before `at_ms` that was heard
         3750,                         and so many before it all was mirrored; null: not known
         true]]}}                      whether the worker looked on since, and heard nothing more
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from runtime.coordination.long_document import LongDocument, assemble, pack
from runtime.coordination.witness import WitnessGarbled
from runtime.untrusted_json import LARGEST_INT32, read_json, text, whole_number
from wire.topic_partition import TopicPartition
from wire.values import frozen

UNSEEN_MS: Final = 4_000
"""So long a source may have gone on unseen behind its last word: the mirror hears of each partition
every second, and notices that it slept itself if that was for more than three."""
LEAST_REST_S: Final = 2.0
BYTES_PER_S: Final = 20_000
"""So much of it the witness has to write at most: the more partitions, the less often."""
LATE_MS: Final = 10_000
"""News may come so much later than they are due."""
PARTITION_BYTES: Final = 30
"""About so much a document has of a partition, beside the name of its topic."""


def rest_s(size: int) -> float:
    """Return how long a worker rests behind writing so many bytes."""
    return max(LEAST_REST_S, size / BYTES_PER_S)


@frozen
class KnownEnd:
    """One partition of the source. Times are wall-clock milliseconds."""

    end: int
    """Its high watermark, as heard last."""
    heard_ms: int
    level_ms: int | None
    """The last moment known at which everything was mirrored; None if there is none."""
    is_last_word: bool = False
    """Whether the mirror looked on without a pause, and heard nothing more."""


@frozen
class KnownEnds:
    """What was known of the source's logs at `at_ms`, wall-clock milliseconds."""

    at_ms: int
    ends: Mapping[TopicPartition, KnownEnd]

    def is_followed(self, now_ms: int) -> bool:
        """Tell whether the next news are not overdue: a mirror still looks on.

        A source may have come back since a mirror ended that had found it silent. News of the
        future are of another clock, and tell nothing.
        """
        return abs(now_ms - self.at_ms) <= self.overdue_ms

    @property
    def overdue_ms(self) -> float:
        """After so long without others a mirror that writes such news has ended."""
        names = sum(len(topic) for topic in {topic for topic, _ in self.ends})
        return 1_000 * rest_s(names + PARTITION_BYTES * len(self.ends)) + LATE_MS

    def kept(
        self, earlier: "KnownEnds | None", partitions: Collection[TopicPartition]
    ) -> "KnownEnds":
        """Return this with what was known earlier of those of these that nothing is known of now.

        A worker that begins while the source is away knows nothing of it. Nobody looked on between
        the two workers, so what was the last word for the earlier one is not any more.
        """
        if earlier is None:
            return self
        kept = {
            where: replace(one, is_last_word=False)
            for where, one in earlier.ends.items()
            if where in partitions
        }
        for where, one in self.ends.items():
            level_ms = one.level_ms
            if level_ms is None and where in kept:
                level_ms = kept[where].level_ms  # what was level then has not ceased to have been
            kept[where] = replace(one, level_ms=level_ms)
        return replace(self, ends=kept)

    def encode(self) -> LongDocument:
        """Return the document as it is stored."""
        topics: defaultdict[str, list[tuple[int, int, int, int | None, bool]]] = defaultdict(list)
        for (topic, partition), one in sorted(self.ends.items()):
            level = None if one.level_ms is None else self.at_ms - one.level_ms
            heard = self.at_ms - one.heard_ms
            topics[topic].append((partition, one.end, heard, level, one.is_last_word))
        packed = pack(topics)
        if packed is None:
            return assemble({"at_ms": self.at_ms, "topics": topics}, {})
        return assemble({"at_ms": self.at_ms}, {("topics",): packed})

    @classmethod
    def decode(cls, whole: bytes) -> "KnownEnds":
        """Return what a whole document says; raises WitnessGarbled."""
        try:
            found = read_json(whole)
            at_ms = whole_number(found["at_ms"])
            ends = {
                TopicPartition(text(topic), whole_number(one[0], LARGEST_INT32)): _end(at_ms, one)
                for topic, partitions in found["topics"].items()
                for one in partitions
            }
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise WitnessGarbled(f"no valid known ends: {whole[:80]!r}: {error}") from error
        return cls(at_ms=at_ms, ends=ends)


def _end(at_ms: int, one: Any) -> KnownEnd:  # noqa: ANN401 - JSON
    _, end, heard, level, is_last_word = one
    if not isinstance(is_last_word, bool):
        raise TypeError(f"{is_last_word!r:.80} is no truth value")
    return KnownEnd(
        end=whole_number(end),
        heard_ms=at_ms - whole_number(heard),
        level_ms=None if level is None else at_ms - whole_number(level),
        is_last_word=is_last_word,
    )
