"""What a broker held before its log folder: a new one does not have those logs.

A disk that was replaced, a folder that was deleted, and a mount that is missing all look like the
first start of a broker. The cluster knows better: its topics name the broker among their replicas.
"""

import logging
from pathlib import Path

from broker.config import BrokerConfig
from broker.log.checkpoints import (
    LOGS_BEFORE,
    META_PROPERTIES,
    LogBefore,
    LogsBefore,
    write_logs_before,
)
from broker.log.results import StorageError
from broker.zookeeper.at_once import all_of
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import MalformedNode, TopicAssignment

_LOG = logging.getLogger(__name__)


async def note_held_before(config: BrokerConfig, store: ClusterStore) -> None:
    """Note in each new log folder which partitions the cluster says that this broker holds.

    This comes before the folder has an owner: a start that is killed in between does it again.
    Raises ZooKeeperFault, and StorageError for a folder that cannot be written to.
    """
    new = [path for path in config.log_dirs if _is_new(path)]
    before = await _before(config.broker_id, store) if new else LogsBefore()
    if before == LogsBefore():
        return
    for path in new:
        _LOG.warning(
            "%s is new, and broker %s holds %s partitions, and maybe some of %s topics whose"
            " assignment cannot be read: it leads none whose log is not here",
            path,
            config.broker_id,
            len(before.logs),
            len(before.topics),
        )
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_logs_before(path / LOGS_BEFORE, before)
        except OSError as error:
            raise StorageError.from_os(path / LOGS_BEFORE, error) from error


def _is_new(folder: Path) -> bool:
    """Tell whether a folder has no owner yet.

    One that is no folder, or whose disk tells nothing, is offline: the log manager says why.
    """
    try:
        is_there = folder.exists()
        return not is_there or (folder.is_dir() and not (folder / META_PROPERTIES).exists())
    except OSError:
        return False


async def _before(broker_id: int, store: ClusterStore) -> LogsBefore:
    unread: set[str] = set()

    async def read(name: str) -> TopicAssignment | None:
        try:
            found = await store.topic(name)
        except MalformedNode as fault:
            _LOG.error("topic %s: any of its logs may have been here: %s", name, fault)
            unread.add(name)
            return None
        return None if found is None else found[0]

    topics = await all_of(await store.topic_names(), read)
    held = frozenset(
        LogBefore(topic.topic_id.bytes, partition)
        for topic in topics.values()
        for partition, replicas in topic.replicas.items()
        if broker_id in replicas
    )
    return LogsBefore(held, frozenset(unread))
