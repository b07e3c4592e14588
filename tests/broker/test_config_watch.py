"""What others write into the tree of settings must not take a broker away."""

from typing import cast

import pytest
import trio

from broker.config import BrokerConfig
from broker.config_watch import ConfigWatch
from broker.dynamic_config import DynamicConfig
from broker.quotas.entity import DEFAULT, QuotaEntity
from broker.security.scram import credential_of
from broker.zookeeper import tree
from broker.zookeeper.store import ClusterStore
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from wire.net.security import Mechanism

FENCE = tree.encode_config({"write.fence.topics": "t"})


class Tree:
    """A tree in memory."""

    def __init__(self, **nodes: bytes) -> None:
        self.nodes = nodes

    async def get(self, path: str) -> ZNode | None:
        await trio.lowlevel.checkpoint()
        data = self.nodes.get(path)
        if data is None:
            return None
        return ZNode(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0)

    async def children(self, path: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [name[len(path) + 1 :] for name in self.nodes if name.rpartition("/")[0] == path]


def watching(there: Tree) -> ConfigWatch:
    store = ClusterStore(cast("ZooKeeper", there))
    config = BrokerConfig(broker_id=1, zookeeper_connect="localhost:1")
    return ConfigWatch(store, DynamicConfig(config))


async def test_a_node_that_only_holds_a_users_clients_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = watching(Tree(**{tree.user_config_path("alice"): b""}))
    await watch.load_all()
    assert watch.scram_users.names() == []
    assert not caplog.records


async def test_what_is_garbled_is_named_and_leaves_the_rest_as_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = {tree.topic_config_path("t"): tree.encode_config({"retention.ms": "-1"})}
    there = Tree(**{tree.DEFAULT_BROKER_CONFIG: FENCE, **kept})
    watch = watching(there)
    await watch.load_all()
    garbled = (
        tree.DEFAULT_BROKER_CONFIG,
        tree.broker_config_path(1),
        tree.topic_config_path("t"),
        tree.user_config_path("alice"),
        f"{tree.CONFIG_CHANGE_PREFIX}{0:010}",
    )
    there.nodes |= dict.fromkeys(garbled, b"garbled")
    await watch.load_all()
    await watch._notifications._follow([0])
    assert watch.dynamic.fence.topics == {"t"}
    assert watch.dynamic.log_config("t").retention_ms == -1
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(said) == len(garbled)
    assert all(any(path in line for line in said) for path in garbled)


async def test_a_setting_of_a_topic_that_is_none_here_is_left_out_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"remote.storage.enable": "true", "retention.ms": "-1", "segment.bytes": "few"}
    watch = watching(Tree(**{tree.topic_config_path("t"): tree.encode_config(settings)}))
    await watch.load_all()
    assert watch.dynamic.log_config("t").retention_ms == -1
    assert len(caplog.records) == 2


async def test_a_notification_that_is_tidied_away_before_it_is_read_is_not_passed_over() -> None:
    there = Tree()
    watch = watching(there)
    await watch.load_all()
    changes: list[int] = []
    watch.on_change = lambda: changes.append(1)
    change = tree.encode_config_change("topics/u")
    there.nodes |= {
        tree.topic_config_path("t"): tree.encode_config({"retention.ms": "-1"}),
        tree.topic_config_path("u"): tree.encode_config({"retention.ms": "7"}),
        f"{tree.CONFIG_CHANGE_PREFIX}{1:010}": change,
    }
    await watch._notifications.catch_up([f"config_change_{number:010}" for number in (0, 1)])
    assert watch.dynamic.log_config("t").retention_ms == -1
    assert watch.dynamic.log_config("u").retention_ms == 7
    assert changes == [1]
    there.nodes[tree.topic_config_path("u")] = tree.encode_config({"retention.ms": "8"})
    await watch._notifications.catch_up([f"config_change_{1:010}"])
    assert watch.dynamic.log_config("u").retention_ms == 7, "heard already"


async def test_a_notification_of_the_largest_number_leaves_no_broker_deaf() -> None:
    """Anybody who may write into the site's ZooKeeper can make one."""
    there = Tree()
    watch = watching(there)
    await watch.load_all()
    stray = f"{tree.CONFIG_CHANGE_PREFIX}{2**31 - 1:010}"
    there.nodes[stray] = tree.encode_config_change("topics/t")
    await watch._notifications.catch_up(await there.children(tree.CONFIG_CHANGES))
    for number, days in ((0, "7"), (1, "8")):
        there.nodes |= {
            tree.topic_config_path("t"): tree.encode_config({"retention.ms": days}),
            f"{tree.CONFIG_CHANGE_PREFIX}{number:010}": tree.encode_config_change("topics/t"),
        }
        await watch._notifications.catch_up(await there.children(tree.CONFIG_CHANGES))
        assert watch.dynamic.log_config("t").retention_ms == int(days)


async def test_quotas_of_users_and_clients_are_followed_beside_passwords() -> None:
    alice = {"SCRAM-SHA-256": str(credential_of(Mechanism.SCRAM_SHA_256, "x", b"salt"))}
    quota = {"producer_byte_rate": "1000"}
    there = Tree(
        **{
            "/config/users/alice": tree.encode_config({**alice, **quota}),
            "/config/users/alice/clients/c%20d": tree.encode_config(quota),
            "/config/users/<default>": tree.encode_config(quota),
            "/config/clients/<default>": tree.encode_config(quota),
            "/config/users/bob": b"garbled",
        }
    )
    watch = watching(there)
    await watch.load_all()
    assert watch.scram_users.names() == ["alice"]
    both = QuotaEntity(user="alice", client="c d")
    assert set(watch.quotas.table.all()) == {
        QuotaEntity(user="alice"),
        both,
        QuotaEntity(user=DEFAULT),
        QuotaEntity(client=DEFAULT),
    }
    there.nodes |= {
        "/config/users/alice": tree.encode_config(alice),
        f"{tree.CONFIG_CHANGE_PREFIX}{0:010}": tree.encode_config_change("users/alice"),
        f"{tree.CONFIG_CHANGE_PREFIX}{1:010}": tree.encode_config_change("users/.."),
    }
    del there.nodes["/config/users/alice/clients/c%20d"]
    path = f"{tree.CONFIG_CHANGE_PREFIX}{2:010}"
    there.nodes[path] = tree.encode_config_change("users/alice/clients/c%20d")
    await watch._notifications.catch_up(await there.children(tree.CONFIG_CHANGES))
    assert set(watch.quotas.table.all()) == {QuotaEntity(user=DEFAULT), QuotaEntity(client=DEFAULT)}
    assert watch.scram_users.names() == ["alice"]
