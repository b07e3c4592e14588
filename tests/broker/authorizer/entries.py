"""Entries for tests, in short."""

from hypothesis import strategies as st

from wire.acls import (
    AccessControlEntry,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

TOPIC = ResourceType.TOPIC
PREFIXED = PatternType.PREFIXED


def allow(
    operation: Operation, principal: str = "User:alice", host: str = "*"
) -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, Permission.ALLOW)


def deny(
    operation: Operation, principal: str = "User:alice", host: str = "*"
) -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, Permission.DENY)


NAMES = st.text("ab", min_size=1, max_size=3)
PRINCIPALS = st.sampled_from(["User:alice", "User:bob", "User:*"])
HOSTS = st.sampled_from(["*", "10.0.0.1", "0:0:0:0:0:0:0:1"])
OPERATIONS = st.sampled_from([one for one in Operation if one is not Operation.ANY])
ENTRIES = st.builds(
    AccessControlEntry,
    PRINCIPALS,
    HOSTS,
    OPERATIONS,
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
PATTERNS = st.builds(
    ResourcePattern, st.sampled_from([TOPIC, ResourceType.GROUP]), NAMES | st.just("*")
) | st.builds(ResourcePattern, st.just(TOPIC), NAMES, st.just(PREFIXED))
BINDINGS = st.lists(st.builds(AclBinding, PATTERNS, ENTRIES), max_size=12)
