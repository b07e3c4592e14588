"""`mirror acls`: the commands that give our programs the rights that they need, and no others."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mirror.commands.orders import flow_named
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import ClusterConfig, Configuration, FlowConfig
from runtime.pair import evidence
from runtime.rights.needed import By, ClusterGrant, InternalTopics, grants
from wire.acls import Operation, PatternType, ResourceType
from wire.net.security import Sasl

_KINDS: Final[Mapping[ResourceType, str]] = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
}


class NoPrincipal(Exception):
    """A cluster's login does not say who the user is; the message says what to give."""


def acls(
    configuration: Configuration,
    name: str | None,
    *,
    program: By | None,
    principal: str | None,
    with_orders: bool,
    as_json: bool,
) -> Iterator[str]:
    """Yield the lines for one flow or all, one program or all. Raises NoPrincipal, OrderFailed."""
    flows = configuration.flows if name is None else (flow_named(configuration, name),)
    programs = By if program is None else (program,)
    wanted = needed(configuration, flows, programs, with_orders=with_orders)
    if as_json:
        yield from _as_json(configuration, wanted, principal).splitlines()
    else:
        yield from _as_commands(configuration, wanted, principal)


def needed(
    configuration: Configuration,
    flows: Iterable[FlowConfig],
    programs: Iterable[By],
    *,
    with_orders: bool = False,
) -> list[ClusterGrant]:
    """Return what these programs need for these flows, each entry once."""
    merged: dict[tuple[object, ...], ClusterGrant] = {}
    chosen = tuple(programs)
    for flow in flows:
        for grant in grants(flow, chosen, internal_topics(flow), with_orders=with_orders):
            merged[grant.of] = grant.with_more(merged.get(grant.of))
    order = list(configuration.clusters)
    return sorted(merged.values(), key=lambda one: (order.index(one.cluster), one.program.value))


def internal_topics(flow: FlowConfig) -> InternalTopics:
    """Return the names of a flow's internal topics."""
    return InternalTopics(map=map_topic_name(flow.source), evidence=evidence.TOPIC)


def principal_of(cluster: ClusterConfig, given: str | None) -> str:
    """Return whom the rights are for; raises NoPrincipal."""
    if given is not None:
        return given if ":" in given else f"User:{given}"
    sasl = cluster.security.sasl
    if isinstance(sasl, Sasl):
        return f"User:{sasl.username}"
    raise NoPrincipal(
        f"clusters.{cluster.name}: its login names no user; name who is meant with --principal"
    )


def _as_commands(
    configuration: Configuration, wanted: Iterable[ClusterGrant], principal: str | None
) -> Iterator[str]:
    """Yield a line of `kafka-acls.sh` for each grant, with what it is for before it."""
    head: tuple[str, By] | None = None
    for grant in wanted:
        cluster = configuration.clusters[grant.cluster]
        if head != (grant.cluster, grant.program):
            head = grant.cluster, grant.program
            yield f"# {grant.program.value} on {grant.cluster}"
        if grant.named.widened is not None:
            yield f"# {grant.named.widened!r} is neither name nor prefix, so this is for all:"
        host, port = cluster.bootstrap[0]
        words = [
            *("kafka-acls.sh", "--bootstrap-server", f"{host}:{port}", "--add"),
            *("--allow-principal", principal_of(cluster, principal)),
            *(word for one in grant.operations for word in ("--operation", _word(one))),
            *_resource(grant),
        ]
        yield f"{shlex.join(words)}  # {', '.join(grant.reasons)}"


def _as_json(
    configuration: Configuration, wanted: Iterable[ClusterGrant], principal: str | None
) -> str:
    """Return the same as a list of entries by Kafka's names."""
    entries = [
        {
            "cluster": grant.cluster,
            "program": grant.program.value,
            "principal": principal_of(configuration.clusters[grant.cluster], principal),
            "resource_type": grant.kind.name,
            "name": grant.named.name,
            "pattern_type": grant.named.pattern.name,
            "operations": [one.name for one in grant.operations],
            "for": list(grant.reasons),
        }
        for grant in wanted
    ]
    return json.dumps(entries, indent=2)


def _word(operation: Operation) -> str:
    """Return the name as `kafka-acls.sh` has it: DescribeConfigs."""
    return operation.name.title().replace("_", "")


def _resource(grant: ClusterGrant) -> list[str]:
    if grant.kind is ResourceType.CLUSTER:
        return ["--cluster"]
    words = [_KINDS[grant.kind], grant.named.name]
    if grant.named.pattern is PatternType.PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return words
