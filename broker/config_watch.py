"""Follows the settings in ZooKeeper, so that a change holds on every broker at once."""

import logging
from collections.abc import Callable, Iterable

from broker.dynamic_config import DynamicConfig
from broker.log.config import InvalidConfig
from broker.quotas.client_quotas import ClientQuotas
from broker.quotas.entity import QuotaEntity, entity_at
from broker.security.credentials import ScramUsers
from broker.zookeeper import tree
from broker.zookeeper.at_once import all_of
from broker.zookeeper.notifications import Notifications
from broker.zookeeper.store import Change, ClusterStore

_LOG = logging.getLogger(__name__)


class ConfigWatch:
    """Brings `dynamic` up to what ZooKeeper holds; `on_change` is called after each change."""

    def __init__(self, store: ClusterStore, dynamic: DynamicConfig) -> None:
        self.store = store
        self.dynamic = dynamic
        self.scram_users = ScramUsers()
        self.quotas = ClientQuotas()
        self._notifications = Notifications(self._apply, self.load_all, self._changed)
        self.on_change: Callable[[], None] = lambda: None

    async def load_all(self) -> None:
        """Read every setting. Raises ZooKeeperFault."""
        listing = await self.store.zookeeper.children(tree.CONFIG_CHANGES) or ()
        await self._load_brokers()
        await self.load_topics(await self.store.zookeeper.children(tree.TOPIC_CONFIGS) or [])
        paths = {*await self.store.client_config_paths()}
        paths |= {entity.path for entity in self.quotas.table.all()}  # some may be gone
        paths |= {QuotaEntity(user=name).path for name in self.scram_users.names()}
        await all_of(paths, self._load_client)
        self._notifications.cover(listing)
        self.on_change()

    async def run(self) -> None:
        """Follow the notifications until cancelled."""
        async with self.store.watch_config_changes() as listings:
            async for names in listings:
                await self._notifications.catch_up(names or ())

    def _changed(self) -> None:
        self.on_change()

    async def _apply(self, number: int) -> bool:
        """Follow one notification; False when it has been tidied away."""
        try:
            entity = await self.store.changed_entity(number)
        except tree.MalformedNode as fault:
            _LOG.error("ignored: %s", fault)
            return True
        if entity is not None:
            await self._load(entity)
        return entity is not None

    async def _load(self, entity: str) -> None:
        kind, _, name = entity.partition("/")
        if kind == "topics":
            await self.load_topic(name)
        elif kind == "brokers":
            await self._load_brokers()
        elif kind in {"users", "clients", "ips"}:
            await self._load_client(entity)

    async def _load_client(self, path: str) -> None:
        """Read what is kept of a user or a client, at a path below `/config`.

        A garbled node lets nobody in, and changes no quota that was known before.
        """
        entity = entity_at(path)
        if entity is None:
            return
        user = entity.user if entity.client is None else None  # with a client it has no password
        try:
            config = await self.store.client_config(path)
        except tree.MalformedNode as fault:
            _LOG.error("lets nobody in: %s" if isinstance(user, str) else "ignored: %s", fault)
            config = {}
        else:
            self.quotas.table.put(entity, config)
        if isinstance(user, str):
            self.scram_users.set_user(user, config)

    async def change_quotas(self, entity: QuotaEntity, change: Change) -> None:
        """Change quotas, here and by ZooKeeper everywhere. Raises ZooKeeperFault."""
        self.quotas.table.put(entity, await self.store.change_client_config(entity.path, change))

    async def load_topics(self, topics: Iterable[str]) -> None:
        """Read several topics' settings, as `load_topic` does."""
        await all_of(topics, self.load_topic)

    async def load_topic(self, topic: str) -> None:
        """Read one topic's settings. Raises ZooKeeperFault.

        A setting that is none here, or cannot be, is left out alone: without the others records
        would go that are to be kept. A garbled node changes nothing of what was known before.
        """
        try:
            config = await self.store.topic_config(topic)
        except tree.MalformedNode as fault:
            _LOG.error("ignored: %s", fault)
            return
        while True:
            try:
                self.dynamic.set_topic(topic, config)
            except InvalidConfig as error:
                _LOG.error("%s: ignored: %s", tree.topic_config_path(topic), error)
                if config.pop(error.key, None) is None:
                    config = {}
            else:
                return

    async def _load_brokers(self) -> None:
        await self._load_default_broker()
        try:
            self.dynamic.set_broker(await self.store.broker_config(self.dynamic.broker_id))
        except (InvalidConfig, tree.MalformedNode) as error:
            path = tree.broker_config_path(self.dynamic.broker_id)
            _LOG.error("%s: ignored: %s", path, error)

    async def _load_default_broker(self) -> None:
        try:
            self.dynamic.set_default_broker(await self.store.default_broker_config())
        except (InvalidConfig, tree.MalformedNode) as error:
            _LOG.error("%s: ignored: %s", tree.DEFAULT_BROKER_CONFIG, error)
        else:
            fence = self.dynamic.fence
            fenced = sorted(fence.topics) + [f"/{one.pattern}/" for one in fence.patterns.include]
            if fenced:
                _LOG.info("writes are fenced off for %s", ", ".join(fenced))
