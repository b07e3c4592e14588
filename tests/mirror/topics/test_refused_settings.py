"""Topics are mirrored without the settings that their target refuses."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mirror.clusters.admin import CreateTopic, SetConfigs
from mirror.topics.changes import Applied, apply_acceptable
from mirror.topics.refused_settings import (
    ASK_AGAIN_MS,
    RefusedSetting,
    RefusedSettings,
    named_settings,
)
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from wire.net.cluster import Cluster, open_cluster
from wire.net.topic_creation import TopicRefused

SMALL = "Invalid value 20000 for configuration segment.bytes: Value must be at least 1048576"
UNKNOWN = "Unknown topic config name: message.downconversion.enable"
UNNAMED = "Tiered Storage functionality is disabled in the broker."
CONFIGS = {
    "cleanup.policy": "delete",
    "message.downconversion.enable": "true",
    "remote.storage.enable": "true",
    "retention.ms": "5",
    "segment.bytes": "20000",
}


class PickyTarget:
    """A cluster that refuses settings, one at a time, in the order of its reasons."""

    def __init__(self, cluster: FakeCluster, reasons: Mapping[str, str]) -> None:
        self.reasons = reasons
        self.asked: list[tuple[frozenset[str], bool]] = []
        self.settings: dict[str, str] = {}
        for key in (CreateTopicsRequest.API_KEY, IncrementalAlterConfigsRequest.API_KEY):
            cluster.versions[key] = range(2)
        cluster.versions[CreateTopicsRequest.API_KEY] = CreateTopicsRequest.VERSIONS
        scripts = cluster.brokers[0].scripts
        scripts[CreateTopicsRequest.API_KEY] = self.create
        scripts[IncrementalAlterConfigsRequest.API_KEY] = self.alter

    def refusal(self, configs: Iterable[Any], *, validate_only: bool) -> str | None:
        given = {config.name: config.value for config in configs}
        self.asked.append((frozenset(given), validate_only))
        for name, reason in self.reasons.items():
            if all(part in given for part in name.split("+") if part):
                return reason
        if not validate_only:
            self.settings |= given
        return None

    async def create(self, _: RequestHeader, request: CreateTopicsRequest) -> CreateTopicsResponse:
        [topic] = request.topics
        message = self.refusal(topic.configs, validate_only=request.validate_only)
        code = ErrorCode.NONE if message is None else ErrorCode.INVALID_CONFIG
        result = CreatableTopicResult(name=topic.name, error_code=code, error_message=message)
        return CreateTopicsResponse(topics=(result,))

    async def alter(
        self, _: RequestHeader, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        [resource] = request.resources
        message = self.refusal(resource.configs, validate_only=request.validate_only)
        return IncrementalAlterConfigsResponse(
            responses=(
                IncrementalAlterConfigsResourceResponse(
                    error_code=ErrorCode.NONE if message is None else ErrorCode.INVALID_REQUEST,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                ),
            )
        )


@asynccontextmanager
async def picky_target(reasons: Mapping[str, str]) -> AsyncIterator[tuple[Cluster, PickyTarget]]:
    async with run_fake_cluster() as fake:
        target = PickyTarget(fake, reasons)
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            yield cluster, target


def creation(**configs: str) -> CreateTopic:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return CreateTopic(topic="t", partition_count=1, replication_factor=1, configs=named or CONFIGS)


async def create(
    reasons: Mapping[str, str], action: CreateTopic | SetConfigs | None = None
) -> tuple[Applied, PickyTarget]:
    async with picky_target(reasons) as (cluster, target):
        return await apply_acceptable(cluster, action or creation(), frozenset()), target


async def test_what_the_target_names_is_left_out_and_the_rest_is_set() -> None:
    applied, target = await create(
        {"segment.bytes": SMALL, "message.downconversion.enable": UNKNOWN}
    )
    assert applied.was_done
    assert applied.refused == {"segment.bytes": SMALL, "message.downconversion.enable": UNKNOWN}
    assert target.settings.keys() == CONFIGS.keys() - applied.refused.keys()
    assert not any(validate_only for _, validate_only in target.asked)


async def test_what_the_target_does_not_name_is_found_by_asking_for_each_alone() -> None:
    applied, target = await create({"remote.storage.enable": UNNAMED})
    assert applied.refused == {"remote.storage.enable": UNNAMED}
    assert target.settings.keys() == CONFIGS.keys() - {"remote.storage.enable"}
    assert {names for names, validate_only in target.asked if validate_only} == {
        frozenset({name}) for name in CONFIGS
    }


async def test_of_a_combination_that_is_refused_the_first_that_is_named_goes() -> None:
    reason = "segment.bytes does not go with retention.ms"
    applied, target = await create({"segment.bytes+retention.ms": reason})
    assert applied.refused == {"segment.bytes": reason}
    assert target.settings["retention.ms"] == "5"


async def test_a_topic_is_created_bare_when_nothing_tells_what_is_refused() -> None:
    applied, target = await create({"segment.bytes+retention.ms": "no"})
    assert applied.was_done
    assert applied.refused == dict.fromkeys(CONFIGS, "no")
    assert target.settings == {}


async def test_settings_of_a_topic_that_is_there_are_set_as_far_as_they_are_accepted() -> None:
    applied, target = await create(
        {"segment.bytes": SMALL}, SetConfigs(topic="t", configs={**CONFIGS})
    )
    assert applied.refused == {"segment.bytes": SMALL}
    assert target.settings.keys() == CONFIGS.keys() - {"segment.bytes"}


async def test_nothing_is_changed_when_every_setting_is_refused() -> None:
    applied, target = await create(
        {"segment.bytes": SMALL}, SetConfigs(topic="t", configs={"segment.bytes": "20000"})
    )
    assert not applied.was_done
    assert len(target.asked) == 1


async def test_what_was_refused_to_another_topic_is_left_out_without_asking() -> None:
    async with picky_target({"remote.storage.enable": UNNAMED}) as (cluster, target):
        suspects = {("remote.storage.enable", "true")}
        applied = await apply_acceptable(cluster, creation(), suspects)
    assert applied.refused == {"remote.storage.enable": UNNAMED}
    assert len(target.asked) == 2


async def test_a_refusal_that_is_not_about_settings_stands() -> None:
    action = CreateTopic(topic="t", partition_count=1, replication_factor=1, configs={})
    async with picky_target({"": "the name is bad"}) as (cluster, _):
        with pytest.raises(TopicRefused, match="the name is bad"):
            await apply_acceptable(cluster, action, frozenset())


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (SMALL, ["segment.bytes"]),
        ("local.retention.ms must not be above 5", []),
        ("retention.ms, then segment.bytes.", ["retention.ms", "segment.bytes"]),
        ("the setting 'retention.ms' is bad", ["retention.ms"]),
        ("retention.ms=5: no", ["retention.ms"]),
        ("", []),
    ],
)
def test_settings_are_found_in_messages_by_their_whole_names(
    message: str, named: list[str]
) -> None:
    assert named_settings(["segment.bytes", "retention.ms"], message) == named


def refused(value: str = "20000", reason: str = SMALL) -> RefusedSetting:
    return RefusedSetting(topic="t", name="segment.bytes", value=value, reason=reason)


def test_a_refused_value_is_not_asked_for_until_it_changes_or_time_has_passed() -> None:
    settings = RefusedSettings()
    assert settings.note(refused(), now_ms=1_000)
    configs = {"segment.bytes": "20000", "retention.ms": "5"}
    assert settings.acceptable("t", configs, 1_001) == {"retention.ms": "5"}
    assert settings.acceptable("other", configs, 1_001) == configs
    changed = {**configs, "segment.bytes": "30000"}
    assert settings.acceptable("t", changed, 1_001) == changed
    assert settings.acceptable("t", configs, 1_000 + ASK_AGAIN_MS) == configs


def test_a_refusal_is_news_once_until_its_reason_changes() -> None:
    settings = RefusedSettings()
    assert settings.note(refused(), now_ms=1)
    assert not settings.note(refused(), now_ms=2)
    assert settings.note(refused(reason=UNNAMED), now_ms=3)
    assert settings.known == [refused(reason=UNNAMED)]


def test_a_refusal_ends_when_the_target_accepts_or_the_source_changes() -> None:
    settings = RefusedSettings()
    settings.note(refused(), now_ms=1)
    settings.keep({"t": {"segment.bytes": "20000"}})
    assert settings.suspects == {("segment.bytes", "20000")}
    settings.keep({"t": {"segment.bytes": "30000"}})
    assert settings.known == []
    settings.note(refused(), now_ms=1)
    settings.forget("t", ["retention.ms"])
    assert settings.known == [refused()]
    settings.forget("t", ["segment.bytes"])
    assert settings.known == []
