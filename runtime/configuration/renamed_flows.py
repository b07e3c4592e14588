"""Renames beside the other flows of a file: whose topic a name is, and whether it comes back. Pure.

A renamed topic goes one way. By a flow back its records would come home into another topic, and
from there go out again.
"""

from collections.abc import Iterator, Sequence

from runtime.configuration.flow_section import FlowConfig


def why_unfit(flow: FlowConfig, flows: Sequence[FlowConfig]) -> Iterator[tuple[str, str]]:
    """Yield each renamed topic of a flow with what is wrong with its name beside all flows."""
    for topic, name in flow.renames.to_target.items():
        if not flow.mirrors(topic):
            yield topic, f"{flow.name} mirrors no topic of this name: see `topics` and `names`"
            continue
        for other in flows:
            if (other.source, other.target) == (flow.target, flow.source):
                wrong = _why_not_back(other, topic, name)
            elif other.target == flow.target and other is not flow and other.brings(name):
                wrong = f"{other.name} brings a topic of the name {name!r} to {flow.target}, too"
            else:
                wrong = None
            if wrong is not None:
                yield topic, wrong


def _why_not_back(back: FlowConfig, topic: str, name: str) -> str | None:
    """Return what the flow back would bring of a renamed topic, or into it."""
    if back.mirrors(name):
        return (
            f"{back.name} would bring {name!r} back, and a flow with renamed topics goes one way:"
            f" leave {name!r} out of its `topics`"
        )
    other = back.names.on_source(topic)
    if other is not None and back.mirrors(other):
        return (
            f"{back.name} brings {other!r} into {topic!r}, whose records go out again as {name!r}:"
            f" leave {other!r} out of its `topics`"
        )
    return None
