"""What AlterClientQuotas and DescribeClientQuotas have in common: whom they name. Pure.

The checks are those of Kafka's ClientQuotaControlManager.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from broker.quotas.client_quotas import LONGEST_NAME_CHARS
from broker.quotas.entity import CLIENT, DEFAULT, IP, USER, Default, QuotaEntity


class BadQuota(ValueError):
    """An entity, a filter or a value that cannot be; the message says why."""


class EntityPart(Protocol):
    """A part of an entity as it travels; a null name is the default."""

    @property
    def entity_type(self) -> str: ...
    @property
    def entity_name(self) -> str | None: ...


def entity_of(parts: Iterable[EntityPart]) -> QuotaEntity:
    """Return who is meant. Raises BadQuota."""
    named: dict[str, str | Default] = {}
    for part in parts:
        if part.entity_type in named:
            raise BadQuota(f"Duplicate entity type {part.entity_type!r:.80}")
        named[part.entity_type] = DEFAULT if part.entity_name is None else _name(part.entity_name)
    check_types(named)
    if not named:
        raise BadQuota("Invalid empty client quota entity")
    return QuotaEntity(user=named.get(USER), client=named.get(CLIENT), ip=named.get(IP))


def _name(name: str) -> str:
    if not name:
        raise BadQuota("Empty entity name not supported")
    if len(name) > LONGEST_NAME_CHARS:
        raise BadQuota(f"An entity name is longer than {LONGEST_NAME_CHARS} characters")
    return name


def check_types(named: Iterable[str]) -> None:
    """Raise BadQuota for types that no entity has, or none has together."""
    types = set(named)
    for unknown in sorted(types - {USER, CLIENT, IP}):
        raise BadQuota(f"Unhandled client quota entity type: {unknown!r:.80}")
    if IP in types and len(types) > 1:
        raise BadQuota("A quota of an address is of nothing else")


def travelling(parts: Mapping[str, str | Default]) -> list[tuple[str, str | None]]:
    """Return the parts of an entity as they travel: type, and name or null."""
    return [(kind, None if isinstance(name, Default) else name) for kind, name in parts.items()]
