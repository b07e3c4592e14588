"""What the mirror's leader runs, as a node in the witness, and how a file differs from it.

A promotion moves the topics of its own file, and an audit compares those. A file that names fewer
topics than the mirror's leaves topics behind without a word: so the two are compared.
"""

import json
from collections.abc import Mapping

from runtime.configuration.flow_section import FlowConfig, PatternSet
from runtime.coordination.witness import RunningFlow, WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import NodeExists, NoNode, ZooKeeper


def describe_running(flow: FlowConfig) -> RunningFlow:
    """Return the settings that decide what is mirrored and how it is called, by their keys."""
    policies = {f"on_{cause}": policy.value for cause, policy in flow.policies.items()}
    return RunningFlow(
        settings={
            **_patterns("topics", flow.topics),
            **_patterns("groups", flow.groups),
            **policies,
            "names": f"prefixed by {flow.source}{flow.separator}"
            if flow.is_prefixed
            else "identical",
            **_renames(flow),
            "active_active": str(flow.is_active_active).lower(),
            "isolation": "read_uncommitted" if flow.reads_uncommitted else "read_committed",
        }
    )


def _renames(flow: FlowConfig) -> Mapping[str, str]:
    """Return the given names; nothing where there are none, as of mirrors that know of none."""
    given = flow.renames.to_target
    return {"rename": json.dumps(given, sort_keys=True)} if given else {}


def _patterns(key: str, patterns: PatternSet) -> Mapping[str, str]:
    """Return both lists; their order decides nothing."""
    return {
        f"{key}.include": json.dumps(sorted(one.pattern for one in patterns.include)),
        f"{key}.exclude": json.dumps(sorted(one.pattern for one in patterns.exclude)),
    }


def differences(running: RunningFlow, flow: FlowConfig) -> tuple[str, ...]:
    """Return each setting that the file has otherwise than the mirror: key, mirror's, file's."""
    own = describe_running(flow).settings
    return tuple(
        f"{key}: the mirror runs {running.settings.get(key, 'nothing')}, the file has"
        f" {own.get(key, 'nothing')}"
        for key in sorted(running.settings.keys() | own.keys())
        if running.settings.get(key) != own.get(key)
    )


async def find_differences(
    zookeeper: ZooKeeper, paths: WitnessPaths, flow: FlowConfig
) -> tuple[str, ...]:
    """Return how the file's flow differs from what the mirror ran last; nothing if it never ran.

    Raises WitnessGarbled naming the node, and what reading the witness raises.
    """
    path = paths.running(flow.source, flow.target)
    node = await zookeeper.get(path)
    if node is None:
        return ()
    try:
        running = RunningFlow.decode(node.data)
    except WitnessGarbled as fault:
        raise WitnessGarbled(f"{path}: {fault}") from fault
    return differences(running, flow)


def explain(flow: FlowConfig, found: tuple[str, ...]) -> str:
    """Return one line that names the differences and what to do about them."""
    return (
        f"flow {flow.name}: this file differs from what the mirror runs: {'; '.join(found)};"
        " use the mirror's file here, or give the mirror this one and restart `mirror run`"
    )


async def publish_running(zookeeper: ZooKeeper, paths: WitnessPaths, flow: FlowConfig) -> None:
    """Write what is run, over what was run before; raises what writing to the witness raises."""
    path, data = paths.running(flow.source, flow.target), describe_running(flow).encode()
    while True:
        node = await zookeeper.get(path)
        if node is not None and node.data == data:
            return
        try:
            if node is None:
                await zookeeper.create(path, data, make_parents=True)
            else:
                await zookeeper.set(path, data)
        except (NodeExists, NoNode):
            continue
