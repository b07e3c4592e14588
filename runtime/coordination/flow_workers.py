"""The workers of a flow, as the witness has them."""

import json

from runtime.coordination.witness import WitnessGarbled, WitnessPaths, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper
from runtime.untrusted_json import unpack_json


async def read_workers(
    zookeeper: ZooKeeper, paths: WitnessPaths, source: str, target: str
) -> list[WorkerInfo]:
    """Return the workers of a flow, the leading one first; none where nobody runs it.

    Raises ZooKeeperFault, WitnessGarbled.
    """
    node = await zookeeper.get(paths.worker(source, target))
    found = [] if node is None else [WorkerInfo.decode(node.data)]
    members = paths.workers(source, target)
    for name in await zookeeper.children(members) or ():
        node = await zookeeper.get(f"{members}/{name}")
        if node is None:
            continue
        try:
            info = WorkerInfo.decode(json.dumps(unpack_json(node.data)["info"]).encode())
        except (ValueError, KeyError, TypeError) as error:
            raise WitnessGarbled(f"{members}/{name}: no valid worker: {error}") from error
        if info not in found:
            found.append(info)
    return found
