"""The writes that only the controller makes, each fenced by its epoch.

Every write is a transaction that also checks `/controller_epoch`: a controller that was deposed
while it looked away gets BadVersion and nothing is changed.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Final

from broker.zookeeper import tree
from broker.zookeeper.at_once import all_of
from broker.zookeeper.tree import LeaderAndIsr, MalformedNode, TopicAssignment
from runtime.coordination.zookeeper import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    SetData,
    ZooKeeper,
)
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

PER_TRANSACTION: Final = 250
"""Operations; ZooKeeper takes a megabyte (`jute.maxbuffer`)."""


@frozen
class ControllerEpoch:
    """The epoch of one controller: it may write as long as the epoch's node keeps this version."""

    number: int
    node_version: int


async def try_become_controller(
    zookeeper: ZooKeeper, broker_id: int, now_ms: int
) -> ControllerEpoch | None:
    """Become the controller with a new epoch, None when somebody else is."""
    with suppress(NodeExists):  # it counts for as long as the cluster lives
        await zookeeper.create(tree.CONTROLLER_EPOCH, b"0")
    counted = await zookeeper.get(tree.CONTROLLER_EPOCH)
    assert counted is not None, "the controller epoch is never deleted"
    present = await zookeeper.get(tree.CONTROLLER)
    operations: list[Operation] = []
    if present is not None:
        if present.ephemeral_owner != zookeeper.session_id:
            return None
        operations.append(Delete(path=tree.CONTROLLER, version=present.version))
    epoch = tree.decode_controller_epoch(counted.data) + 1
    try:
        await zookeeper.transaction(
            [
                *operations,
                Create(
                    path=tree.CONTROLLER,
                    data=tree.encode_controller(broker_id, now_ms),
                    ephemeral=True,
                ),
                SetData(
                    path=tree.CONTROLLER_EPOCH, data=str(epoch).encode(), version=counted.version
                ),
            ]
        )
    except (NodeExists, BadVersion, NoNode):
        return None
    return ControllerEpoch(number=epoch, node_version=counted.version + 1)


class ControllerStore:
    """The controller's writes. BadVersion from any of them means: deposed, or overtaken."""

    def __init__(self, zookeeper: ZooKeeper, epoch: ControllerEpoch) -> None:
        self._zookeeper = zookeeper
        self._fence = Check(path=tree.CONTROLLER_EPOCH, version=epoch.node_version)
        self._told: dict[str, str] = {}
        """What was logged last of each topic that is left as it is: it is looked at often."""

    def _leave(self, name: str, fault: MalformedNode) -> None:
        if self._told.get(name) != str(fault):
            self._told[name] = str(fault)
            _LOG.error("topic %s is left as it is: %s", name, fault)

    async def read_topics(self, names: Iterable[str]) -> dict[str, TopicAssignment]:
        """Return the assignments of the topics that (still) exist and can be understood."""

        async def read(name: str) -> TopicAssignment | None:
            node = await self._zookeeper.get(tree.topic_path(name))
            if node is None:
                return None
            try:
                return tree.decode_topic(name, node.data)
            except MalformedNode as fault:
                self._leave(name, fault)
                return None

        return await all_of(names, read)

    async def read_states(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, LeaderAndIsr], frozenset[str]]:
        """Return the states of the partitions that have one, and topics with a malformed one.

        A state that is not understood is not a missing one: as new, its partition would be given
        a leader that may lack records.
        """
        malformed: set[str] = set()

        async def read(partition: TopicPartition) -> LeaderAndIsr | None:
            path = tree.state_path(*partition)
            node = await self._zookeeper.get(path)
            if node is None:
                return None
            try:
                state = tree.decode_state(path, node.data, node.version)
            except MalformedNode as fault:
                self._leave(partition.topic, fault)
                malformed.add(partition.topic)
                return None
            return replace(state, written_zxid=node.modified_zxid)

        states = await all_of(partitions, read)
        found = {place: one for place, one in states.items() if place.topic not in malformed}
        return found, frozenset(malformed)

    async def read_deletions(self) -> list[str]:
        """Return the topics whose deletion somebody has asked for."""
        return await self._zookeeper.children(tree.DELETE_TOPICS) or []

    async def write(
        self,
        begun: Mapping[str, TopicAssignment],
        states: Iterable[tuple[TopicPartition, LeaderAndIsr]],
        finished: Mapping[str, TopicAssignment],
    ) -> None:
        """Write assignments, then states, then assignments, in as few transactions as may be.

        Each state is written over the version before its own; version 0 is a new partition's.
        """
        operations: list[Operation] = [_assign(*assigned) for assigned in begun.items()]
        for partition, state in states:
            operations += _write_state(partition, state)
        operations += [_assign(*assigned) for assigned in finished.items()]
        for chunk in _chunks(operations):
            await self._create_or_set(chunk)

    async def _create_or_set(self, operations: Sequence[Operation]) -> None:
        """Write; take folders as they are that an interrupted attempt left, or did not make."""
        try:
            await self._fenced(operations)
        except (NodeExists, NoNode):
            folders = [
                operation.path
                for operation in operations
                if isinstance(operation, Create) and not operation.data
            ]
            parents = {folder.rpartition("/")[0] for folder in folders}
            for path in [*sorted(parents), *folders]:
                if not await self._zookeeper.exists(path):
                    await self._fenced([Create(path=path)])
            left = [one for one in operations if not isinstance(one, Create) or one.data]
            await self._fenced(left)

    async def create_topic(
        self, name: str, assignment: TopicAssignment, config: Mapping[str, str]
    ) -> None:
        """Create a topic with its settings. Raises NodeExists."""
        config_path = tree.topic_config_path(name)
        data = tree.encode_config(config)
        left_over = await self._zookeeper.get(config_path)
        await self._fenced(
            [
                Create(path=config_path, data=data)
                if left_over is None
                else SetData(path=config_path, data=data, version=left_over.version),
                Create(path=tree.topic_path(name), data=tree.encode_topic(assignment)),
                Create(path=tree.partitions_path(name)),
            ]
        )

    async def grow_topic(self, name: str, assignment: TopicAssignment) -> None:
        """Replace a topic's assignment."""
        await self._fenced([_assign(name, assignment)])

    async def request_deletion(self, name: str) -> None:
        """Note durably that a topic is to go."""
        try:
            await self._fenced([Create(path=tree.delete_topic_path(name))])
        except NodeExists:
            return  # noted already

    async def remove_topic(self, name: str) -> None:
        """Delete all nodes of a topic; the note that it is to go is the last of them."""
        partitions = tree.partitions_path(name)
        folders = [
            f"{partitions}/{index}" for index in await self._zookeeper.children(partitions) or ()
        ]
        inside = await all_of(folders, self._zookeeper.children)
        operations: list[Operation] = []
        for folder in folders:
            operations += [Delete(path=f"{folder}/{child}") for child in inside.get(folder, ())]
            operations.append(Delete(path=folder))
        for path in (
            partitions,
            tree.topic_path(name),
            tree.topic_config_path(name),
            tree.delete_topic_path(name),
        ):
            if await self._zookeeper.exists(path):
                operations.append(Delete(path=path))
        for chunk in _chunks(operations) if operations else [[]]:
            await self._fenced(chunk)

    async def take_log_dir_events(self, names: Iterable[str]) -> frozenset[int]:
        """Return the brokers that lost a log folder, and delete their notifications."""
        paths = [f"{tree.LOG_DIR_EVENTS}/{name}" for name in names]
        found = await all_of(paths, self._zookeeper.get)
        for chunk in _chunks(Delete(path=path) for path in found):
            await self._fenced(chunk)
        failed: set[int] = set()
        for path, node in found.items():
            try:
                failed.add(tree.decode_log_dir_failure(path, node.data))
            except MalformedNode as fault:
                _LOG.error("ignored: %s", fault)
        return frozenset(failed)

    async def _fenced(self, operations: Sequence[Operation]) -> None:
        await self._zookeeper.transaction([self._fence, *operations])


def _assign(name: str, assignment: TopicAssignment) -> SetData:
    return SetData(path=tree.topic_path(name), data=tree.encode_topic(assignment))


def _write_state(partition: TopicPartition, state: LeaderAndIsr) -> list[Operation]:
    path, data = tree.state_path(*partition), tree.encode_state(state)
    if state.version == 0:
        return [Create(path=tree.partition_path(*partition)), Create(path=path, data=data)]
    return [SetData(path=path, data=data, version=state.version - 1)]


def _chunks(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    left = iter(operations)
    while chunk := list(islice(left, PER_TRANSACTION)):
        yield chunk
