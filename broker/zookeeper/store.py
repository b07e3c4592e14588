"""The cluster's tree as typed reads and writes: what any broker may do with it.

`controller_store` has the writes of the controller alone, fenced by its epoch.
"""

import base64
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

import trio

from broker.listeners import Listener
from broker.zookeeper import tree
from broker.zookeeper.at_once import all_of
from broker.zookeeper.tree import (
    BrokerRegistration,
    MalformedNode,
    ProducerIdBlock,
    TopicAssignment,
)
from runtime.coordination.zookeeper import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    SessionState,
    ZNode,
    ZooKeeper,
    ZooKeeperUnreachable,
)

_LOG = logging.getLogger(__name__)

PRODUCER_ID_BLOCK: Final = 1_000
NO_CHANGE: Final = -1
KEPT_CHANGES: Final = 100

Change: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]
"""From the present settings to those that shall be; what it raises leaves all as it was."""


class BrokerIdTaken(RuntimeError):
    """Another live broker is registered under this id; the message says where it listens."""


class ClusterStore:
    """One session's view of the tree. Faults of the session travel as `ZooKeeperFault`."""

    def __init__(self, zookeeper: ZooKeeper, inter_broker: str = "PLAINTEXT") -> None:
        """`inter_broker` names the listener by which brokers reach each other."""
        self.zookeeper = zookeeper
        self._inter_broker = inter_broker

    async def prepare(self) -> str:
        """Create the persistent folders and the cluster id where missing; return the id."""
        for path in tree.PERSISTENT:
            await self.zookeeper.ensure(path)
        fresh = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        try:
            await self.zookeeper.create(tree.CLUSTER_ID, tree.encode_cluster_id(fresh))
        except NodeExists:
            node = await self.zookeeper.get(tree.CLUSTER_ID)
            assert node is not None, "the cluster id is never deleted"
            return tree.decode_cluster_id(node.data)
        return fresh

    async def broker_secret(self, fresh: str) -> str:
        """Return what only brokers of this cluster know: the first one gives it a `fresh` one."""
        node = await self.zookeeper.get(tree.BROKERS_PROOF)
        if node is None:
            try:
                await self.zookeeper.create(
                    tree.BROKERS_PROOF, tree.encode_broker_secret(fresh), make_parents=True
                )
            except NodeExists:
                return await self.broker_secret(fresh)
            return fresh
        return tree.decode_broker_secret(node.data)

    async def controller_epoch(self) -> int:
        """Return the epoch of the newest controller, 0 before the first one."""
        await self.zookeeper.sync()
        node = await self.zookeeper.get(tree.CONTROLLER_EPOCH)
        return 0 if node is None else tree.decode_controller_epoch(node.data)

    async def register(
        self, broker_id: int, endpoints: Sequence[Listener], rack: str | None, *, now_ms: int
    ) -> BrokerRegistration:
        """Register this session's broker and return it with its epoch.

        The caller holds the listeners' ports, so a registration at the same address belongs to a
        dead predecessor whose session has not expired yet: it is replaced, and with it what else
        that session held. Raises BrokerIdTaken for an address elsewhere.
        """
        path = tree.broker_path(broker_id)
        data = tree.encode_broker(endpoints, rack, now_ms)
        present = await self.zookeeper.get(path)
        if present is None:
            await self._create_registration(path, data, broker_id)
        elif present.ephemeral_owner == self.zookeeper.session_id:
            await self._restore_registration(path, data, broker_id, present)
        else:
            try:
                other = self._decoded(broker_id, present)
            except MalformedNode as fault:
                raise BrokerIdTaken(f"broker.id {broker_id} is in use: {fault}") from fault
            if (other.host, other.port) not in {(one.host, one.port) for one in endpoints}:
                raise BrokerIdTaken(
                    f"broker.id {broker_id} is in use by a broker at {other.host}:{other.port}"
                )
            await self._replace_dead(path, data, present.version, present.ephemeral_owner)
        node = await self.zookeeper.get(path)
        if node is None:
            raise ZooKeeperUnreachable(f"{path} vanished while it was being registered")
        return self._decoded(broker_id, node)

    async def _restore_registration(
        self, path: str, data: bytes, broker_id: int, present: ZNode
    ) -> None:
        """Write our own registration again if it says something else than it is to say."""
        wanted = tree.decode_broker(broker_id, data, present.created_zxid, self._inter_broker)
        try:
            if self._decoded(broker_id, present) == wanted:
                return
        except MalformedNode as fault:
            _LOG.error("the registration is written again: %s", fault)
        try:
            await self.zookeeper.set(path, data, version=present.version)
        except (NoNode, BadVersion) as error:
            raise ZooKeeperUnreachable(f"{path} vanished while it was restored") from error

    def _decoded(self, broker_id: int, node: ZNode) -> BrokerRegistration:
        return tree.decode_broker(broker_id, node.data, node.created_zxid, self._inter_broker)

    async def _create_registration(self, path: str, data: bytes, broker_id: int) -> None:
        try:
            await self.zookeeper.create(path, data, ephemeral=True)
        except NodeExists as error:
            raise BrokerIdTaken(f"broker.id {broker_id} is in use by another broker") from error

    async def _replace_dead(self, path: str, data: bytes, version: int, owner: int) -> None:
        try:
            controller = await self.zookeeper.get(tree.CONTROLLER)
            if controller is not None and controller.ephemeral_owner == owner:
                await self.zookeeper.delete(tree.CONTROLLER, version=controller.version)
            await self.zookeeper.transaction(
                [Delete(path=path, version=version), Create(path=path, data=data, ephemeral=True)]
            )
        except (NoNode, BadVersion) as error:
            # Its session ended just now, and took its nodes along: whoever starts tries again.
            raise ZooKeeperUnreachable(f"{path} vanished while it was being replaced") from error

    async def unregister(self, broker_id: int) -> None:
        """Take the registration back, if it is this session's."""
        node = await self.zookeeper.get(tree.broker_path(broker_id))
        if node is not None and node.ephemeral_owner == self.zookeeper.session_id:
            await self.zookeeper.delete(tree.broker_path(broker_id), version=node.version)

    async def announce_log_dir_failure(self, broker_id: int) -> None:
        """Have the controller ask this broker which replicas it still has."""
        await self.zookeeper.create(
            tree.LOG_DIR_EVENT_PREFIX, tree.encode_log_dir_failure(broker_id), sequence=True
        )

    async def broker_ids(self) -> list[str]:
        """Return the ids of the registered brokers, as ZooKeeper names their nodes."""
        return await self.zookeeper.children(tree.BROKERS) or []

    async def brokers(self, ids: list[str]) -> dict[int, BrokerRegistration]:
        """Return the registrations that (still) exist and can be understood, by broker id."""
        found: dict[int, BrokerRegistration] = {}
        for name in ids:
            node = await self.zookeeper.get(f"{tree.BROKERS}/{name}")
            if node is None:
                continue
            try:
                broker_id = tree.decode_broker_id(name)
                found[broker_id] = self._decoded(broker_id, node)
            except MalformedNode as fault:
                _LOG.error("not counted as a live broker: %s", fault)
        return found

    async def controller(self) -> int | None:
        """Return the controller's broker id."""
        node = await self.zookeeper.get(tree.CONTROLLER)
        return None if node is None else tree.decode_controller(node.data)

    async def vacate_controller(self) -> None:
        """Give the controller's place back, if it is this session's."""
        node = await self.zookeeper.get(tree.CONTROLLER)
        if node is not None and node.ephemeral_owner == self.zookeeper.session_id:
            await self.zookeeper.delete(tree.CONTROLLER, version=node.version)

    async def topic_names(self) -> list[str]:
        """Return the names of all topics."""
        return await self.zookeeper.children(tree.TOPICS) or []

    async def topic(self, name: str) -> tuple[TopicAssignment, int] | None:
        """Return a topic's assignment and its node's version."""
        node = await self.zookeeper.get(tree.topic_path(name))
        return None if node is None else (tree.decode_topic(name, node.data), node.version)

    async def topic_config(self, topic: str) -> dict[str, str]:
        """Return the settings of a topic's own, none where it has no node."""
        return await self._config(tree.topic_config_path(topic))

    async def default_broker_config(self) -> dict[str, str]:
        """Return the dynamic settings of all brokers."""
        return await self._config(tree.DEFAULT_BROKER_CONFIG)

    async def broker_config(self, broker_id: int) -> dict[str, str]:
        """Return the dynamic settings of one broker."""
        return await self._config(tree.broker_config_path(broker_id))

    async def user_config(self, name: str) -> dict[str, str]:
        """Return the settings of a user: SCRAM credentials and quotas."""
        return await self._config(tree.user_config_path(name))

    async def _config(self, path: str) -> dict[str, str]:
        node = await self.zookeeper.get(path)
        return {} if node is None else tree.decode_config(path, node.data)

    async def change_topic_config(self, topic: str, change: Change) -> Mapping[str, str]:
        """Change a topic's settings, tell every broker, and return them as they are now."""
        changed = await self._change_config(tree.topic_config_path(topic), change)
        await self._announce(f"topics/{topic}")
        return changed

    async def change_default_broker_config(self, change: Change) -> Mapping[str, str]:
        """Change the settings of all brokers, tell them, and return them as they are now."""
        changed = await self._change_config(tree.DEFAULT_BROKER_CONFIG, change)
        await self._announce("brokers/<default>")
        return changed

    async def change_broker_config(self, broker_id: int, change: Change) -> Mapping[str, str]:
        """Change the settings of one broker, tell it, and return them as they are now."""
        changed = await self._change_config(tree.broker_config_path(broker_id), change)
        await self._announce(f"brokers/{broker_id}")
        return changed

    async def change_user_config(self, name: str, change: Change) -> Mapping[str, str]:
        """Change what is kept of a user, tell every broker, and return it as it is now."""
        changed = await self._change_config(tree.user_config_path(name), change)
        await self._announce(f"users/{tree.encode_user(name)}")
        return changed

    async def client_config(self, entity_path: str) -> dict[str, str]:
        """Return what is kept of a user or a client, named by its path below `/config`."""
        return await self._config(f"/config/{entity_path}")

    async def change_client_config(self, entity_path: str, change: Change) -> Mapping[str, str]:
        """Change what is kept of a user or a client, tell every broker, and return it."""
        changed = await self._change_config(f"/config/{entity_path}", change)
        await self._announce(entity_path)
        return changed

    async def client_config_paths(self) -> list[str]:
        """Return the paths below `/config` of all users, clients, and clients of users."""
        found: list[str] = []
        for folder in ("users", "clients", "ips"):
            names = await self.zookeeper.children(f"/config/{folder}") or ()
            found += (f"{folder}/{name}" for name in names)
        users = [path for path in found if path.startswith("users/")]
        of_users = await all_of(
            users, lambda path: self.zookeeper.children(f"/config/{path}/clients")
        )
        for path, clients in of_users.items():
            found += (f"{path}/clients/{name}" for name in clients)
        return found

    async def _change_config(self, path: str, change: Change) -> Mapping[str, str]:
        """Read, change, write; once more when somebody else wrote in between."""
        while True:
            node = await self.zookeeper.get(path)
            present = {} if node is None else tree.decode_config(path, node.data)
            changed = change(present)
            data = tree.encode_config(changed)
            try:
                if node is None:
                    await self.zookeeper.create(path, data, make_parents=True)
                else:
                    await self.zookeeper.set(path, data, version=node.version)
            except (BadVersion, NodeExists, NoNode):
                continue
            return changed

    async def _announce(self, entity_path: str) -> None:
        written = await self.zookeeper.create(
            tree.CONFIG_CHANGE_PREFIX, tree.encode_config_change(entity_path), sequence=True
        )
        newest = change_number(written)
        for name in await self.zookeeper.children(tree.CONFIG_CHANGES) or ():
            if 0 <= change_number(name) <= newest - KEPT_CHANGES:
                with_path = f"{tree.CONFIG_CHANGES}/{name}"
                try:
                    await self.zookeeper.delete(with_path)
                except NoNode:
                    continue  # another broker tidied up at the same time

    async def changed_entity(self, number: int) -> str | None:
        """Return what a notification names, None when it has been tidied away."""
        path = f"{tree.CONFIG_CHANGE_PREFIX}{number:010d}"
        node = await self.zookeeper.get(path)
        return None if node is None else tree.decode_config_change(path, node.data)

    async def last_producer_id(self) -> int:
        """Return the last producer id that any broker has taken, -1 for none."""
        return _last_producer_id(await self.zookeeper.get(tree.PRODUCER_IDS))

    async def allocate_producer_ids(self, broker_id: int, above: int = -1) -> ProducerIdBlock:
        """Take the next thousand producer ids above this one; no other broker will get them."""
        while True:
            node = await self.zookeeper.get(tree.PRODUCER_IDS)
            first = max(_last_producer_id(node), above) + 1
            block = ProducerIdBlock(
                broker_id=broker_id, first=first, last=first + PRODUCER_ID_BLOCK - 1
            )
            try:
                if node is None:
                    await self.zookeeper.create(tree.PRODUCER_IDS, tree.encode_producer_ids(block))
                else:
                    await self.zookeeper.set(
                        tree.PRODUCER_IDS, tree.encode_producer_ids(block), version=node.version
                    )
            except (BadVersion, NodeExists):
                continue  # another broker took that block
            return block

    def watch_brokers(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the registered brokers' ids: now, and after each change."""
        return self.zookeeper.watch_children(tree.BROKERS)

    def watch_broker(
        self, name: str
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[ZNode | None]]:
        """Open a channel of one broker's registration: now, and after each change."""
        return self.zookeeper.watch_data(f"{tree.BROKERS}/{name}")

    def watch_topics(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the topics' names: now, and after each change."""
        return self.zookeeper.watch_children(tree.TOPICS)

    def watch_deletions(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the topics to be deleted: now, and after each change."""
        return self.zookeeper.watch_children(tree.DELETE_TOPICS)

    def watch_log_dir_events(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the notices of failed log folders: now, and after each change."""
        return self.zookeeper.watch_children(tree.LOG_DIR_EVENTS)

    def watch_config_changes(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the notices of changed settings: now, and after each change."""
        return self.zookeeper.watch_children(tree.CONFIG_CHANGES)

    def watch_controller(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[ZNode | None]]:
        """Open a channel of the controller's node; `tree.decode_controller` reads it."""
        return self.zookeeper.watch_data(tree.CONTROLLER)

    def watch_session(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[SessionState]]:
        """Open a channel of the session's state: now, and after each change."""
        return self.zookeeper.watch_state()


def change_number(name: str) -> int:
    """Return the number of a notification, NO_CHANGE for what is none."""
    number = name.rpartition("_")[2]
    is_one = number.isascii() and number.isdigit() and len(number) <= 10
    return int(number) if is_one else NO_CHANGE


def _last_producer_id(node: ZNode | None) -> int:
    """Return the last id that a node says was taken; Apache Kafka makes it before it takes any.

    Raises MalformedNode.
    """
    return tree.decode_producer_ids(node.data).last if node is not None and node.data else -1
