"""Bring translated group positions to the target: the groups' own offsets, and checkpoints.

    news, data that was waited for, a turn of the round          mirror/groups/agenda    (pure)
      ─► the target's own positions, of many groups in one question
      ─► decided partition by partition                           offset_translation     (pure)
      ─► committed, group after group without waiting in between
      ─► the checkpoints of what was committed, one question later  mirror/groups/checkpoint_log

A position is committed as a simple commit, which the broker refuses while the group has members:
so a group that turns active between our look and our write is never rewound. Nothing is committed
beyond the mirrored end; a position that waits for data is committed again as the data arrives.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import trio

from mirror.clusters.links import Links
from mirror.clusters.malformed_records import OddRecords
from mirror.clusters.target_side import commit_on_target, positions_on_target
from mirror.groups.agenda import ACTIVE_LOOK_MS, FAULT_LOOK_MS, WAITING_LOOK_MS, Agenda, Due
from mirror.groups.checkpoint_log import CheckpointLog, GroupPartition
from mirror.groups.group_offsets import GroupReader
from mirror.groups.group_polling import GroupPoller
from mirror.groups.source_groups import OFFSETS_TOPIC, SourceGroups, SourcePosition
from mirror.groups.target_starts import TargetStarts
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.partition import MirroredPartition
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.wakeups import FlowGate
from offset_translation.both_ways import translate_both_ways
from offset_translation.checkpoint import Checkpoint
from offset_translation.group_positions import GroupPosition, Leave, decide_commit
from offset_translation.offset_map import OffsetMap
from offset_translation.translation import Position
from runtime.coordination.map_writers import Writers
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import described
from wire.errors import ErrorCode
from wire.net.errors import NetworkFault
from wire.net.operations import GROUP_HAS_MEMBERS, GroupOffset
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

PLACES_AT_ONCE: Final = 4_000
"""Decided without letting others run: some 20 ms."""
LOAD_RETRY_S: Final = 1.0
MAX_METADATA_BYTES: Final = 32_767
"""The room for metadata in a checkpoint."""
WAITS: Final = "waiting for data"
SETTLED: Final = "settled"
CUT: Final = "settled at the target's log start: records before it are gone there"


class GroupStatus(NamedTuple):
    """One partition of one group, as last looked at."""

    source_offset: int
    target_offset: int | None
    state: str
    """Settled, waiting for data, or why nothing was committed."""
    looked_ms: int


class Chosen(NamedTuple):
    """The position to commit for one partition."""

    position: Position
    metadata: str
    before: int | None
    """The target's position as it was seen."""
    state: str
    """The state of the partition once this is committed."""


Chosens: TypeAlias = dict[str, dict[TopicPartition, Chosen]]

ARRIVALS_REST: Final = 10
"""Between looks at all positions, this many times as long as a look takes."""


@frozen
class GroupParts:
    """The parts of a flow's state that the task of the group positions uses."""

    config: LiveConfig
    partitions: FlowPartitions
    gate: FlowGate
    reverse: ReverseFlow
    measurements: FlowMeasurements
    progress: MirroredProgress


class GroupSync:
    """Reads positions on the source and applies them on the target."""

    def __init__(self, parts: GroupParts, links: Links, writers: Writers) -> None:
        """Make the parts; ``writers`` are those of the flow's checkpoints."""
        config = parts.config.current
        self.groups: Final = SourceGroups(parts.config, parts.measurements)
        self.reader: Final = GroupReader(config, links, self.groups)
        self.poller: Final = GroupPoller(config, links, self.groups)
        self.status: dict[GroupPartition, GroupStatus] = {}
        self.starts: Final = TargetStarts(config, links)
        self.fault = FaultNote(f"{config.name}: group positions")
        self._parts = parts
        self._links = links
        self._names: Final = config.names
        odd = OddRecords(parts.measurements, self._names.checkpoints_topic)
        self.checkpoints: Final = CheckpointLog(
            links.target_admin, config, odd, self.fault, writers
        )
        self._agenda: Final = Agenda(now_ms())
        self._refused_metadata = MAX_METADATA_BYTES + 1
        """Metadata of this many bytes is more than the target takes."""
        self._arrivals = 0
        """The state of the other direction when positions were compared with it last."""
        self._look_at_arrivals_ms = 0
        self._applying = trio.Lock()
        self._is_loaded = False

    async def run(self) -> None:
        """Read and apply for ever."""
        async with trio.open_nursery() as nursery:
            if not self._parts.config.current.are_groups_polled:
                nursery.start_soon(self.reader.run)
            nursery.start_soon(self.poller.run, self._is_polled)
            await self._load()
            interval_s = self._parts.config.current.group_offsets_interval_ms / 1000
            while True:
                if not self.groups.changed:
                    await self.groups.news.wait(interval_s)
                await trio.sleep(interval_s)
                if self._parts.gate.is_open:
                    due = self._due()
                    if due or self.groups.forgotten or self.checkpoints.is_behind:
                        await self._apply(due)

    @property
    def origin(self) -> str:
        """The origin of the positions: the topic they are read from, or why they are polled."""
        if not self._is_polled():
            return OFFSETS_TOPIC
        return f"polled: {self.reader.refusal or 'as configured'}"

    def _is_polled(self) -> bool:
        return self._parts.config.current.are_groups_polled or self.reader.refusal is not None

    async def apply_now(self) -> None:
        """Apply all known positions, whatever they wait for; used when the flow stops."""
        if self._is_loaded:
            due = self._agenda.everything()
            for group, topic_partitions in self.groups.take_changed().items():
                due.setdefault(group, set()).update(topic_partitions)
            await self._apply(due)
            await self.checkpoints.write()

    async def _load(self) -> None:
        """Learn what was committed last, to tell a rewind from a run ahead."""
        while not self._is_loaded:
            try:
                await self.checkpoints.load()
            except NetworkFault as fault:
                self.fault.note(str(fault))
                await trio.sleep(LOAD_RETRY_S)
            else:
                self.fault.clear()
                self._is_loaded = True

    def _due(self) -> Due:
        placed = self._parts.partitions.known
        moved_on = {
            topic_partition: partition.offset_map.mirrored_source_end
            for topic_partition in self._parts.progress.take()
            if (partition := placed.get(topic_partition)) is not None and partition.has_true_map
        }
        due, whole = self._agenda.due(now_ms(), self.groups.positions, moved_on)
        for group in whole:
            due.setdefault(group, set()).update(self.groups.positions[group])
        for group, topic_partition in self._behind_arrivals():
            due.setdefault(group, set()).add(topic_partition)
        for group, topic_partitions in self.groups.take_changed().items():
            due.setdefault(group, set()).update(topic_partitions)
        return due

    def _behind_arrivals(self) -> Iterable[tuple[str, TopicPartition]]:
        """Return what lies further on now that more is known of the other direction.

        A group that has moved on by itself, or is at work there, has its own time.
        """
        now, reverse = now_ms(), self._parts.reverse
        if reverse.arrivals == self._arrivals or now < self._look_at_arrivals_ms:
            return ()
        self._arrivals = reverse.arrivals
        further: list[tuple[str, TopicPartition]] = []
        partitions = self._parts.partitions.known
        backwards: dict[TopicPartition, OffsetMap | None] = {}
        for (group, topic, index), seen in self.status.items():
            topic_partition = TopicPartition(topic, index)
            partition = partitions.get(topic_partition)
            if topic_partition not in backwards:
                backwards[topic_partition] = reverse.backward(partition)
            backward = backwards[topic_partition]
            if seen.state not in {WAITS, SETTLED} or partition is None or backward is None:
                continue
            position = translate_both_ways(partition.offset_map, backward, seen.source_offset)
            if position is not None and position.target_offset > (seen.target_offset or 0):
                further.append((group, topic_partition))
        self._look_at_arrivals_ms = now_ms() + ARRIVALS_REST * (now_ms() - now)
        return further

    async def _apply(self, due: Due) -> None:
        """Look at these partitions, commit what is due, and write the checkpoints noted before."""
        async with self._applying, trio.open_nursery() as nursery:
            nursery.start_soon(self.checkpoints.write)
            while self.groups.forgotten:
                group, topic, index = self.groups.forgotten.pop()
                self.status.pop((group, topic, index), None)
                self._agenda.forget(group, TopicPartition(topic, index))
                if group not in self.groups.positions:
                    self.fault.clear(group)
            for some in _slices(due):
                await self._apply_each(some)

    async def _apply_each(self, due: Due) -> None:
        """Apply them together; an error that nobody has foreseen keeps its own group back only."""
        try:
            await self._apply_some(due)
        except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
            if len(due) > 1:
                for group, topic_partitions in due.items():
                    await self._apply_each({group: topic_partitions})
                return
            for group, topic_partitions in due.items():
                _LOG.exception("%s: group %s failed", self._parts.config.current.name, group)
                self._put_off(group, topic_partitions, fault)

    async def _apply_some(self, due: Due) -> None:
        asked = {
            group: known
            for group, topic_partitions in due.items()
            if (known := self._known(group, topic_partitions))
        }
        if not asked:
            return
        target_positions = await positions_on_target(self._links.target_admin, self._names, asked)
        await self._look_at_starts(asked)
        chosens: Chosens = {}
        for group, positions in asked.items():
            on_target = target_positions[group]
            if isinstance(on_target, NetworkFault):
                self._put_off(group, positions, on_target)
                continue
            try:
                chosen = self._decide(group, positions, on_target)
            except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
                _LOG.exception("%s: group %s failed", self._parts.config.current.name, group)
                self._put_off(group, positions, fault)
                continue
            if chosen:
                chosens[group] = chosen
            else:
                self.fault.clear(group)
        await self._commit(chosens)

    async def _look_at_starts(
        self, asked: Mapping[str, Mapping[TopicPartition, SourcePosition]]
    ) -> None:
        """Learn where the target's logs begin in which groups have something to read.

        With both sites written to, none is asked for: the flow back would take a position at the
        target's log start for the group's own, and move the group past records of the source.
        """
        if self._parts.config.current.is_active_active:
            return
        behind: set[TopicPartition] = set()
        for positions in asked.values():
            for topic_partition, position in positions.items():
                partition = self._parts.partitions.known.get(topic_partition)
                end = None if partition is None else partition.offset_map.mirrored_source_end
                if end is not None and position.offset < end:
                    behind.add(topic_partition)
        await self.starts.refresh(behind)

    def _known(
        self, group: str, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, SourcePosition]:
        """Return the positions on partitions of this flow whose extent is known."""
        self._agenda.looked_at(group, topic_partitions)
        positions = self.groups.positions.get(group, {})
        known = {}
        for topic_partition in topic_partitions:
            position, partition = (
                positions.get(topic_partition),
                self._parts.partitions.known.get(topic_partition),
            )
            if position is None:
                continue
            if partition is None or not self._has_true_maps(partition):
                self._agenda.wait_for_partition(group, topic_partition)
            else:
                known[topic_partition] = position
        return known

    def _has_true_maps(self, partition: MirroredPartition) -> bool:
        """Whether both maps speak of the logs that are there, as far as it is known.

        By one alone a position among records of the other site would be that before all of them.
        """
        return partition.has_true_map and not self._parts.reverse.is_unknown(partition)

    def _decide(
        self,
        group: str,
        positions: Mapping[TopicPartition, SourcePosition],
        on_target: Mapping[TopicPartition, GroupOffset],
    ) -> dict[TopicPartition, Chosen]:
        """Compare one group's positions with the target's; return what is to be committed."""
        chosen: dict[TopicPartition, Chosen] = {}
        now, placed = now_ms(), self._parts.partitions.known
        for topic_partition, position in positions.items():
            applied = self.checkpoints.applied.get((group, *topic_partition))
            current = on_target[topic_partition].offset if topic_partition in on_target else None
            partition = placed.get(topic_partition)
            if partition is None or not self._has_true_maps(partition):
                # so since the target was asked
                self._agenda.wait_for_partition(group, topic_partition)
                continue
            offset_map, start = partition.offset_map, self.starts.known.get(topic_partition, 0)
            upstream = None if applied is None else applied.upstream_offset
            decision = decide_commit(
                offset_map,
                GroupPosition(position.offset, upstream, current),
                backward=self._parts.reverse.backward(partition),
                target_log_start=start,
            )
            end = offset_map.mirrored_source_end
            waits = end is None or position.offset > end
            if waits:
                self._agenda.wait_for_data(group, topic_partition, position.offset)
                self._agenda.later(group, (topic_partition,), now, WAITING_LOOK_MS)
            if not isinstance(decision, Leave):
                is_cut = not decision.is_exact and decision.target_offset == start > 0
                state = CUT if is_cut else WAITS if waits else SETTLED
                metadata = self._metadata(position.metadata)
                chosen[topic_partition] = Chosen(decision, metadata, current, state)
                continue
            state = decision.value
            if decision is Leave.ALREADY_THERE:
                is_cut = current == start > 0 and self._is_before(
                    topic_partition, position.offset, start
                )
                state = CUT if is_cut else WAITS if waits else SETTLED
                is_told = applied is not None and applied.downstream_offset == current
                if not is_told and current is not None and end is not None:
                    # Another mirror's commit, or this one ended before the checkpoint was written.
                    known = Position(
                        source_offset=min(position.offset, end),
                        target_offset=current,
                        is_exact=not waits,
                    )
                    self._note_checkpoint(
                        group, topic_partition, known, self._metadata(position.metadata)
                    )
            self.status[group, *topic_partition] = GroupStatus(position.offset, current, state, now)
        return chosen

    def _is_before(
        self, topic_partition: TopicPartition, source_offset: int, target_start: int
    ) -> bool:
        """Whether a position's own offset lies before the target's log start."""
        partition = self._parts.partitions.known[topic_partition]
        backward = self._parts.reverse.backward(partition)
        position = translate_both_ways(partition.offset_map, backward, max(source_offset, 0))
        return position is not None and position.target_offset < target_start

    def _metadata(self, metadata: str) -> str:
        """Return as much as the target takes: all or nothing. The position counts."""
        return "" if len(metadata.encode()) >= self._refused_metadata else metadata

    async def _commit(self, chosens: Chosens) -> None:
        if not chosens:
            return
        answers = await commit_on_target(
            self._links.target_admin,
            self._names,
            {
                group: {
                    topic_partition: (choice.position.target_offset, choice.metadata)
                    for topic_partition, choice in chosen.items()
                }
                for group, chosen in chosens.items()
            },
        )
        for group, chosen in chosens.items():
            codes = answers[group]
            if isinstance(codes, NetworkFault):
                self._put_off(group, chosen, codes)
                continue
            self.fault.clear(group)
            positions, now = self.groups.positions.get(group, {}), now_ms()
            for topic_partition, choice in chosen.items():
                code = codes.get(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)
                state = self._take_code(group, topic_partition, choice, code, now)
                known = positions.get(topic_partition)
                if known is None:
                    continue
                target_offset, waits = choice.before, known.offset > choice.position.source_offset
                if state is None:
                    target_offset, state = (
                        choice.position.target_offset,
                        WAITS if waits else choice.state,
                    )
                self.status[group, *topic_partition] = GroupStatus(
                    known.offset, target_offset, state, now
                )

    def _take_code(
        self, group: str, topic_partition: TopicPartition, choice: Chosen, code: ErrorCode, now: int
    ) -> str | None:
        """Note what has become of one position; return why it was refused, None if it was not."""
        if code is ErrorCode.NONE:
            self._parts.measurements.count_group_commit()
            self._note_checkpoint(group, topic_partition, choice.position, choice.metadata)
            return None
        self._parts.measurements.count_group_commit_error(code.name)
        if code is ErrorCode.OFFSET_METADATA_TOO_LARGE and choice.metadata:
            self._leave_metadata_out(group, topic_partition, choice.metadata)
            self._agenda.later(group, (topic_partition,), now, 0)
        else:
            self._agenda.later(group, (topic_partition,), now, ACTIVE_LOOK_MS)
        return Leave.GROUP_IS_ACTIVE.value if code in GROUP_HAS_MEMBERS else f"refused: {code.name}"

    def _note_checkpoint(
        self, group: str, topic_partition: TopicPartition, position: Position, metadata: str
    ) -> None:
        topic, partition = topic_partition
        source, target, _ = position
        target_topic = self._names.on_target(topic)
        checkpoint = Checkpoint(group, target_topic, partition, source, target, metadata)
        self.checkpoints.note((group, topic, partition), checkpoint)

    def _leave_metadata_out(
        self, group: str, topic_partition: TopicPartition, metadata: str
    ) -> None:
        """Commit positions with as much metadata without it from now on."""
        size = len(metadata.encode())
        if size < self._refused_metadata:
            self._refused_metadata = size
            _LOG.warning(
                "%s: the target takes no metadata of %d bytes, as %s has committed for %s-%d: "
                "positions with as much are committed without it",
                self._parts.config.current.name, size, group, *topic_partition,
            )  # fmt: skip

    def _put_off(
        self, group: str, topic_partitions: Iterable[TopicPartition], fault: Exception
    ) -> None:
        what = str(fault) if isinstance(fault, NetworkFault) else f"failed: {described(fault)}"
        self.fault.note(f"group {group}: {what}", group)
        self._agenda.later(group, topic_partitions, now_ms(), FAULT_LOOK_MS)


def _slices(due: Due) -> Iterator[Due]:
    """Yield the groups some at a time."""
    some: Due = {}
    size = 0
    for group, topic_partitions in due.items():
        some[group] = topic_partitions
        size += len(topic_partitions)
        if size >= PLACES_AT_ONCE:
            yield some
            some, size = {}, 0
    if some:
        yield some
