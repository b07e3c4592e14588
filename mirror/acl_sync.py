"""Copies rights to topics from the source to the target, now and then."""

import logging
from collections.abc import Sequence
from typing import Final

import trio

from mirror.acls import TopicRight, rights_to_give
from mirror.fault_note import FaultNote
from mirror.flow_state import FlowState
from mirror.links import Links
from runtime.flow_section import AclSync
from wire.errors import ErrorCode
from wire.messages.create_acls import AclCreation, CreateAclsRequest
from wire.messages.describe_acls import DescribeAclsRequest
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused, UnsupportedApi
from wire.net.retries import code_of

_LOG = logging.getLogger(__name__)

INTERVAL_S: Final = 30.0
TOPIC: Final = 2
LITERAL: Final = 3
ANY: Final = 1
"""ResourceType, PatternType and the filters' wildcard, as they travel."""


class AclsOff(Exception):
    """The cluster keeps no rights: it has no authorizer."""


class AclWatch:
    """The task of one flow."""

    def __init__(self, flow: FlowState, links: Links) -> None:
        """Begin with nothing given."""
        self._flow = flow
        self._links = links
        self._told_off: str | None = None
        self.fault = FaultNote(f"{flow.config.name}: rights")
        """What keeps rights from being copied."""

    async def run(self) -> None:
        """Compare every interval."""
        while True:
            if self._flow.config.acls is not AclSync.OFF and self._flow.places:
                await self._compare()
            await trio.sleep(INTERVAL_S if self._flow.places else 1.0)

    async def _compare(self) -> None:
        try:
            await self.look()
        except AclsOff as off:
            self.fault.clear()
            if self._told_off != str(off):
                self._told_off = str(off)
                _LOG.info("%s: no rights are copied: %s", self._flow.config.name, off)
        except NetworkFault as fault:
            self.fault.note(str(fault))
        else:
            self.fault.clear()

    async def look(self) -> None:
        """Give what the target lacks, once. Raises AclsOff and NetworkFault."""
        config = self._flow.config
        names = config.names
        lacking = rights_to_give(
            await topic_rights(self._links.source_admin, config.source),
            await topic_rights(self._links.target_admin, config.target),
            mirrored={
                topic: names.on_target(topic)
                for topic, _ in self._flow.places
                if config.mirrors(topic)
            },
            sync=config.acls,
        )
        if lacking:
            await _give(self._links.target_admin, lacking)
            topics = ", ".join(sorted({right.topic for right in lacking}))
            _LOG.info("%s: gave %d rights to topics: %s", config.name, len(lacking), topics)


async def topic_rights(cluster: Cluster, site: str) -> set[TopicRight]:
    """Return the entries for single topics. Raises AclsOff, RequestRefused and NetworkFault."""
    try:
        answer = await cluster.request(
            DescribeAclsRequest(
                resource_type_filter=TOPIC,
                pattern_type_filter=LITERAL,
                operation=ANY,
                permission_type=ANY,
            )
        )
    except UnsupportedApi:
        raise AclsOff(f"the brokers of {site} know none") from None
    if answer.error_code == ErrorCode.SECURITY_DISABLED:
        raise AclsOff(f"{site} has no authorizer")
    if answer.error_code != ErrorCode.NONE:
        raise RequestRefused(f"{site}: to describe rights", code_of(answer.error_code))
    return {
        TopicRight(
            topic=resource.resource_name,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission=entry.permission_type,
        )
        for resource in answer.resources
        for entry in resource.acls
    }


async def _give(cluster: Cluster, rights: Sequence[TopicRight]) -> None:
    answer = await (await cluster.controller()).request(
        CreateAclsRequest(
            creations=tuple(
                AclCreation(
                    resource_type=TOPIC,
                    resource_name=right.topic,
                    resource_pattern_type=LITERAL,
                    principal=right.principal,
                    host=right.host,
                    operation=right.operation,
                    permission_type=right.permission,
                )
                for right in rights
            )
        )
    )
    for right, result in zip(rights, answer.results, strict=True):
        if result.error_code != ErrorCode.NONE:
            what = f"to give {right.principal} a right to {right.topic}"
            raise RequestRefused(what, code_of(result.error_code))
