"""Rights over the wire: who produces, fetches and sees topics, and who changes entries."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from broker.security.principal_mapping import parse_rules
from broker.zookeeper.acl_nodes import acl_path
from tests.broker.authorizer.acl_tree import AclTree, watching
from tests.broker.authorizer.entries import PREFIXED, TOPIC, allow, deny
from tests.broker.rig import TOPIC_ID, Client, Rig, batch, fetch, outcome, produce, serving
from tests.broker.security.listening import METADATA, connected, secured, security
from tests.doubles.certificates import Certificates
from wire.acls import (
    CLUSTER_NAME,
    SUPPORTED,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    bits_of,
)
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreation, CreateAclsRequest
from wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from wire.messages.describe_acls import DescribeAclsRequest
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.fetch import ReplicaState
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.net.errors import NetworkFault

ANONYMOUS = "User:ANONYMOUS"
T = ResourcePattern(TOPIC, "t")
CLUSTER = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@asynccontextmanager
async def guarded(
    folder: Path, *, everyone: bool = False, **settings: Any
) -> AsyncIterator[tuple[Rig, Client]]:
    """Serve with an authorizer; the client is anonymous, and has no right yet."""
    async with serving(folder, **settings) as rig:
        acls = watching(AclTree(), allows_where_no_acl_is=everyone)
        rig.node.acls = acls
        async with rig.connect() as client:
            yield rig, client


def give(rig: Rig, resource: ResourcePattern, *entries: AccessControlEntry) -> None:
    assert rig.node.acls is not None
    rig.node.acls.authorizer.put(resource, frozenset(entries))


async def test_a_producer_needs_write_of_its_topic(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (rig, client):
        for acks in (-1, 1):
            answer = await client.ask(produce(batch(b"a"), acks=acks))
            assert outcome(answer) == (FAILED, -1)
        give(rig, T, allow(Operation.WRITE, ANONYMOUS))
        assert outcome(await client.ask(produce(batch(b"a")))) == (ErrorCode.NONE, 0)
        give(rig, T, allow(Operation.WRITE, ANONYMOUS), deny(Operation.WRITE, "User:*"))
        assert outcome(await client.ask(produce(batch(b"b")))) == (FAILED, -1)


async def test_a_producer_without_the_right_that_wants_no_answer_is_cut_off(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as (_, client):
        await client.send(produce(batch(b"a"), acks=0))
        await client.wait_closed()


async def test_a_topic_that_does_not_exist_is_refused_in_the_same_words(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, client):
        asked = produce(batch(b"a"))
        [topic] = asked.topic_data
        answer = await client.ask(replace(asked, topic_data=(replace(topic, name="none"),)))
        assert outcome(answer) == (FAILED, -1)


async def test_a_transaction_needs_write_of_its_id(tmp_path: Path) -> None:
    resource = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "x")
    async with guarded(tmp_path) as (rig, client):
        give(rig, T, allow(Operation.WRITE, ANONYMOUS))
        in_transaction = batch(
            b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        asked = replace(produce(in_transaction), transactional_id="x")
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert outcome(await client.ask(asked)) == (error, -1)
        plain = replace(produce(batch(b"a")), transactional_id="x")
        assert outcome(await client.ask(plain)) == (ErrorCode.NONE, 0)
        give(rig, resource, allow(Operation.WRITE, ANONYMOUS))
        rig.node.verifier.error = ErrorCode.NONE
        assert outcome(await client.ask(asked)) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("version", [4, 12, 13, 17])
async def test_a_consumer_needs_read_of_its_topic(tmp_path: Path, version: int) -> None:
    async with guarded(tmp_path) as (rig, client):
        answer = await client.ask(fetch(0), version)
        (data,) = answer.responses[0].partitions
        assert (data.error_code, data.high_watermark) == (FAILED, -1)
        assert data.current_leader.leader_id == -1, "nobody is told who leads it"
        give(rig, T, allow(Operation.READ, ANONYMOUS))
        answer = await client.ask(fetch(0), version)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE


async def test_a_session_ends_where_the_right_is_taken_and_goes_on_where_it_is_given(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as (rig, client):
        give(rig, T, allow(Operation.READ, ANONYMOUS), allow(Operation.WRITE, ANONYMOUS))
        begun = await client.ask(fetch(0, session_epoch=0))
        going_on = replace(fetch(0), topics=(), session_id=begun.session_id, session_epoch=1)
        give(rig, T, allow(Operation.WRITE, ANONYMOUS))
        await client.ask(produce(batch(b"a")))
        answer = await client.ask(going_on)
        assert answer.responses[0].partitions[0].error_code == FAILED
        give(rig, T, allow(Operation.READ, ANONYMOUS))
        answer = await client.ask(replace(going_on, session_epoch=2))
        (data,) = answer.responses[0].partitions
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 1)


async def test_a_follower_needs_cluster_action(tmp_path: Path) -> None:
    asked = fetch(0, replica_state=ReplicaState(replica_id=1))
    async with guarded(tmp_path) as (rig, client):
        give(rig, T, allow(Operation.ALL, ANONYMOUS))
        answer = await client.ask(asked)
        assert answer.responses[0].partitions[0].error_code == FAILED
        give(rig, CLUSTER, allow(Operation.CLUSTER_ACTION, ANONYMOUS))
        answer = await client.ask(asked)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE


def named(answer: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12])
async def test_who_may_not_describe_a_topic_does_not_see_it_among_all(
    tmp_path: Path, version: int
) -> None:
    every = MetadataRequest(topics=() if version == 0 else None)
    async with guarded(tmp_path) as (rig, client):
        assert named(await client.ask(every, version)) == []
        asked = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
        answer = await client.ask(asked, version)
        assert named(answer) == [("t", FAILED)]
        assert answer.topics[0].partitions == ()
        give(rig, T, allow(Operation.WRITE, ANONYMOUS))
        assert named(await client.ask(every, version)) == [("t", ErrorCode.NONE)]
        assert named(await client.ask(asked, version)) == [("t", ErrorCode.NONE)]


async def test_a_topic_is_not_known_by_its_id_to_who_may_not_describe_it(tmp_path: Path) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(topic_id=TOPIC_ID, name=None),))
    async with guarded(tmp_path) as (rig, client):
        answer = await client.ask(asked)
        assert named(answer) == [(None, FAILED)]
        assert named(await client.ask(asked, 11)) == [("", FAILED)]
        give(rig, T, allow(Operation.DESCRIBE, ANONYMOUS))
        assert named(await client.ask(asked)) == [("t", ErrorCode.NONE)]


async def test_a_topic_is_created_by_asking_only_for_who_may_create_it(tmp_path: Path) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="new"),))
    new = ResourcePattern(TOPIC, "n", PREFIXED)
    async with guarded(tmp_path) as (rig, client):
        give(rig, new, allow(Operation.DESCRIBE, ANONYMOUS))
        assert named(await client.ask(asked)) == [("new", FAILED)]
        not_created = replace(asked, allow_auto_topic_creation=False)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert named(await client.ask(not_created)) == [("new", unknown)]
        for resource in (new, CLUSTER):
            give(rig, new, allow(Operation.DESCRIBE, ANONYMOUS))
            give(
                rig,
                resource,
                allow(Operation.DESCRIBE, ANONYMOUS),
                allow(Operation.CREATE, ANONYMOUS),
            )
            assert named(await client.ask(asked)) == [("new", ErrorCode.LEADER_NOT_AVAILABLE)]


async def test_authorized_operations_are_those_of_whoever_asks(tmp_path: Path) -> None:
    asked = MetadataRequest(
        topics=None,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    of_cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    async with guarded(tmp_path) as (rig, client):
        give(rig, T, allow(Operation.READ, ANONYMOUS))
        answer = await client.ask(asked, 10)
        [topic] = answer.topics
        assert topic.topic_authorized_operations == bits_of({Operation.READ, Operation.DESCRIBE})
        assert answer.cluster_authorized_operations == 0
        assert (await client.ask(of_cluster)).cluster_authorized_operations == 0
        give(rig, CLUSTER, allow(Operation.ALTER, ANONYMOUS))
        may = bits_of({Operation.ALTER, Operation.DESCRIBE})
        assert (await client.ask(asked, 10)).cluster_authorized_operations == may
        assert (await client.ask(of_cluster)).cluster_authorized_operations == may
        async with rig.connect_broker() as broker:
            answer = await broker.ask(asked, 10)
            all_of_topics = bits_of(SUPPORTED[TOPIC])
            assert answer.topics[0].topic_authorized_operations == all_of_topics


async def test_where_no_entry_is_everyone_may_if_the_setting_says_so(tmp_path: Path) -> None:
    async with guarded(tmp_path, everyone=True) as (rig, client):
        assert outcome(await client.ask(produce(batch(b"a")))) == (ErrorCode.NONE, 0)
        give(rig, T, allow(Operation.WRITE, "User:bob"))
        assert outcome(await client.ask(produce(batch(b"a")))) == (FAILED, -1)


async def test_brokers_and_super_users_need_no_entries(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (rig, _), rig.connect_broker() as broker:
        give(rig, T, deny(Operation.ALL, "User:*"))
        assert outcome(await broker.ask(produce(batch(b"a")))) == (ErrorCode.NONE, 0)
    async with guarded(tmp_path / "s", super_users=(ANONYMOUS,)) as (rig, _):
        give(rig, T, deny(Operation.ALL, "User:*"))
        async with rig.connect() as client:
            assert outcome(await client.ask(produce(batch(b"a")))) == (ErrorCode.NONE, 0)


def creation(**fields: Any) -> AclCreation:
    """Let alice read the topic, but for what is given."""
    usual: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "t",
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**{**usual, **fields})


def asking(**fields: Any) -> DeleteAclsFilter:
    usual = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
    return DeleteAclsFilter(**{**usual, "permission_type": 1, **fields})


def describing(**fields: Any) -> DescribeAclsRequest:
    usual = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
    return DescribeAclsRequest(**{**usual, "permission_type": 1, **fields})


@asynccontextmanager
async def administered(folder: Path) -> AsyncIterator[tuple[Rig, Client]]:
    """Let the client change entries."""
    async with guarded(folder) as (rig, client):
        give(rig, CLUSTER, allow(Operation.ALTER, ANONYMOUS), allow(Operation.READ, ANONYMOUS))
        yield rig, client


async def create(client: Client, *creations: AclCreation) -> list[int]:
    answer = await client.ask(CreateAclsRequest(creations=creations))
    return [result.error_code for result in answer.results]


async def described(client: Client, **fields: Any) -> list[tuple[str, int, int]]:
    """Return (name, pattern, number of entries) of what a filter finds."""
    answer = await client.ask(describing(**fields))
    assert answer.error_code == ErrorCode.NONE
    return [
        (one.resource_name, one.pattern_type, len(one.acls))
        for one in answer.resources
        if one.resource_type != ResourceType.CLUSTER
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_entries_are_created_described_and_deleted(tmp_path: Path, version: int) -> None:
    async with administered(tmp_path) as (_, client):
        made = CreateAclsRequest(
            creations=(
                creation(),
                creation(),  # there already, so it is created, too
                creation(operation=Operation.WRITE, permission_type=Permission.DENY),
                creation(resource_name="or", resource_pattern_type=PatternType.PREFIXED),
                creation(resource_name="*", principal="User:*"),
            )
        )
        answer = await client.ask(made, version)
        assert [result.error_code for result in answer.results] == [ErrorCode.NONE] * 5
        assert await described(client) == [("*", 3, 1), ("or", 4, 1), ("t", 3, 2)]
        match = {"resource_type_filter": 2, "pattern_type_filter": PatternType.MATCH}
        found = await described(client, **match, resource_name_filter="orders")
        assert found == [("*", 3, 1), ("or", 4, 1)]
        found = await described(client, permission_type=Permission.DENY)
        assert found == [("t", 3, 1)]
        found = await described(client, principal_filter="User:bob")
        assert found == []
        deleted = await client.ask(
            DeleteAclsRequest(
                filters=(
                    asking(operation=Operation.WRITE),
                    asking(pattern_type_filter=PatternType.PREFIXED, resource_name_filter="or"),
                    asking(principal_filter="User:nobody"),
                )
            ),
            version,
        )
        removed = [
            [(one.resource_name, one.operation) for one in result.matching_acls]
            for result in deleted.filter_results
        ]
        assert removed == [[("t", Operation.WRITE)], [("or", Operation.READ)], []]
        assert await described(client) == [("*", 3, 1), ("t", 3, 1)]


async def test_what_version_0_creates_and_finds_is_literal(tmp_path: Path) -> None:
    async with administered(tmp_path) as (rig, client):
        give(rig, ResourcePattern(TOPIC, "t", PREFIXED), allow(Operation.READ))
        assert await create(client, creation()) == [ErrorCode.NONE]
        literal = {"pattern_type_filter": PatternType.LITERAL, "resource_name_filter": "t"}
        answer = await client.ask(describing(**literal), 0)
        assert [one.resource_name for one in answer.resources] == ["t"]
        await client.ask(DeleteAclsRequest(filters=(asking(**literal),)), 0)
        assert await described(client) == [("t", PatternType.PREFIXED, 1)]


BAD = {
    "no type": creation(resource_type=0),
    "any type": creation(resource_type=ResourceType.ANY),
    "a type of the future": creation(resource_type=99),
    "any pattern": creation(resource_pattern_type=PatternType.ANY),
    "a pattern of filters": creation(resource_pattern_type=PatternType.MATCH),
    "no pattern": creation(resource_pattern_type=77),
    "any operation": creation(operation=Operation.ANY),
    "no operation": creation(operation=0),
    "an operation of the future": creation(operation=100),
    "any permission": creation(permission_type=Permission.ANY),
    "no permission": creation(permission_type=9),
    "no name": creation(resource_name=""),
    "a name that ZooKeeper cannot hold": creation(resource_name="a/b"),
    "a name that is too long": creation(resource_name="é" * 16_384),
    "another cluster": creation(resource_type=ResourceType.CLUSTER, resource_name="mine"),
    "no principal": creation(principal=""),
    "a principal without a type": creation(principal="alice"),
    "a principal without a name": creation(principal="User:"),
    "no host": creation(host=""),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_an_entry_that_cannot_be_is_refused_alone(tmp_path: Path, bad: AclCreation) -> None:
    async with administered(tmp_path) as (_, client):
        good = creation()
        assert await create(client, bad, good) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
        assert await described(client) == [("t", PatternType.LITERAL, 1)]


@pytest.mark.parametrize(
    "bad",
    [
        {"resource_type_filter": 99},
        {"resource_type_filter": 0},
        {"pattern_type_filter": 99},
        {"operation": 99},
        {"permission_type": 0},
    ],
    ids=str,
)
async def test_a_filter_that_cannot_be_is_refused(tmp_path: Path, bad: dict[str, int]) -> None:
    async with administered(tmp_path) as (_, client):
        answer = await client.ask(describing(**bad))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        deleted = await client.ask(DeleteAclsRequest(filters=(asking(**bad),)))
        assert deleted.filter_results[0].error_code == ErrorCode.INVALID_REQUEST


async def test_without_the_right_nobody_reads_or_changes_entries(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, client):
        failed = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await create(client, creation(), creation()) == [failed, failed]
        assert (await client.ask(describing())).error_code == failed
        deleted = await client.ask(DeleteAclsRequest(filters=(asking(),)))
        assert deleted.filter_results[0].error_code == failed


async def test_without_an_authorizer_there_are_no_entries(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig, rig.connect() as client:
        off = ErrorCode.SECURITY_DISABLED
        assert await create(client, creation()) == [off]
        assert (await client.ask(describing())).error_code == off
        deleted = await client.ask(DeleteAclsRequest(filters=(asking(),)))
        assert deleted.filter_results[0].error_code == off


async def test_a_garbled_node_is_neither_overwritten_nor_removed(tmp_path: Path) -> None:
    async with administered(tmp_path) as (rig, client):
        assert rig.node.acls is not None
        tree = cast("AclTree", rig.node.acls._store._zookeeper)
        tree.nodes[acl_path(T)] = (b"garbled", 0)
        answer = await client.ask(CreateAclsRequest(creations=(creation(),)))
        [result] = answer.results
        assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert acl_path(T) in str(result.error_message)
        give(rig, T, allow(Operation.READ))  # this broker has not read the node yet
        deleted = await client.ask(DeleteAclsRequest(filters=(asking(resource_name_filter="t"),)))
        [match] = deleted.filter_results[0].matching_acls
        assert match.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert tree.nodes[acl_path(T)] == (b"garbled", 0)


@pytest.mark.parametrize(
    ("listener", "rules", "principal"),
    [
        ("PLAINTEXT", "DEFAULT", ANONYMOUS),
        ("SASL_PLAINTEXT", "DEFAULT", "User:alice"),
        ("SASL_SSL", "DEFAULT", "User:alice"),
        ("SSL", "DEFAULT", "User:CN=client"),
        ("SSL", "RULE:^CN=(.*)$/$1/U,DEFAULT", "User:CLIENT"),
    ],
)
async def test_rights_go_to_who_the_listener_says_it_is(
    tmp_path: Path, certificates: Certificates, listener: str, rules: str, principal: str
) -> None:
    rules_of_tls = {"ssl_principal_mapping_rules": parse_rules(rules)}
    async with secured(tmp_path, certificates, **rules_of_tls) as rig:
        rig.node.acls = watching(AclTree())
        async with connected(rig, listener, security(certificates, listener)) as connection:
            assert outcome(await connection.request(produce(batch(b"a")))) == (FAILED, -1)
            give(rig, T, allow(Operation.WRITE, principal, host="127.0.0.1"))
            answer = await connection.request(produce(batch(b"a")))
            assert outcome(answer) == (ErrorCode.NONE, 0)


async def test_a_certificate_that_no_rule_fits_is_not_let_in(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    rules = parse_rules("RULE:^CN=broker$/broker/")
    async with secured(tmp_path, certificates, ssl_principal_mapping_rules=rules) as rig:
        with pytest.raises(NetworkFault):
            async with connected(rig, "SSL", security(certificates, "SSL")) as connection:
                await connection.request(METADATA)
        assert rig.node.metrics.failed_tls_handshakes == 1
    assert "no rule of ssl.principal.mapping.rules fits 'CN=client'" in caplog.text
