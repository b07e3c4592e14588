"""`broker topics`: list, describe, create, alter, delete."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from broker.commands.key_values import key_values
from broker.commands.reaching import CommandFailed, reach, reason
from broker.commands.showing import Row, show_json, show_rows, show_table
from runtime.process.output import print_line
from runtime.program.agreement import require_agreement
from runtime.program.command import Options
from runtime.program.program import ExitStatus
from runtime.program.table import UNKNOWN
from wire.errors import ErrorCode
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from wire.net import Cluster, TopicView
from wire.net.operations import EARLIEST, LATEST, list_offsets
from wire.net.topic_creation import BROKERS_DEFAULT, create_topic
from wire.primitives import ZERO_UUID
from wire.topic_partition import TopicPartition

Settings: TypeAlias = Mapping[str, str | None]

TIMEOUT_MS: Final = 30_000
TOPIC: Final = 2
"""Resource type in DescribeConfigs."""
OF_TOPIC: Final = 1
"""Where a setting comes from: the topic itself."""
TITLES: Final = {
    "topic": "TOPIC",
    "partitions": "PARTITIONS",
    "replicas": "REPLICAS",
    "under_replicated": "UNDER-REPLICATED",
    "leaderless": "LEADERLESS",
    "internal": "INTERNAL",
}
PARTITION_TITLES: Final = {
    "partition": "PARTITION",
    "leader": "LEADER",
    "leader_epoch": "EPOCH",
    "replicas": "REPLICAS",
    "isr": "IN SYNC",
    "start": "START",
    "end": "END",
}


async def list_topics(options: Options) -> int:
    """Show every topic, or only those with partitions that lack replicas or a leader."""
    async with reach(options) as cluster:
        view = await cluster.metadata(refresh=True)
    rows = [summary(view.topics[name]) for name in sorted(view.topics)]
    if options.unhealthy:
        rows = [row for row in rows if row["under_replicated"] or row["leaderless"]]
    empty = "every topic has its replicas" if options.unhealthy else "there are no topics"
    show_rows(rows, TITLES, options, empty=empty)
    return ExitStatus.DONE


def summary(topic: TopicView) -> Row:
    """Return a topic as the list shows it; `replicas` of its partition with most."""
    partitions = topic.partitions.values()
    return {
        "topic": topic.name,
        "id": str(topic.topic_id),
        "partitions": len(partitions),
        "replicas": max((len(one.replicas) for one in partitions), default=0),
        "under_replicated": sum(len(one.isr) < len(one.replicas) for one in partitions),
        "leaderless": sum(one.leader < 0 for one in partitions),
        "internal": topic.is_internal,
    }


async def describe_topics(options: Options) -> int:
    """Show the partitions of topics, where their logs begin and end, and settings of their own."""
    async with reach(options) as cluster:
        topics = await known_topics(cluster, options.topics)
        settings = await _own_settings(cluster, [one.name for one in topics])
        places = [TopicPartition(one.name, index) for one in topics for index in one.partitions]
        starts = await list_offsets(cluster, places, EARLIEST)
        ends = await list_offsets(cluster, places, LATEST)
    partitions = {one.name: _partitions(one, starts, ends) for one in topics}
    if options.json:
        show_json(
            [
                {
                    **summary(topic),
                    "settings": None if isinstance(own, str) else own,
                    "partitions": partitions[topic.name],
                }
                for topic in topics
                for own in [settings[topic.name]]
            ]
        )
    else:
        for topic in topics:
            own = shown_settings(settings[topic.name])
            print_line(f"topic {topic.name}, id {topic.topic_id}, settings: {own}")
            show_table(partitions[topic.name], PARTITION_TITLES, empty="no partitions")
    untold = [f"{name}: {own}" for name, own in settings.items() if isinstance(own, str)]
    if untold:
        raise CommandFailed(f"settings of topic {'; '.join(untold)}")
    return ExitStatus.DONE


def shown_settings(own: Settings | str) -> str:
    """Return a topic's own settings as they are shown; a reason says why they are not known."""
    if isinstance(own, str):
        return UNKNOWN
    return " ".join(f"{key}={value}" for key, value in own.items()) or "none of its own"


async def known_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicView]:
    """Return topics in the order of their names here; raises CommandFailed if one is unknown."""
    view = await cluster.metadata(names, refresh=True)
    for name in names:
        code = (
            view.topics[name].error_code
            if name in view.topics
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        if code not in {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}:
            raise CommandFailed(f"topic {name}: {reason(code)}")
    return [view.topics[name] for name in names]


def _partitions(
    topic: TopicView,
    starts: Mapping[TopicPartition, int | ErrorCode],
    ends: Mapping[TopicPartition, int | ErrorCode],
) -> list[Row]:
    def known(offsets: Mapping[TopicPartition, int | ErrorCode], index: int) -> int | None:
        offset = offsets[TopicPartition(topic.name, index)]
        return None if isinstance(offset, ErrorCode) else offset

    return [
        {
            "partition": index,
            "leader": one.leader if one.leader >= 0 else None,
            "leader_epoch": one.leader_epoch,
            "replicas": list(one.replicas),
            "isr": list(one.isr),
            "start": known(starts, index),
            "end": known(ends, index),
        }
        for index, one in sorted(topic.partitions.items())
    ]


async def _own_settings(cluster: Cluster, topics: Sequence[str]) -> Mapping[str, Settings | str]:
    resources = tuple(
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
        for name in topics
    )
    answer = await cluster.request(DescribeConfigsRequest(resources=resources))
    return own_settings(topics, answer)


def own_settings(
    topics: Sequence[str], answer: DescribeConfigsResponse
) -> Mapping[str, Settings | str]:
    """Return the settings that each topic has of its own, or why they are not told."""
    told: dict[str, Settings | str] = dict.fromkeys(topics, "the broker does not speak of it")
    for one in answer.results:
        if one.error_code:
            told[one.resource_name] = reason(one.error_code, one.error_message)
        else:
            told[one.resource_name] = {
                entry.name: entry.value for entry in one.configs if entry.config_source == OF_TOPIC
            }
    return told


async def create(options: Options) -> int:
    """Create a topic; with --dry-run the brokers only say whether they would."""
    settings = key_values("--set", options.set)
    async with reach(options) as cluster:
        is_new = await create_topic(
            cluster,
            options.topic,
            partition_count=options.partitions or BROKERS_DEFAULT,
            replication_factor=options.replicas or BROKERS_DEFAULT,
            configs=settings,
            validate_only=options.dry_run,
        )
    if not is_new and not options.if_not_exists:
        raise CommandFailed(
            f"topic {options.topic} exists: look at it with `broker topics describe`, or take "
            "--if-not-exists"
        )
    did = "could be created" if options.dry_run else "created"
    print_line(f"topic {options.topic}: {did if is_new else 'was there before'}")
    return ExitStatus.DONE


async def alter(options: Options) -> int:
    """Give a topic more partitions."""
    growing = CreatePartitionsTopic(name=options.topic, count=options.partitions, assignments=None)
    async with reach(options) as cluster:
        answer = await cluster.request_controller(
            CreatePartitionsRequest(
                topics=(growing,), timeout_ms=TIMEOUT_MS, validate_only=options.dry_run
            )
        )
    [result] = answer.results
    if result.error_code:
        told = reason(result.error_code, result.error_message)
        raise CommandFailed(f"topic {options.topic}: {told}")
    did = "could have" if options.dry_run else "has"
    print_line(f"topic {options.topic}: {did} {options.partitions} partitions")
    return ExitStatus.DONE


async def delete(options: Options) -> int:
    """Delete topics with all their records; the status says whether all are gone."""
    async with reach(options) as cluster:
        names = list(dict.fromkeys(options.topics))
        await known_topics(cluster, names)
        require_agreement(
            f"Delete {_counted(names)} and all records in them?", is_given=options.yes
        )
        answer = await cluster.request_controller(_deletion(names))
    refused = [
        f"topic {one.name}: {reason(one.error_code, one.error_message)}"
        for one in answer.responses
        if one.error_code
    ]
    for one in answer.responses:
        if not one.error_code:
            print_line(f"topic {one.name}: deleted")
    if refused:
        raise CommandFailed("; ".join(refused))
    return ExitStatus.DONE


def _deletion(names: Sequence[str]) -> DeleteTopicsRequest:
    """Name the topics for brokers of every version."""
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names),
        topic_names=tuple(names),
        timeout_ms=TIMEOUT_MS,
    )


def _counted(names: Sequence[str]) -> str:
    return f"topic {names[0]}" if len(names) == 1 else f"the topics {', '.join(names)}"
