"""`failover status`."""

import json

from failover.commands.running import show
from failover.view.status import (
    ShownNames,
    Status,
    read_status,
    status_document,
    status_lines,
)
from runtime.configuration.topic_sets import DEFAULT_SET
from runtime.configuration.witness_session import open_witness
from runtime.pair.opening import open_clusters, require_pair
from runtime.program.command import Options
from runtime.program.program import ExitStatus


async def status(options: Options) -> int:
    """Print roles, fences, flows and promotions."""
    coordination = options.configuration.coordination
    names = ShownNames(topic=options.topic, lists_all=options.all)
    by_set: dict[str, Status] = {}
    async with (
        open_witness(coordination) as zookeeper,
        open_clusters(options.configuration) as clusters,
    ):
        for name, of_set in options.configuration.by_set().items():
            seen = await require_pair(of_set, zookeeper, clusters)
            by_set[name] = await read_status(of_set, zookeeper, seen.known_active)
    documents = {name: status_document(found, names) for name, found in by_set.items()}
    if options.json:
        document = {"sets": documents} if len(documents) > 1 else documents[DEFAULT_SET]
        for line in json.dumps(document, indent=2).splitlines():
            show(line)
        return ExitStatus.DONE
    for name, found in by_set.items():
        if len(by_set) > 1:
            show(f"set      {name}")
        for line in status_lines(found, names):
            show(line)
    return ExitStatus.DONE
