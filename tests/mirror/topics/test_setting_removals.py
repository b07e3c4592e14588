"""Settings that were taken back on the source."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror.clusters.admin import RESET, reset_configs
from mirror.topics.setting_removals import TakenBack
from tests.doubles.fake_cluster import run_fake_cluster
from wire.headers import RequestHeader
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from wire.net.cluster import open_cluster

ALTER = 44
SETTINGS = st.dictionaries(st.sampled_from("abcd"), st.just("1"))


@given(st.lists(SETTINGS, min_size=1, max_size=8), SETTINGS)
def test_the_target_keeps_its_own_settings_and_what_the_source_has(
    history: list[dict[str, str]], own: dict[str, str]
) -> None:
    taken_back, target = TakenBack(), dict(own)
    for source in history:
        due = taken_back.due({"t": source}, {"t": target}).get("t", [])
        taken_back.done("t", due)
        target = {**{name: "1" for name in target if name not in due}, **source}
    ever = set().union(*history)
    assert target.keys() == history[-1].keys() | (own.keys() - ever)


def test_what_could_not_be_taken_back_is_due_again() -> None:
    taken_back = TakenBack()
    assert taken_back.due({"t": {"a": "1"}}, {"t": {}}) == {}
    assert taken_back.due({"t": {}}, {}) == {}
    assert taken_back.due({}, {"t": {"a": "1"}}) == {}
    for _ in range(2):
        assert taken_back.due({"t": {}}, {"t": {"a": "1"}}) == {"t": ["a"]}
    taken_back.done("t", ["a"])
    assert taken_back.due({"t": {}}, {"t": {"a": "1"}}) == {}


async def test_a_setting_is_taken_back_by_its_name() -> None:
    async def alter(_: RequestHeader, request: Any) -> IncrementalAlterConfigsResponse:
        [resource] = request.resources
        asked.extend((one.name, one.config_operation, one.value) for one in resource.configs)
        result = IncrementalAlterConfigsResourceResponse(
            error_code=0,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        return IncrementalAlterConfigsResponse(responses=(result,))

    asked: list[tuple[str, int, str | None]] = []
    async with run_fake_cluster() as dc2:
        dc2.brokers[0].scripts[ALTER] = alter
        dc2.versions |= {ALTER: range(2)}
        async with open_cluster(dc2.bootstrap, client_id="test") as target:
            await reset_configs(target, "t", ["retention.ms"])
    assert asked == [("retention.ms", RESET, None)]
