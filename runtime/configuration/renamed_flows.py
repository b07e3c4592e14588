"""Renames beside the other flows of a file: whose topic a name is, and where its records come back.

    dc1   orders ───────► orders-eu   dc2       rename: {orders: orders-eu}
          orders ◄─────── orders-eu             rename: {orders-eu: orders}

Where a flow back is configured, it turns each name round. By any other name records would come
home into a topic that they are not from, and from there go out again. Pure.
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
                wrong = _why_not_back(flow, other, topic, name)
            elif other.target == flow.target and other is not flow and other.brings(name):
                wrong = f"{other.name} brings a topic of the name {name!r} to {flow.target}, too"
            else:
                wrong = None
            if wrong is not None:
                yield topic, wrong


def _why_not_back(flow: FlowConfig, back: FlowConfig, topic: str, name: str) -> str | None:
    """Return what would come of a renamed topic by the flow back that is not that topic again."""
    if back.mirrors(name):
        if flow.is_prefixed or back.is_prefixed:
            return (
                f"{back.name} mirrors {name!r} as well, and with `names: prefixed` both directions"
                f" run at once: leave {name!r} out of its `topics`"
            )
        home = back.names.on_target(name)
        if home != topic:
            return (
                f"{back.name} would bring {name!r} back as {home!r}: give it"
                f" `rename: {{{name}: {topic}}}`, or leave {name!r} out of its `topics`"
            )
        return None
    other = back.names.on_source(topic)
    if other is not None and back.mirrors(other):
        return (
            f"{back.name} brings {other!r} into {topic!r}, whose records go out again as {name!r}:"
            f" give it `rename: {{{name}: {topic}}}`, or leave {other!r} out of its `topics`"
        )
    return None
