"""Settings that hold on a topic, whoever set them: what the target does to records by itself.

Only what is set on a topic itself travels. A broker's default that differs makes the target stamp
records anew, delete them earlier, or refuse them, and no setting of a topic says so.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from mirror.clusters.admin import GrowTopic, TopicAction
from mirror.clusters.links import Links
from runtime.configuration.config import FlowConfig
from wire.errors import ErrorCode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net.cluster import Cluster

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
UNLIMITED: Final = -1
NAMED_TOPICS: Final = 5
MINUTE_MS: Final = 60_000

STAMPS: Final = "message.timestamp.type"
BROKER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        STAMPS: "log.message.timestamp.type",
        "retention.ms": "log.retention.ms",
        "retention.bytes": "log.retention.bytes",
        "cleanup.policy": "log.cleanup.policy",
        "max.message.bytes": "message.max.bytes",
    }
)
"""The settings that are compared, with the broker's setting that is a topic's default."""
OTHER_UNITS: Final = (("log.retention.minutes", MINUTE_MS), ("log.retention.hours", 60 * MINUTE_MS))

Settings = Mapping[str, str]


async def read_effective(cluster: Cluster, topics: Collection[str]) -> dict[str, Settings]:
    """Return what holds on each topic, defaults included; raises NetworkFault."""
    if not topics:
        return {}
    keys = tuple(BROKER_NAMES)
    answer = await cluster.request(
        DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=keys
                )
                for topic in sorted(topics)
            )
        )
    )
    return {
        result.resource_name: {
            config.name: config.value for config in result.configs if config.value is not None
        }
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }


async def warn_by_topic(
    flow: FlowConfig, links: Links, wanted: Collection[str], actions: Iterable[TopicAction]
) -> list[str]:
    """Return lines about wanted topics on which the target would do otherwise than the source.

    ``actions`` are what the mirror would do to the target's topics first. Raises NetworkFault.
    """
    names = {topic: flow.names.on_target(topic) for topic in wanted}
    source = await read_effective(links.source_admin, wanted)
    view = await links.target_admin.metadata(sorted(names.values()), refresh=True)
    existing = {
        name for name, topic_view in view.topics.items() if topic_view.error_code == ErrorCode.NONE
    }
    target = await read_effective(links.target_admin, existing.intersection(names.values()))
    defaults: Settings = {}
    if view.brokers and any(name not in existing for name in names.values()):
        defaults = await read_broker_defaults(links.target_admin, min(view.brokers))
    planned: dict[str, Settings] = {
        action.topic: action.configs for action in actions if not isinstance(action, GrowTopic)
    }
    return warn_of_differences(
        (flow.source, flow.target),
        {
            topic: (
                source[topic],
                {
                    **(target.get(name, {}) if name in existing else defaults),
                    **planned.get(name, {}),
                },
            )
            for topic, name in names.items()
            if topic in source
        },
    )


async def read_broker_defaults(cluster: Cluster, broker_id: int) -> Settings:
    """Return what a topic gets on which nothing is set; nothing if the broker does not say.

    Raises NetworkFault.
    """
    answer = await cluster.request(
        DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(
                    resource_type=BROKER_RESOURCE,
                    resource_name=str(broker_id),
                    configuration_keys=None,
                ),
            )
        ),
        node=broker_id,
    )
    own_settings = {
        config.name: config.value
        for result in answer.results
        if result.error_code == ErrorCode.NONE
        for config in result.configs
        if config.value is not None
    }
    defaults = {
        name: own_settings[own] for name, own in BROKER_NAMES.items() if own in own_settings
    }
    for own, unit_ms in OTHER_UNITS:
        value = _number(own_settings.get(own))
        if "retention.ms" not in defaults and value is not None:
            defaults["retention.ms"] = str(value if value < 0 else value * unit_ms)
    return defaults


def warn_of_differences(
    names: tuple[str, str], settings: Mapping[str, tuple[Settings, Settings]]
) -> list[str]:
    """Return lines about topics on which the target does otherwise than the source.

    ``names`` are those of source and target; ``settings`` has by topic what holds on either.
    """
    topics: dict[str, list[str]] = {}
    for topic, (source, target) in sorted(settings.items()):
        for line in _differences(names, source, target):
            topics.setdefault(line, []).append(topic)
    return [f"warning: {line}: {_named(some)}" for line, some in topics.items()]


def _differences(names: tuple[str, str], source: Settings, target: Settings) -> Iterable[str]:
    source_name, target_name = names
    if target.get(STAMPS) == "LogAppendTime":
        yield (
            f"{target_name} stamps records with its own time ({STAMPS}=LogAppendTime), so the times"
            f" of {source_name} are lost; set {STAMPS}=CreateTime on the topics in {target_name}"
        )
    deletes = "delete" in target.get("cleanup.policy", "delete")
    for setting in ("retention.ms", "retention.bytes") if deletes else ():
        kept, limit = _number(source.get(setting)), _number(target.get(setting))
        is_kept_here = "delete" not in source.get("cleanup.policy", "delete")
        if limit is None or limit == UNLIMITED or (kept is None and not is_kept_here):
            continue
        if is_kept_here or kept == UNLIMITED or (kept is not None and limit < kept):
            shown = "unlimited" if is_kept_here or kept == UNLIMITED else kept
            yield (
                f"{target_name} deletes records earlier ({setting}={limit}, in {source_name}"
                f" {shown}); set {setting} on the topics in {target_name}"
            )
    size, most = _number(source.get("max.message.bytes")), _number(target.get("max.message.bytes"))
    if size is not None and most is not None and most < size:
        yield (
            f"{target_name} takes smaller batches (max.message.bytes={most}, in {source_name}"
            f" {size}); set max.message.bytes on the topics in {target_name}"
        )


def _named(topics: list[str]) -> str:
    more = len(topics) - NAMED_TOPICS
    return ", ".join(topics[:NAMED_TOPICS]) + (f" and {more} more" if more > 0 else "")


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
