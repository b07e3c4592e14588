"""Entries lie in ZooKeeper as Apache Kafka's AclAuthorizer has them."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.zookeeper.acl_nodes import (
    acl_path,
    decode_acl_change,
    decode_acls,
    encode_acl_change,
    encode_acls,
    folder_of,
    why_no_node,
)
from broker.zookeeper.tree import MalformedNode
from tests.broker.authorizer.entries import ENTRIES, PATTERNS
from wire.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

BY_KAFKA = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
    b'"operation":"IdempotentWrite","host":"*"}]}'
)
"""As the sources of Kafka 3.9 write it (AclEntry.toJsonCompatibleMap)."""


def test_the_form_is_kafkas() -> None:
    entry = AccessControlEntry("User:alice", "*", Operation.IDEMPOTENT_WRITE, Permission.ALLOW)
    assert decode_acls("/kafka-acl/Cluster/kafka-cluster", BY_KAFKA) == {entry}
    assert json.loads(encode_acls({entry})) == json.loads(BY_KAFKA)
    of_id = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "t", PatternType.PREFIXED)
    assert acl_path(of_id) == "/kafka-acl-extended/prefixed/TransactionalId/t"
    assert json.loads(encode_acl_change(of_id)) == {
        "version": 1,
        "resourceType": "TRANSACTIONAL_ID",
        "name": "t",
        "patternType": "PREFIXED",
    }
    topic = ResourcePattern(ResourceType.TOPIC, "a:b")
    assert acl_path(topic) == "/kafka-acl/Topic/a:b"
    assert encode_acl_change(topic) == b"TOPIC:a:b"
    assert decode_acl_change("/kafka-acl-changes/acl_changes_1", b"Topic:a:b") == topic


@given(st.frozensets(ENTRIES, max_size=5), PATTERNS)
def test_what_is_written_is_read(
    entries: frozenset[AccessControlEntry], resource: ResourcePattern
) -> None:
    assert decode_acls("/p", encode_acls(entries)) == entries
    path = f"{folder_of(resource).changes}/acl_changes_0000000000"
    assert decode_acl_change(path, encode_acl_change(resource)) == resource


@given(st.binary(max_size=40))
def test_whatever_lies_there_is_read_or_refused(data: bytes) -> None:
    for path, decode in (
        ("/kafka-acl/Topic/t", decode_acls),
        ("/kafka-acl-changes/acl_changes_1", decode_acl_change),
        ("/kafka-acl-extended-changes/acl_changes_1", decode_acl_change),
    ):
        with suppress(MalformedNode):
            decode(path, data)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0", "a\n", "\ud800", "é" * 16_384])
def test_what_zookeeper_cannot_hold_is_no_name(name: str) -> None:
    assert why_no_node(name) is not None


@pytest.mark.parametrize("name", ["*", "a b", "...", "é", "x" * 32_767])
def test_other_names_are(name: str) -> None:
    assert why_no_node(name) is None


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\u0000"])
def test_a_notification_of_a_name_that_cannot_be_is_malformed(name: str) -> None:
    """ZooKeeper's client throws at such a path, which would end the broker."""
    prefixed = f'{{"resourceType":"TOPIC","patternType":"PREFIXED","name":"{name}"}}'
    with pytest.raises(MalformedNode, match="/kafka-acl-extended-changes/acl_changes_1"):
        decode_acl_change("/kafka-acl-extended-changes/acl_changes_1", prefixed.encode())
    literal = name.replace("\\u0000", "\0")
    with pytest.raises(MalformedNode, match="/kafka-acl-changes/acl_changes_1"):
        decode_acl_change("/kafka-acl-changes/acl_changes_1", f"TOPIC:{literal}".encode())
