"""Rights at sites of any kind: given and looked at."""

from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.interop.sites import QUIET, Site

SUPER: Final = {"super.users": "User:ANONYMOUS"}
ZOOKEEPER_AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    **SUPER,
}


KRAFT_AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    **SUPER,
}


def give(site: Site, principal: str, kind: ResourceType, name: str, *what: AclOperation) -> None:
    """Let somebody do something."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    entries = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{principal}",
            "*",
            one,
            AclPermissionType.ALLOW,
        )
        for one in what
    ]
    for given in admin.create_acls(entries).values():
        given.result(60)


def take(site: Site, principal: str, name: str, kind: ResourceType = ResourceType.TOPIC) -> None:
    """Let somebody do nothing any more with a topic, or with something else."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    every = AclBindingFilter(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{principal}",
        "*",
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for taken in admin.delete_acls([every]).values():
        assert taken.result(20), f"{principal} had no right to {name}"


def held(site: Site, topic: str) -> set[tuple[str, AclOperation]]:
    """Return who may do what with a topic."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    anybody: Any = None  # the types do not know that null matches anything
    anything = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        anybody,
        anybody,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    found = admin.describe_acls(anything).result(60)
    return {(entry.principal, entry.operation) for entry in found}


def denied_creation(site: Site) -> set[str]:
    """Return the resources on which anybody is kept from making topics, notes included."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    anything: Any = None  # the types do not know that null matches anything
    every = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.CREATE,
        AclPermissionType.DENY,
    )
    return {entry.name for entry in admin.describe_acls(every).result(60)}
