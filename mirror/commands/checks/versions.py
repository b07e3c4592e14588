"""`mirror check`: the brokers' versions, and what a flow does without those that they lack."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from runtime.configuration.flow_section import AclSync, FlowConfig, Policy
from wire.errors import ErrorCode
from wire.messages import (
    create_acls,
    create_partitions,
    create_topics,
    delete_topics,
    describe_acls,
    describe_configs,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)
from wire.messages.table import name_of
from wire.net.cluster import Cluster
from wire.net.connecting import WHO_WE_ARE
from wire.net.errors import RequestRefused
from wire.net.retries import code_of
from wire.schema import Request
from wire.values import frozen

METADATA_VERSION: Final = "metadata.version"
LEVELS: Final = (
    *((1, "3.0"), (2, "3.1"), (3, "3.2"), (4, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6")),
    *((15, "3.7"), (20, "3.8"), (21, "3.9"), (22, "4.0")),
)
"""The first feature level of each release (org.apache.kafka.server.common.MetadataVersion)."""
NEWEST_LEVEL: Final = 25
"""The last level of the last release above; what is higher is of a later one."""
FETCHES: Final = (
    *((4, "0.11"), (5, "1.0"), (7, "1.1"), (8, "2.0"), (10, "2.1"), (11, "2.3"), (12, "2.7")),
    *((13, "3.1"), (15, "3.5"), (16, "3.7"), (17, "3.9")),
)
"""The release that a version of Fetch came with."""


@frozen
class Spoken:
    """The versions of one broker by API key, and its cluster's feature level, if it has one."""

    node: int
    versions: Mapping[int, range]
    level: int | None = None

    def speaks(self, request: type[Request[Any]], version: int) -> bool:
        """Whether a request may be sent in this version or a newer one that we know."""
        theirs, ours = self.versions.get(request.API_KEY, range(0)), request.VERSIONS
        common = range(max(theirs.start, ours.start), min(theirs.stop, ours.stop))
        return bool(common) and common.stop > version

    def __str__(self) -> str:
        """Return it in words; a version of Fetch tells the release, at least."""
        most = self.versions.get(fetch.FetchRequest.API_KEY, range(0)).stop - 1
        words = f"Fetch up to version {most}, as Kafka {_last(FETCHES, most)}"
        if self.level is None:
            return words
        later = " or later" if self.level > NEWEST_LEVEL else ""
        return f"{words}; {METADATA_VERSION} {self.level}, Kafka {_last(LEVELS, self.level)}{later}"


@frozen
class NeededVersion:
    """A needed version, and what a flow does without it; empty if the flow cannot run then."""

    request: type[Request[Any]]
    version: int = 0
    without: str = ""
    is_needed: Callable[[FlowConfig], bool] = lambda _: True


def _copies_rights(flow: FlowConfig) -> bool:
    return flow.acls is not AclSync.OFF


def _may_delete(flow: FlowConfig) -> bool:
    return flow.delete_gone_after_ms is not None or Policy.RESTART in flow.policies.values()


ONE_BY_ONE: Final = "groups are asked for one by one, which costs time with many"
NO_RIGHTS: Final = "rights are not copied"
NO_ZSTD: Final = "batches compressed with zstd cannot pass"

OF_SOURCE: Final = (
    NeededVersion(request=metadata.MetadataRequest, version=1),
    NeededVersion(request=fetch.FetchRequest, version=4),
    NeededVersion(request=list_offsets.ListOffsetsRequest, version=1),
    NeededVersion(request=describe_configs.DescribeConfigsRequest),
    NeededVersion(request=offset_fetch.OffsetFetchRequest, version=1),
    NeededVersion(request=list_groups.ListGroupsRequest),
    NeededVersion(
        request=fetch.FetchRequest,
        version=7,
        without="no fetch sessions: each fetch names all partitions, which costs time with many",
    ),
    NeededVersion(request=fetch.FetchRequest, version=10, without=NO_ZSTD),
    NeededVersion(
        request=fetch.FetchRequest,
        version=11,
        without="`client_rack` does nothing: leaders alone are read",
        is_needed=lambda flow: flow.client_rack is not None,
    ),
    NeededVersion(
        request=metadata.MetadataRequest,
        version=8,
        without="missing rights are not told here, but by partitions that are `not authorised`",
    ),
    NeededVersion(
        request=metadata.MetadataRequest,
        version=10,
        without="topics have no ids: one made again is known only by offsets that go back",
    ),
    NeededVersion(request=offset_fetch.OffsetFetchRequest, version=8, without=ONE_BY_ONE),
    NeededVersion(
        request=describe_acls.DescribeAclsRequest, without=NO_RIGHTS, is_needed=_copies_rights
    ),
)
OF_TARGET: Final = (
    NeededVersion(request=metadata.MetadataRequest, version=1),
    NeededVersion(request=produce.ProduceRequest, version=3),
    NeededVersion(request=fetch.FetchRequest, version=4),
    NeededVersion(request=list_offsets.ListOffsetsRequest, version=1),
    NeededVersion(request=init_producer_id.InitProducerIdRequest),
    NeededVersion(request=create_topics.CreateTopicsRequest),
    NeededVersion(request=describe_configs.DescribeConfigsRequest),
    NeededVersion(request=offset_commit.OffsetCommitRequest, version=2),
    NeededVersion(request=offset_fetch.OffsetFetchRequest, version=1),
    NeededVersion(request=produce.ProduceRequest, version=7, without=NO_ZSTD),
    NeededVersion(
        request=create_partitions.CreatePartitionsRequest,
        without="topics do not grow: new partitions wait until somebody adds them",
    ),
    NeededVersion(
        request=incremental_alter_configs.IncrementalAlterConfigsRequest,
        without="topics keep the settings that they were made with",
    ),
    NeededVersion(
        request=delete_topics.DeleteTopicsRequest,
        without="nothing can be deleted, so nothing begins anew",
        is_needed=_may_delete,
    ),
    NeededVersion(request=offset_fetch.OffsetFetchRequest, version=8, without=ONE_BY_ONE),
    NeededVersion(
        request=create_acls.CreateAclsRequest, without=NO_RIGHTS, is_needed=_copies_rights
    ),
)


async def ask_versions(cluster: Cluster, nodes: Iterable[int]) -> list[Spoken]:
    """Ask each broker; raises NetworkFault if one does not answer."""
    found: list[Spoken] = []
    for node in sorted(nodes):
        # Apache Kafka refuses a client that does not name its software (KIP-511).
        answer = await cluster.request(WHO_WE_ARE, node=node)
        if answer.error_code != ErrorCode.NONE:
            raise RequestRefused(f"versions of broker {node}", code_of(answer.error_code))
        levels = {one.name: one.max_version_level for one in answer.finalized_features}
        found.append(
            Spoken(
                node=node,
                versions={
                    one.api_key: range(one.min_version, one.max_version + 1)
                    for one in answer.api_keys
                },
                level=levels.get(METADATA_VERSION),
            )
        )
    return found


def told_versions(name: str, spoken: Iterable[Spoken]) -> list[str]:
    """Return a line for the brokers of a cluster that speak alike, and one if not all do."""
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for one in spoken:
        alike[str(one)].append(one.node)
    lines = [f"{name}: brokers {_numbers(nodes)}: {words}" for words, nodes in alike.items()]
    if len(alike) > 1:
        lines.append(f"warning: {name}: its brokers differ: what the oldest lacks, all lack")
    return lines


def lacking_versions(
    name: str, spoken: Iterable[Spoken], needs: Iterable[NeededVersion], flow: FlowConfig
) -> tuple[list[str], list[str]]:
    """Return the lacks that keep a flow from running here, and those that it can do without."""
    brokers = list(spoken)
    fatal: list[str] = []
    warnings: list[str] = []
    for need in needs:
        without = [one.node for one in brokers if not one.speaks(need.request, need.version)]
        if not without or not need.is_needed(flow):
            continue
        api = f"{name_of(need.request.API_KEY)} version {need.version}"
        told = f"{name}: brokers {_numbers(without)} lack {api}"
        if need.without:
            warnings.append(f"warning: {told}: {need.without}")
        else:
            fatal.append(told)
    return fatal, warnings


def _numbers(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, nodes))


def _last(steps: Iterable[tuple[int, str]], number: int) -> str:
    """Return the word of the highest step that is reached."""
    return max(((least, word) for least, word in steps if least <= number), default=(0, "0.10"))[1]
