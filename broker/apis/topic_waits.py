"""Waiting until this broker's view of a topic is as wanted: admin requests answer only then."""

from collections.abc import Callable

from broker.context import Node
from broker.metadata_cache import TopicView


async def wait_topic(
    node: Node, name: str, is_as_wanted: Callable[[TopicView | None], bool]
) -> None:
    """Wait until the condition holds; the caller owns the timeout."""
    while not is_as_wanted(node.metadata.topic(name)):
        await node.metadata.wait_changed()
