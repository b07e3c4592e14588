# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""The shell around the shards: loading, safety of answers, timers, resignation, faults."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import broker.groups.records
from broker.apis import offset_commit, offset_fetch
from broker.led_partition import CONSUMER_OFFSETS, LedPartition
from tests.broker.groups.asking import (
    GROUP,
    beat,
    commit,
    committed,
    join,
    stable_member,
    sync,
)
from tests.broker.groups.rig import (
    BROKER,
    FOLLOWER,
    TOPIC,
    FailingOnce,
    commit_request,
    open_rig,
)
from wire.consumer_offsets import OffsetKey, encode_key
from wire.errors import ErrorCode
from wire.messages.join_group import (
    JoinGroupResponse,
)
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire.record_batch import Record, build_batch


async def test_a_group_forms_by_itself_as_time_passes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        joined = await stable_member(rig)
        assert trio.current_time() == 3  # group.initial.rebalance.delay.ms
        for _ in range(5):
            await trio.sleep(9)
            assert await beat(rig, joined) is ErrorCode.NONE
        await trio.sleep(10.001)
        assert await beat(rig, joined) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await rig.group_states() == {"Empty": 1}


async def test_a_restarted_broker_keeps_groups_and_offsets(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        joined = await stable_member(rig)
        assert await commit(rig, 5, "tool") is ErrorCode.NONE
    async with open_rig(tmp_path) as rig:
        assert await beat(rig, joined) is ErrorCode.NONE
        assert await sync(rig, joined) == b"all"
        assert await committed(rig, "tool") == 5


async def test_nothing_is_told_before_it_is_safe(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with open_rig(tmp_path) as rig:
        rig.set_in_sync(BROKER, FOLLOWER)
        told: list[object] = []

        async def wait_for_commit() -> None:
            told.append(await commit(rig, 5))

        async def fetch() -> None:
            told.append(await committed(rig))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_commit)
            await wait_all_tasks_blocked()
            nursery.start_soon(fetch)
            await wait_all_tasks_blocked()
            assert told == []
            rig.set_in_sync(BROKER)
        assert sorted(told, key=str) == [ErrorCode.NONE, 5]


async def test_an_assignment_is_given_only_when_it_is_safe(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        given = await join(rig)
        joined = await join(rig, given.member_id)
        rig.set_in_sync(BROKER, FOLLOWER)
        assignments: list[bytes] = []

        async def wait_for_sync() -> None:
            assignments.append(await sync(rig, joined))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_sync)
            await wait_all_tasks_blocked()
            assert assignments == []
            rig.set_in_sync(BROKER)
        assert assignments == [b"all"]


async def test_what_does_not_become_safe_in_time_is_answered_so(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        rig.set_in_sync(BROKER, FOLLOWER)
        assert await commit(rig, 5) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert trio.current_time() == 5  # offsets.commit.timeout.ms
        assert await committed(rig) is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_what_was_loaded_is_told_only_when_it_is_safe(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        await commit(rig, 5)
    async with open_rig(tmp_path, is_led=False) as rig:
        # A new leader does not know yet how far the others are.
        rig.set_in_sync(BROKER, FOLLOWER)
        rig.partition._high_watermark = 0
        rig.groups.on_leader(rig.partition)
        await wait_all_tasks_blocked()
        assert await committed(rig) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        rig.set_in_sync(BROKER)
        assert await committed(rig) == 5


async def test_resigning_ends_every_wait(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with open_rig(tmp_path) as rig:
        given = await join(rig)
        answers: list[JoinGroupResponse] = []

        async def wait_for_join() -> None:
            answers.append(await join(rig, given.member_id))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_join)
            await wait_all_tasks_blocked()
            rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
        assert answers[0].error_code == ErrorCode.NOT_COORDINATOR
        assert await committed(rig) is ErrorCode.NOT_COORDINATOR
        assert await commit(rig, 1) is ErrorCode.NOT_COORDINATOR


async def test_a_commit_that_waits_is_not_answered_as_done_by_a_broker_that_resigned(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        rig.set_in_sync(BROKER, FOLLOWER)
        told: list[ErrorCode] = []

        async def wait_for_commit() -> None:
            told.append(await commit(rig, 5))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_commit)
            await wait_all_tasks_blocked()
            rig.partition.resign()
            rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
        assert told == [ErrorCode.NOT_COORDINATOR]


async def test_while_loading_members_are_left_alone_and_others_come_back_later(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path, is_led=False) as rig:
        rig.groups.on_leader(rig.partition)  # the load has not had its operation yet
        joined = JoinGroupResponse(
            error_code=0, generation_id=1, leader="m", member_id="m", members=()
        )
        assert await beat(rig, joined) is ErrorCode.NONE
    async with open_rig(tmp_path, is_led=False) as rig:
        rig.groups.on_leader(rig.partition)
        assert await commit(rig, 1) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await wait_all_tasks_blocked()
        assert await commit(rig, 1) is ErrorCode.NONE


async def test_leading_again_in_a_new_epoch_keeps_what_is_known(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        joined = await stable_member(rig)
        rig.partition.take(replace(rig.partition.leadership, leader_epoch=4))
        rig.groups.on_leader(rig.partition)
        assert await beat(rig, joined) is ErrorCode.NONE
        assert await commit(rig, 1, "tool") is ErrorCode.NONE


async def test_a_broker_that_leads_nothing_is_no_coordinator(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path, is_led=False) as rig:
        assert await commit(rig, 1) is ErrorCode.NOT_COORDINATOR
        rig.node.metadata.remove_topic(CONSUMER_OFFSETS)
        assert await commit(rig, 1) is ErrorCode.NOT_COORDINATOR


async def test_a_group_id_that_no_record_can_hold_is_refused(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        assert await commit(rig, 1, "g" * 32_768) is ErrorCode.INVALID_GROUP_ID
        assert await commit(rig, 1, "g" * 32_767) is ErrorCode.NONE


async def test_a_log_that_does_not_take_the_records_changes_nothing(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rig(tmp_path) as rig:
        await commit(rig, 1)
        rig.partition.log.config = replace(rig.partition.log.config, max_message_bytes=10)
        assert await commit(rig, 2) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert "refused its coordinator's records" in caplog.text
        rig.partition.resign()
        assert await commit(rig, 3) is ErrorCode.NOT_COORDINATOR
        rig.partition.take(replace(rig.partition.leadership, leader=BROKER))
        assert await committed(rig) == 1


async def test_a_member_of_a_classic_group_sees_offsets_whatever_generation_it_names(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """As franz-go does: since version 9 it sends its member id and generation along."""
    async with open_rig(tmp_path) as rig:
        joined = await stable_member(rig)
        await commit(rig, 7, "other")
        for group_id in (GROUP, "other", "none"):
            asked = OffsetFetchRequestGroup(
                group_id=group_id,
                member_id=joined.member_id,
                member_epoch=joined.generation_id,
                topics=None,
            )
            answer = await offset_fetch.handle(OffsetFetchRequest(groups=(asked,)), rig.call(9))
            assert answer.groups[0].error_code == ErrorCode.NONE
            assert len(answer.groups[0].topics) == (group_id == "other")


async def test_of_several_batches_none_is_written_where_one_is_refused(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.groups.records, "BATCH_BYTES", 100)
    async with open_rig(tmp_path) as rig:
        await commit(rig, 1)
        end = rig.partition.log_end_offset
        rig.partition.log.config = replace(rig.partition.log.config, max_message_bytes=600)
        request = commit_request(GROUP, 2)
        (topic,) = request.topics
        (small,) = topic.partitions
        large = replace(small, partition_index=1, committed_metadata="m" * 1_000)
        both = replace(request, topics=(replace(topic, partitions=(small, large)),))
        answer = await offset_commit.handle(both, rig.call(9))
        codes = [one.error_code for one in answer.topics[0].partitions]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        assert rig.partition.log_end_offset == end
        assert await committed(rig) == 1


async def test_a_record_that_cannot_be_read_is_named_and_the_rest_is_loaded(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rig(tmp_path) as rig:
        await commit(rig, 5)
        broken = Record(
            offset=0,
            timestamp_ms=0,
            key=encode_key(OffsetKey(group=GROUP, topic=TOPIC, partition=1)),
            value=b"\x00\x63",
            headers=(),
        )
        unknown = Record(offset=1, timestamp_ms=0, key=b"\x00\x0arest", value=b"", headers=())
        rig.partition.append_own(bytearray(build_batch([broken, unknown])))
    with caplog.at_level(logging.ERROR):
        async with open_rig(tmp_path) as rig:
            assert await committed(rig) == 5
    assert "__consumer_offsets-0 offset 1 cannot be read" in caplog.text
    assert len(caplog.records) == 1


async def test_a_load_that_fails_is_tried_again(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_rig(tmp_path) as rig:
        await commit(rig, 5)
        rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
        assert (await join(rig)).error_code == ErrorCode.NOT_COORDINATOR
        rig.groups.on_leader(cast("LedPartition", FailingOnce(rig.partition)))
        await wait_all_tasks_blocked()
        assert await committed(rig) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await rig.groups.ask_all(lambda shard, _: shard.groups) is (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        assert "input/output error" in caplog.text
        await trio.sleep(1.1)
        assert await committed(rig) == 5


async def test_leading_again_while_loading_begins_anew(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        await commit(rig, 5)
        rig.groups.on_resigned(CONSUMER_OFFSETS, 0)
        rig.groups.on_leader(cast("LedPartition", FailingOnce(rig.partition)))
        await wait_all_tasks_blocked()
        rig.groups.on_leader(rig.partition)
        await wait_all_tasks_blocked()
        assert await committed(rig) == 5


async def test_offsets_go_when_their_retention_is_over(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    settings = {"offsets_retention_minutes": 1, "offsets_retention_check_interval_ms": 50_000}
    async with open_rig(tmp_path, settings) as rig:
        await commit(rig, 5)
        await trio.sleep(51)
        assert await committed(rig) == 5
        await trio.sleep(50)
        assert await committed(rig) == -1
        assert await rig.group_states() == {}


async def test_a_clock_set_forward_by_mistake_takes_no_offsets_away(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    settings = {"offsets_retention_minutes": 90, "offsets_retention_check_interval_ms": 60_000}
    async with open_rig(tmp_path, settings) as rig:
        await commit(rig, 5)
        rig.node.clock.set_by_ms = 30 * 86_400_000
        await trio.sleep(3_500)
        assert await committed(rig) == 5
        rig.node.clock.set_by_ms = 0
        await trio.sleep(600)
        rig.node.clock.set_by_ms = 30 * 86_400_000
        await trio.sleep(1_200)
        assert await committed(rig) == 5
        await trio.sleep(200)
        assert await committed(rig) == -1  # an hour and a half have passed indeed


async def test_a_partition_named_again_and_again_in_a_commit_is_written_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        request = commit_request(GROUP, 5)
        (topic,) = request.topics
        again = [replace(topic.partitions[0], committed_offset=offset) for offset in range(900)]
        many = replace(request, topics=(replace(topic, partitions=tuple(again)),))
        answer = await offset_commit.handle(many, rig.call(9))
        assert [one.error_code for one in answer.topics[0].partitions] == [0] * 900
        assert rig.partition.log_end_offset == 1
        assert await committed(rig) == 899


async def test_a_client_that_is_gone_disturbs_nobody(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_rig(tmp_path) as rig:
        given = await join(rig)
        with trio.move_on_after(1):
            await join(rig, given.member_id)
        other = await join(rig)
        joined = await join(rig, other.member_id)
        assert joined.leader == given.member_id  # it still counts until its session ends
        await trio.sleep(9)
        assert await beat(rig, joined) is ErrorCode.NONE
        await trio.sleep(9)
        again = await join(rig, other.member_id)
        assert again.leader == other.member_id


async def test_a_thousand_groups_are_loaded_with_their_last_commits(tmp_path: Path) -> None:
    group_count = 1_000
    async with open_rig(tmp_path) as rig:
        for number in range(group_count):
            for offset in (1, 2, 3):
                await commit(rig, offset, f"group-{number}")
    async with open_rig(tmp_path) as rig:
        assert await rig.group_states() == {"Empty": group_count}
        assert await committed(rig, "group-999") == 3
