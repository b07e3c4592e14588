"""The first look of a flow: which partitions begin by the flow's `start`, durable before any does.

Only those that were there then do. A topic that is made later, or that the patterns take in later,
and a partition that a topic gets later begin at their first record: their records came while the
flow ran, and one that is written before discovery sees the topic must not be skipped. Nothing but
the map says which is which, so it is written here, by the worker that leads and before any worker
has a share: first what is due, then that the flow has begun. A worker that ends between them leaves
a flow that has not begun, and the next one looks anew.

A flow back that waits for promotions begins when its source has become active, and the source has
what came from the other site by then. So `start` says nothing of it once the other direction has
begun: it carries all that is its source's own.
"""

import logging
from collections.abc import Iterable
from typing import Final

from mirror.map.map_log import MapLog, MapRecord
from mirror.start.begins import has_begun
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.map_records import flow_begun, start_due
from offset_translation.map_state import MapState
from runtime.configuration.flow_section import FlowConfig
from wire.net.metadata import TopicView

_LOG = logging.getLogger(__name__)

FOLLOWS: Final = "the other direction has begun before: `start` says nothing of this one"


async def look_first(
    config: FlowConfig,
    topics: Iterable[TopicView],
    reverse: ReverseFlow,
    map_log: MapLog,
    now_ms: int,
) -> None:
    """Write into the map what begins by `start`, once; raises NetworkFault."""
    if has_begun(map_log.state, config):
        return
    is_back = follows(config, reverse.arrived, is_all=not reverse.unbelieved.name_producers)
    due = first_due(config, topics, follows=is_back)
    await map_log.write_many(due)
    await map_log.write(lambda: [flow_begun(map_log.registry, config.topic_set, now_ms)])
    if due:
        _LOG.info(
            "%s: begins: %d partitions by `start: %s`", config.name, len(due), config.start.text
        )
    elif config.start.leaves_records and is_back:
        _LOG.info("%s: begins: %s", config.name, FOLLOWS)


def follows(config: FlowConfig, arrived: MapState, *, is_all: bool) -> bool:
    """Whether a flow carries back what a promotion has moved, as the other direction has begun.

    `arrived` is that direction's map, and `is_all` says that all of it is believed: records that
    are not may be that mirror's all the same.
    """
    return config.heeds_promotions and (has_begun(arrived, config) or not is_all)


def first_due(config: FlowConfig, topics: Iterable[TopicView], *, follows: bool) -> list[MapRecord]:
    """Return the records of the partitions that begin by `start`: of all that are there."""
    if follows or not config.start.leaves_records:
        return []
    return [
        start_due(topic.name, index, topic.topic_id)
        for topic in topics
        for index in sorted(topic.partitions)
    ]
