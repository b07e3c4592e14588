"""Bring translated group positions to the target: the groups' own offsets, and checkpoints.

A position is committed as a simple commit, which the broker refuses while the group has members:
so a group that turns active between our look and our write is never rewound. Nothing is committed
beyond what has been mirrored; what waits for data is committed again as the data arrives.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from mirror.admin import ensure_topic
from mirror.fault_note import FaultNote
from mirror.flow_state import FlowState
from mirror.group_offsets import OFFSETS_TOPIC, GroupReader, SourceGroups, SourcePosition
from mirror.group_polling import GroupPoller
from mirror.links import Links
from mirror.tail_reader import TailReader
from mirror.target_side import commit_on_target, target_positions
from offset_translation import checkpoint
from offset_translation.binary import MalformedRecord
from offset_translation.checkpoint import Checkpoint
from offset_translation.group_positions import GroupPosition, Leave, decide
from offset_translation.map_records import TopicPartition
from offset_translation.translation import NotYet, Position, translate
from runtime.clock import now_ms
from wire.errors import ErrorCode
from wire.net.errors import NetworkFault
from wire.net.operations import append
from wire.net.retries import code_of
from wire.record_batch import Record, build_batch

_LOG = logging.getLogger(__name__)

GROUPS_AT_ONCE: Final = 8
WAITING_LOOK_MS: Final = 500
"""A position that waits for data is committed again this often, and at once when it is exact."""
ACTIVE_LOOK_MS: Final = 3_000
"""A group that has members on the target is tried again this often."""
FAULT_LOOK_MS: Final = 1_000

Place: TypeAlias = tuple[str, str, int]
"""(group, topic, partition)"""

ACTIVE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""What a broker answers to a simple commit for a group that has members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """One partition of one group, as last looked at."""

    source_offset: int
    target_offset: int | None
    state: str
    """Settled, waiting for data, or why nothing was committed."""
    looked_ms: int


class GroupSync:
    """Reads positions on the source and applies them on the target."""

    def __init__(self, flow: FlowState, links: Links) -> None:
        """Begin with nothing applied."""
        self.groups: Final = SourceGroups(flow)
        self.reader: Final = GroupReader(flow, links, self.groups)
        self.poller: Final = GroupPoller(flow, links, self.groups)
        self.status: dict[Place, GroupStatus] = {}
        self.fault = FaultNote(f"{flow.config.name}: group positions")
        self._flow = flow
        self._links = links
        self._names: Final = flow.config.names
        self._topic: Final = self._names.checkpoints_topic
        self._applied: dict[Place, Checkpoint] = {}
        self._unwritten: dict[Place, Checkpoint] = {}
        self._retry_at_ms: dict[str, int] = {}
        """Groups to look at again without news, and when."""
        self._waiting: set[str] = set()
        """Those of them whose positions wait for data."""
        self._incomplete: dict[str, int] = {}
        """Groups with positions on partitions that are not mirrored yet: how many were."""
        self._applying = trio.Lock()
        self._is_loaded = False

    async def run(self) -> None:
        """Read and apply for ever."""
        async with trio.open_nursery() as nursery:
            if not self._flow.config.are_groups_polled:
                nursery.start_soon(self.reader.run)
            nursery.start_soon(self.poller.run, self._is_polled)
            await self._load()
            interval_s = self._flow.config.group_offsets_interval_ms / 1000
            while True:
                if not self.groups.changed:
                    await self.groups.news.wait(interval_s)
                await trio.sleep(interval_s)
                if self._is_known() and self._flow.is_fetching:
                    await self._apply(self._due())

    @property
    def origin(self) -> str:
        """How the positions are learned: the topic they are read from, or why they are polled."""
        if not self._is_polled():
            return OFFSETS_TOPIC
        return f"polled: {self.reader.refusal or 'as configured'}"

    def _is_polled(self) -> bool:
        return self._flow.config.are_groups_polled or self.reader.refusal is not None

    def _is_known(self) -> bool:
        return self.poller.is_loaded if self._is_polled() else self.reader.is_loaded

    async def apply_now(self) -> None:
        """Apply all that is known, whatever it waits for; used when the flow stops."""
        if self._is_loaded:
            await self._apply(self.groups.changed | set(self._retry_at_ms))

    async def _load(self) -> None:
        """Learn what was committed last, to tell a rewind from a run ahead."""
        while not self._is_loaded:
            try:
                await self._read_checkpoints()
            except NetworkFault as fault:
                self.fault.note(str(fault))
                await trio.sleep(FAULT_LOOK_MS / 1000)
            else:
                self.fault.clear()
                self._is_loaded = True

    async def _read_checkpoints(self) -> None:
        target = self._links.target_admin
        await ensure_topic(
            target,
            self._topic,
            replication_factor=self._flow.config.replication_factor,
            configs={"cleanup.policy": "compact"},
        )
        async for _, record in TailReader(target, self._topic).read_new():
            self._replay(record)

    def _replay(self, record: Record) -> None:
        if record.key is None or record.value is None:
            return
        try:
            one = checkpoint.decode(record.key, record.value)
        except MalformedRecord as fault:
            self._flow.measurements.malformed[self._topic] += 1
            _LOG.debug("%s: offset %d: %s", self._topic, record.offset, fault)
            return
        topic = self._names.on_source(one.topic)
        if topic is not None:
            self._applied[one.group, topic, one.partition] = one

    def _due(self) -> set[str]:
        """Return the groups with news, those whose time has come, and those now exact."""
        now = now_ms()
        due = self.groups.changed | {g for g, at in self._retry_at_ms.items() if at <= now}
        due |= {g for g, were in self._incomplete.items() if len(self._mirrored(g)) > were}
        return due | {group for group in self._waiting - due if self._is_exact(group)}

    def _is_exact(self, group: str) -> bool:
        for place, position in self._mirrored(group).items():
            offset_map = self._flow.partitions[place].offset_map
            if translate(offset_map, position.offset) is NotYet.UNMIRRORED:
                return False
        return True

    def _mirrored(self, group: str) -> dict[TopicPartition, SourcePosition]:
        """Return the group's positions on partitions of this flow whose extent is known."""
        positions = self.groups.positions.get(group, {})
        partitions = self._flow.partitions
        return {
            place: one
            for place, one in positions.items()
            if place in partitions and partitions[place].is_positioned
        }

    async def _apply(self, groups: set[str]) -> None:
        async with self._applying:
            self.groups.changed -= groups
            while self.groups.forgotten:
                self.status.pop(self.groups.forgotten.pop(), None)
            limit = trio.CapacityLimiter(GROUPS_AT_ONCE)
            async with trio.open_nursery() as nursery:
                for group in groups:
                    nursery.start_soon(self._apply_limited, group, limit)
            await self._write_checkpoints()

    async def _apply_limited(self, group: str, limit: trio.CapacityLimiter) -> None:
        async with limit:
            self._retry_at_ms.pop(group, None)
            self._waiting.discard(group)
            try:
                await self._apply_group(group)
            except NetworkFault as fault:
                self.fault.note(f"group {group}: {fault}", group)
                self._retry_at_ms[group] = now_ms() + FAULT_LOOK_MS
            else:
                self.fault.clear(group)

    async def _apply_group(self, group: str) -> None:
        """Compare one group's positions with the target's and commit what is due."""
        mirrored = self._mirrored(group)
        self._incomplete.pop(group, None)
        if len(mirrored) < len(self.groups.positions.get(group, {})):
            self._incomplete[group] = len(mirrored)
        if not mirrored:
            return
        there = await target_positions(self._links.target_admin, self._names, group)
        commits: dict[TopicPartition, Position] = {}
        for place, position in mirrored.items():
            applied = self._applied.get((group, *place))
            current = there[place].offset if place in there else None
            decision = decide(
                self._flow.partitions[place].offset_map,
                GroupPosition(
                    source_offset=position.offset,
                    applied_source_offset=None if applied is None else applied.upstream_offset,
                    target_offset=current,
                ),
                group_is_idle=True,
                backward=self._flow.backward(place),
            )
            if isinstance(decision, Leave):
                self._note_status(group, place, current, decision.value)
            else:
                commits[place] = decision
        if commits:
            await self._commit(group, commits, mirrored, {p: o.offset for p, o in there.items()})
        if not self._is_exact(group):
            self._waiting.add(group)
            self._retry_at_ms[group] = now_ms() + WAITING_LOOK_MS

    async def _commit(
        self,
        group: str,
        commits: Mapping[TopicPartition, Position],
        mirrored: Mapping[TopicPartition, SourcePosition],
        there: Mapping[TopicPartition, int],
    ) -> None:
        codes = await commit_on_target(
            self._links.target_admin,
            self._names,
            group,
            {
                place: (position.target_offset, mirrored[place].metadata)
                for place, position in commits.items()
            },
        )
        for place, position in commits.items():
            code = codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code is ErrorCode.NONE:
                self._flow.measurements.group_commits += 1
                self._note_checkpoint(group, place, position, mirrored[place].metadata)
                state = "settled" if position.is_exact else "waiting for data"
                self._note_status(group, place, position.target_offset, state)
                continue
            is_active = code in ACTIVE
            self._retry_at_ms[group] = now_ms() + ACTIVE_LOOK_MS
            self._flow.measurements.group_commit_errors[code.name] += 1
            state = Leave.GROUP_IS_ACTIVE.value if is_active else f"refused: {code.name}"
            self._note_status(group, place, there.get(place), state)

    def _note_status(
        self, group: str, place: TopicPartition, target_offset: int | None, state: str
    ) -> None:
        position = self.groups.positions.get(group, {}).get(place)
        if position is None:
            return
        if state == Leave.ALREADY_THERE.value:
            offset_map = self._flow.partitions[place].offset_map
            is_ahead = translate(offset_map, position.offset) is NotYet.UNMIRRORED
            state = "waiting for data" if is_ahead else "settled"
        self.status[group, *place] = GroupStatus(
            source_offset=position.offset,
            target_offset=target_offset,
            state=state,
            looked_ms=now_ms(),
        )

    def _note_checkpoint(
        self, group: str, place: TopicPartition, position: Position, metadata: str
    ) -> None:
        one = Checkpoint(
            group=group,
            topic=self._names.on_target(place[0]),
            partition=place[1],
            upstream_offset=position.source_offset,
            downstream_offset=position.target_offset,
            metadata=metadata,
        )
        self._applied[group, *place] = one
        self._unwritten[group, *place] = one

    async def _write_checkpoints(self) -> None:
        """Write what was applied; what cannot be written now goes along the next time."""
        if not self._unwritten:
            return
        writing = dict(self._unwritten)
        stamp = now_ms()
        records = []
        for number, one in enumerate(writing.values()):
            key, value = checkpoint.encode(one)
            records.append(Record(number, stamp, key, value))
        try:
            answer = await append(self._links.target_admin, self._topic, 0, build_batch(records))
        except NetworkFault as fault:
            self.fault.note(f"{self._topic}: {fault}", self._topic)
            return
        if answer.error_code != ErrorCode.NONE:
            self.fault.note(f"{self._topic}: {code_of(answer.error_code).name}", self._topic)
            return
        self.fault.clear(self._topic)
        for place, one in writing.items():
            if self._unwritten.get(place) is one:
                del self._unwritten[place]
