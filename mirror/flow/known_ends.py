"""The source's ends, written into the witness for the day on which the source is lost."""

import logging
from typing import Final

from mirror.state.flow_partitions import FlowPartitions
from mirror.state.work_share import WorkShare
from runtime.configuration.config import FlowConfig
from runtime.coordination.known_ends import KnownEnd, KnownEnds, rest_s
from runtime.coordination.long_document import LongDocument
from runtime.coordination.long_nodes import delete_unnamed_parts, read_document, write_parts
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import BadVersion, Check, NodeExists, ZNode, ZooKeeper

_LOG = logging.getLogger(__name__)

SILENT_MS: Final = 3_000
"""The mirror hears of each partition every second or so. After so long it hears nothing more."""
ASLEEP_S: Final = 3.0
"""A worker that did nothing for so long was stopped, or its machine was."""
ANSWERS_OF_BEFORE_MS: Final = 3_000
"""What a worker hears so soon after it slept may have waited for it all the while."""


class Wakefulness:
    """Since when this process has not slept: a sleeper hears nothing, which is no silence."""

    def __init__(self, now_ms: int, now_s: float) -> None:
        """Begin, by the wall clock in milliseconds, and by one that never jumps in seconds."""
        self.since_ms = now_ms
        self._ticked_s = now_s

    def tick(self, now_ms: int, now_s: float) -> None:
        """Call this every second."""
        if now_s - self._ticked_s > ASLEEP_S or now_ms < self.since_ms:
            self.since_ms = now_ms
        self._ticked_s = now_s


def has_fallen_silent(partitions: FlowPartitions, now_ms: int) -> bool:
    """Tell whether the source was heard of, and is not any more, whatever the partition."""
    known = partitions.known.values()
    heard = [partition.source.heard_ms for partition in known if partition.source.end is not None]
    return bool(heard) and now_ms - max(heard) >= SILENT_MS


def known_ends(partitions: FlowPartitions, awake_since_ms: int, now_ms: int) -> KnownEnds:
    """Return what the leading worker knows of all partitions, its own and the other workers'."""
    known = {}
    for topic_partition, partition in partitions.known.items():
        source = partition.source
        if source.end is None:
            continue  # nothing was heard of it, which is not an end of 0
        since_level_ms = source.since_level_ms(now_ms)
        is_silent = now_ms - source.heard_ms >= SILENT_MS
        known[topic_partition] = KnownEnd(
            end=source.end,
            heard_ms=min(source.heard_ms, now_ms),
            level_ms=None if since_level_ms is None else now_ms - since_level_ms,
            is_last_word=is_silent and awake_since_ms + ANSWERS_OF_BEFORE_MS <= source.heard_ms,
        )
    return KnownEnds(at_ms=now_ms, ends=known)


class KnownEndsNode:
    """The node in the witness that one worker, the leading one, writes."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        paths: WitnessPaths,
        config: FlowConfig,
        partitions: FlowPartitions,
        share: WorkShare,
    ) -> None:
        """Know where to write; nothing is written yet."""
        self._zookeeper = zookeeper
        self._name = config.name
        self._partitions = partitions
        self._share = share
        source, target = config.source, config.target
        self._path = paths.known_ends(source, target)
        self._parts_path = paths.known_ends_parts(source, target)

    async def publish(self, awake_since_ms: int, now_ms: int) -> float:
        """Write what is known now; return how many seconds to rest before the next time.

        What was known of partitions of which nothing is known now stays. Raises what writing to the
        witness raises.
        """
        now = known_ends(self._partitions, awake_since_ms, now_ms)
        node = await self._zookeeper.get(self._path)
        earlier = None if node is None else await self._earlier()
        # A source that answers has told which partitions there are.
        known_partitions = (
            self._share.seen if now.ends else frozenset(earlier.ends if earlier else ())
        )
        document = now.kept(earlier, known_partitions).encode()
        await write_parts(self._zookeeper, document, self._parts_path)
        await self._write_head(document, node)
        return rest_s(len(document.head) + sum(map(len, document.parts.values())))

    async def _earlier(self) -> KnownEnds | None:
        """Return what was written last; garbage is nothing, and is written over."""
        try:
            node = await read_document(self._zookeeper, self._path, self._parts_path)
            return None if node is None else KnownEnds.decode(node.data)
        except ValueError as fault:  # WitnessGarbled is one, too
            _LOG.warning("%s: %s: %s", self._name, self._path, fault)
            return None

    async def _write_head(self, document: LongDocument, replaced: ZNode | None) -> None:
        """Write the head in one step, so that nobody ever reads an empty one.

        A worker that led earlier, and is late, writes nothing over what its successor wrote.
        """
        try:
            if replaced is None:
                await self._zookeeper.create(self._path, document.head, make_parents=True)
                version = 0
            else:
                version = await self._zookeeper.set(
                    self._path, document.head, version=replaced.version
                )
            claim = Check(path=self._path, version=version)
            await delete_unnamed_parts(self._zookeeper, document.head, self._parts_path, claim)
        except (NodeExists, BadVersion):
            _LOG.debug("%s: another worker has written %s", self._name, self._path)
