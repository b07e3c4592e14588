"""Entries in few words."""

import re
from typing import Final

from runtime.configuration.flow_section import PatternSet
from wire.acls import ResourceType
from wire.net.rights import ALLOW, LITERAL, READ, Right

ANYTHING: Final = PatternSet(include=(re.compile(".*"),), exclude=())


def right(
    operation: int = READ,
    permission: int = ALLOW,
    *,
    name: str = "t",
    principal: str = "User:a",
    pattern: int = LITERAL,
    kind: int = ResourceType.TOPIC,
    host: str = "*",
) -> Right:
    return Right(
        name=name,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
        pattern=pattern,
        kind=kind,
    )
