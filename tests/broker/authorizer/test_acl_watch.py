"""Every broker goes by the entries in ZooKeeper, and what is garbled there opens nothing."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.zookeeper.acl_nodes import AclFolder, acl_path, encode_acls
from broker.zookeeper.acl_store import KEPT_CHANGES, AclStore
from tests.broker.authorizer.acl_tree import AclTree, watching
from tests.broker.authorizer.entries import PREFIXED, TOPIC, allow, deny
from wire.acls import Operation, ResourcePattern, ResourceType

ORDERS = ResourcePattern(TOPIC, "orders")
ORD = ResourcePattern(TOPIC, "ord", PREFIXED)


async def prepared() -> AclTree:
    tree = AclTree()
    await AclStore(tree).prepare()  # type: ignore[arg-type]
    return tree


async def test_a_change_holds_here_at_once_and_elsewhere_when_zookeeper_tells_of_it() -> None:
    tree = await prepared()
    here, there = watching(tree), watching(tree)
    await here.load_all()
    await there.load_all()
    alice = there.authorizer.rights_of("User:alice", "10.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(there.run)
        for resource in (ORDERS, ORD):
            assert await here.change(resource, lambda _: frozenset({allow(Operation.READ)})) == (
                frozenset()
            )
            assert here.authorizer.rights_of("User:alice", "h").may(Operation.READ, TOPIC, "orders")
            await wait_all_tasks_blocked()
            assert alice.may(Operation.READ, TOPIC, "orders")
            await here.change(resource, lambda _: frozenset())
            await wait_all_tasks_blocked()
            assert not alice.may(Operation.READ, TOPIC, "orders")
            assert acl_path(resource) not in tree.nodes
        nursery.cancel_scope.cancel()


async def test_a_change_that_changes_nothing_tells_nobody() -> None:
    tree = await prepared()
    here = watching(tree)
    held = frozenset({allow(Operation.READ)})
    await here.change(ORDERS, lambda _: held)
    before = dict(tree.nodes)
    await here.change(ORDERS, lambda present: present | held)
    assert tree.nodes == before


@pytest.mark.parametrize(
    "garbled",
    [
        b"garbled",
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        encode_acls({allow(Operation.READ)}).replace(b"Read", b"Reed"),
        encode_acls({allow(Operation.READ)}).replace(b"Allow", b"Permit"),
        encode_acls({allow(Operation.READ)}).replace(b'"*"', b"7"),
        b'{"version":1,"acls":[7]}',
    ],
)
async def test_a_garbled_node_opens_nothing_and_is_named(
    garbled: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """One that cannot be read may hold a DENY."""
    tree = await prepared()
    tree.nodes[acl_path(ORDERS)] = (garbled, 0)
    tree.nodes[acl_path(ORD)] = (encode_acls({allow(Operation.ALL)}), 0)
    watch = watching(tree, allows_where_no_acl_is=True)
    await watch.load_all()
    alice = watch.authorizer.rights_of("User:alice", "10.0.0.1")
    assert not alice.may(Operation.READ, TOPIC, "orders")
    assert alice.may(Operation.READ, TOPIC, "ordinary")
    [record] = caplog.records
    assert acl_path(ORDERS) in record.getMessage()
    tree.nodes[acl_path(ORDERS)] = (encode_acls({allow(Operation.READ)}), 1)
    await watch.load(ORDERS)
    assert alice.may(Operation.READ, TOPIC, "orders")


async def test_a_folder_that_is_no_type_of_resource_is_named_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tree = await prepared()
    tree.nodes |= {
        "/kafka-acl/Kettle": (b"", 0),
        "/kafka-acl/Kettle/t": (encode_acls({allow(Operation.ALL)}), 0),
        acl_path(ORDERS): (b"", 0),
    }
    watch = watching(tree)
    await watch.load_all()
    assert not watch.held()
    assert [record.getMessage() for record in caplog.records] == [
        "ignored: /kafka-acl/Kettle is no type of resource"
    ]


@pytest.mark.parametrize("folder", AclFolder)
async def test_a_garbled_notification_has_everything_read_anew(
    folder: AclFolder, caplog: pytest.LogCaptureFixture
) -> None:
    tree = await prepared()
    watch = watching(tree)
    await watch.load_all()
    tree.nodes[acl_path(ORDERS)] = (encode_acls({allow(Operation.READ)}), 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        path = await tree.create(f"{folder.changes}/acl_changes_", b"garbled", sequence=True)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert watch.held() == {ORDERS: frozenset({allow(Operation.READ)})}
    assert path in caplog.text


async def test_what_was_tidied_away_unread_is_read_all_the_same(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    tree = await prepared()
    here, late = watching(tree), watching(tree)
    await late.load_all()
    await here.change(ORD, lambda _: frozenset({deny(Operation.WRITE)}))
    for number in range(KEPT_CHANGES + 101):
        held = frozenset({allow(Operation.READ, f"User:{number}")})
        await here.change(ORDERS, lambda _, held=held: held)  # type: ignore[misc]
    left = await tree.children(AclFolder.LITERAL.changes)
    assert left is not None
    assert KEPT_CHANGES <= len(left) <= KEPT_CHANGES + 100
    tree.fails = 1  # a first look that fails is made again
    await late._followed[AclFolder.LITERAL].catch_up(left)
    assert late.held() == here.held()
    assert not tree.fails


async def test_a_name_of_a_group_is_no_name_of_a_topic() -> None:
    tree = await prepared()
    watch = watching(tree)
    group = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "orders")
    await watch.change(group, lambda _: frozenset({allow(Operation.WRITE)}))
    assert "/kafka-acl/TransactionalId/orders" in tree.nodes
    alice = watch.authorizer.rights_of("User:alice", "10.0.0.1")
    assert alice.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "orders")
    assert not alice.may(Operation.WRITE, TOPIC, "orders")
