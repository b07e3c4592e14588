"""Answers questions about rights from the entries at hand, and remembers its answers.

Every verdict is forgotten when an entry changes. Super users pass by all entries.
"""

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from broker.authorizer.acl_index import GARBLED, AclIndex, Entries
from broker.authorizer.verdict import Asker, address, is_allowed, is_allowed_somewhere
from wire.acls import CLUSTER_NAME, SUPPORTED, Operation, ResourcePattern, ResourceType, bits_of
from wire.values import frozen

_LOG = logging.getLogger(__name__)

VERDICTS_KEPT: Final = 20_000
LONGEST_KEPT_CHARS: Final = 300
"""A longer name, which no topic can have, is decided anew each time: it came from a stranger."""


@frozen
class AuthorizerSettings:
    """Kafka's `super.users` and `allow.everyone.if.no.acl.found`."""

    super_users: frozenset[str] = frozenset()
    allows_where_no_acl_is: bool = False


class Authorizer:
    """The rights of one cluster, as this broker knows them."""

    def __init__(self, settings: AuthorizerSettings) -> None:
        self._settings = settings
        self._index = AclIndex()
        self._remembered = lru_cache(maxsize=VERDICTS_KEPT)(self._decide)
        self.changes = 0
        """How often the entries have changed."""

    def replace_all(self, held: Mapping[ResourcePattern, Entries | None]) -> None:
        """Go by these entries and no others."""
        self._index.replace_all(held)
        self._forget()

    def put(self, resource: ResourcePattern, entries: Entries | None) -> None:
        """Go by these entries of one pattern from now on."""
        self._index.put(resource, entries)
        self._forget()

    def _forget(self) -> None:
        self._remembered.cache_clear()
        self.changes += 1

    def held(self) -> Mapping[ResourcePattern, Entries | None]:
        """Return all entries by pattern, GARBLED for those that cannot be read."""
        return self._index.all()

    def rights_of(self, principal: str, host: str) -> "Rights":
        """Return what this principal may do from this address, now and later."""
        if principal in self._settings.super_users:
            return EVERY_RIGHT
        return Rights(self, Asker(principal, address(host)))

    def allows(self, asker: Asker, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Answer one question."""
        if len(name) > LONGEST_KEPT_CHARS:
            return self._decide(asker, operation, kind, name)
        return self._remembered(asker, operation, kind, name)

    def allows_somewhere(self, asker: Asker, operation: Operation, kind: ResourceType) -> bool:
        """Say whether there may be a resource of this type with which it is allowed."""
        held = self._index.of_type(kind)
        if held is GARBLED:
            return False
        return is_allowed_somewhere(
            [(one.resource, one.entry) for one in held],
            asker,
            operation,
            where_none_speak=self._settings.allows_where_no_acl_is,
        )

    def _decide(self, asker: Asker, operation: Operation, kind: ResourceType, name: str) -> bool:
        entries = self._index.about(kind, name)
        is_let = entries is not GARBLED and is_allowed(
            entries, asker, operation, where_none_speak=self._settings.allows_where_no_acl_is
        )
        if not is_let:
            _LOG.debug(
                "%s from %s: denied %s of %s %r",
                asker.principal,
                asker.host,
                operation.name,
                kind.name,
                name[:LONGEST_KEPT_CHARS],
            )
        return is_let


class Rights:
    """The rights of one connection. They change as entries do."""

    __slots__ = ("_asker", "_authorizer")

    def __init__(self, authorizer: Authorizer | None, asker: Asker) -> None:
        self._authorizer = authorizer
        self._asker = asker

    @property
    def are_limited(self) -> bool:
        """Whether anything may be refused."""
        return self._authorizer is not None

    @property
    def changes(self) -> int:
        """How often they may have changed."""
        return 0 if self._authorizer is None else self._authorizer.changes

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Say whether this may be done with this resource."""
        return self._authorizer is None or self._authorizer.allows(
            self._asker, operation, kind, name
        )

    def may_cluster(self, operation: Operation) -> bool:
        """Say whether this may be done with the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_somewhere(self, operation: Operation, kind: ResourceType) -> bool:
        """Say whether there may be a resource of this type with which it may be done."""
        return self._authorizer is None or self._authorizer.allows_somewhere(
            self._asker, operation, kind
        )

    def told(self, kind: ResourceType, name: str) -> int:
        """Return the authorized operations on a resource as they are told (KIP-430)."""
        return bits_of(one for one in SUPPORTED[kind] if self.may(one, kind, name))


EVERY_RIGHT: Final = Rights(None, Asker("", ""))
"""Without an authorizer, of super users, and of brokers."""
