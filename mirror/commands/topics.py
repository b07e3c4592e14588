"""`mirror topics`: the topics that a flow mirrors, and why the others are left out."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import trio

from mirror.commands.check import CheckFailed
from mirror.commands.orders import flow_named
from mirror.topics.choice import Choice, choices
from runtime.configuration.config import Configuration, FlowConfig
from runtime.program.page import Part
from runtime.program.table import Table
from wire.net import NetworkFault, open_cluster

TIMEOUT_S: Final = 20.0
HEAD: Final = ("TOPIC", "PARTITIONS", "VERDICT")
LEFT: Final = frozenset({"TOPIC", "VERDICT"})


async def topics(
    configuration: Configuration, name: str | None, *, as_json: bool
) -> Iterator[Part]:
    """Return the page for one flow or all; raises CheckFailed and OrderFailed."""
    flows = configuration.flows if name is None else (flow_named(configuration, name),)
    found = [(flow, await _choices(configuration, flow)) for flow in flows]
    if as_json:
        return iter([json.dumps([_as_json(flow, chosen) for flow, chosen in found])])
    return chain.from_iterable(_page(flow, chosen) for flow, chosen in found)


async def _choices(configuration: Configuration, flow: FlowConfig) -> list[Choice]:
    source = configuration.clusters[flow.source]
    try:
        with trio.fail_after(TIMEOUT_S):
            async with open_cluster(
                source.bootstrap,
                client_id=flow.client_id,
                name=source.name,
                security=source.security,
            ) as cluster:
                return choices(flow, await cluster.metadata(refresh=True))
    except NetworkFault as fault:
        raise CheckFailed(f"flow {flow.name}: source {fault}") from fault
    except trio.TooSlowError as fault:
        late = f"{source.name}: no answer within {TIMEOUT_S:g} s"
        raise CheckFailed(f"flow {flow.name}: source {late}") from fault


def _as_json(flow: FlowConfig, chosen: Sequence[Choice]) -> dict[str, object]:
    return {
        "flow": flow.name,
        "topics": [
            {
                "topic": one.topic,
                "partitions": one.partition_count,
                "is_mirrored": one.left_out is None,
                "left_out": one.left_out,
                "target_topic": one.target_topic if one.left_out is None else None,
            }
            for one in chosen
        ],
    }


def _page(flow: FlowConfig, chosen: Sequence[Choice]) -> Iterator[Part]:
    count = sum(one.left_out is None for one in chosen)
    yield f"flow {flow.name}: {count} of {len(chosen)} topics are mirrored"
    rows = [(one.topic, str(one.partition_count), _verdict(one)) for one in chosen]
    yield Table(head=HEAD, rows=rows, left=LEFT, indent="  ")


def _verdict(one: Choice) -> str:
    if one.left_out is not None:
        return f"left out: {one.left_out}"
    return "mirrored" if one.target_topic == one.topic else f"mirrored as {one.target_topic}"
