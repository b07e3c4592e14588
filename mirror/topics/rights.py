"""The rights that a flow needs, and those of them that its user lacks (KIP-430 tells them)."""

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final

from runtime.rights.authorized import NOT_TOLD


class OperationBit(IntEnum):
    """AclOperation as it travels; in an answer its bit is set."""

    READ = 3
    WRITE = 4
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


SOURCE_RIGHTS: Final = (OperationBit.READ, OperationBit.DESCRIBE, OperationBit.DESCRIBE_CONFIGS)
TARGET_RIGHTS: Final = (
    OperationBit.READ,
    OperationBit.WRITE,
    OperationBit.ALTER,
    OperationBit.DESCRIBE,
    OperationBit.DESCRIBE_CONFIGS,
    OperationBit.ALTER_CONFIGS,
)


NEEDED: Final = frozenset({OperationBit.READ, OperationBit.WRITE, OperationBit.DESCRIBE})
"""Without one of these nothing of a topic is mirrored; without another its settings are not."""


def lacking(
    told: Mapping[str, int], needed: Collection[OperationBit]
) -> dict[OperationBit, list[str]]:
    """Return the topics by the right that is missing; where nothing is told, nothing is missing."""
    missing: dict[OperationBit, list[str]] = {}
    for topic, bits in sorted(told.items()):
        for operation in needed:
            if bits != NOT_TOLD and not bits & (1 << operation):
                missing.setdefault(operation, []).append(topic)
    return missing


def told_lacking(
    site: str, missing: Mapping[OperationBit, Collection[str]]
) -> dict[OperationBit, str]:
    """Return a line for each right that is missing."""
    return {
        operation: f"on {site} the right {operation.name} is missing for {', '.join(topics)}"
        for operation, topics in missing.items()
    }
