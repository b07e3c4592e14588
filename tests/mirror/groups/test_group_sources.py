"""Both ways to learn the source's positions, where brokers answer what no broker should."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import trio

from mirror.groups.group_offsets import GroupReader
from mirror.groups.group_polling import GroupPoller
from mirror.groups.source_groups import OFFSETS_TOPIC, SourceGroups, SourcePosition
from mirror.groups.sync import GroupSync
from tests.doubles.fake_answers import list_offsets
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_groups import offset_fetch
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.groups.source_logs import Stored, commits, damaged, fetched, source_of
from tests.mirror.whole_flow import until
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
)
from wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from wire.net.operations import GroupOffset
from wire.topic_partition import TopicPartition


def offsets_of(groups: SourceGroups) -> dict[str, int]:
    return {
        group: one.offset for group, places in groups.positions.items() for one in places.values()
    }


async def wait_known(groups: SourceGroups, wanted: Mapping[str, int]) -> None:
    with trio.fail_after(20):
        while offsets_of(groups) != wanted:
            await groups.news.wait(0.05)


GOOD, BAD, MORE = commits(0, "a", "b"), commits(2, "c", "d"), commits(4, "e")
DAMAGES = {
    "wrong checksum": damaged(BAD, 90, BAD[90] ^ 1),
    "last offset under the wrong checksum": damaged(BAD, 26, 99),
    "magic of another format": damaged(BAD, 16, 7),
    "cut-off records": BAD[:8] + (len(BAD) - 12 - 5).to_bytes(4) + BAD[12:-5],
}


@pytest.mark.parametrize("bad", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("behind", [((5, MORE),), ()], ids=["more follows", "nothing follows"])
async def test_a_damaged_batch_is_counted_once_and_stepped_over(
    bad: bytes, behind: Sequence[Stored]
) -> None:
    logs = {0: ((2, GOOD), (4, bad), *behind), 1: ((1, commits(0, "other")),)}
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        topic = fake.create_topic(OFFSETS_TOPIC, 0, 0)
        for index, log in logs.items():
            topic.partitions[index].end = log[-1][0]

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            return fetched(logs, request)

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        reader = GroupReader(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run)
            await wait_known(groups, {"a": 0, "b": 1, "other": 0, **({"e": 4} if behind else {})})
            nursery.cancel_scope.cancel()
        assert flow.measurements.malformed[OFFSETS_TOPIC] == 1


async def test_where_the_topic_may_not_be_read_positions_are_polled_until_it_may() -> None:
    log = {0: ((2, GOOD),)}
    is_allowed = False
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        fake.create_topic(OFFSETS_TOPIC, 0).partitions[0].end = 2
        fake.offsets["polled"]["orders", 0] = 9

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer = fetched(log, request)
            if is_allowed:
                return answer
            [topic] = answer.responses
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused = tuple(replace(one, error_code=code, records=b"") for one in topic.partitions)
            return replace(answer, responses=(replace(topic, partitions=refused),))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        sync = GroupSync(flow.for_groups, links, MemoryWriters())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sync.reader.run)
            nursery.start_soon(sync.poller.run, lambda: sync.reader.refusal is not None)
            await wait_known(sync.groups, {"polled": 9})
            assert sync.origin == "polled: no right to read __consumer_offsets"
            is_allowed = True
            await wait_known(sync.groups, {"polled": 9, "a": 0, "b": 1})
            nursery.cancel_scope.cancel()
        assert sync.origin == OFFSETS_TOPIC


async def test_a_group_that_is_not_told_does_not_hold_up_the_others() -> None:
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        for number, group in enumerate(("told", "refused")):
            fake.offsets[group]["orders", 0] = number + 5
        refusing = True

        async def tell(header: RequestHeader, request: OffsetFetchRequest) -> OffsetFetchResponse:
            answer: OffsetFetchResponse = offset_fetch(fake.brokers[0], header.api_version, request)
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED if refusing else ErrorCode.NONE
            return OffsetFetchResponse(
                groups=tuple(
                    replace(one, error_code=code, topics=() if code else one.topics)
                    if one.group_id == "refused"
                    else one
                    for one in answer.groups
                )
            )

        fake.brokers[0].scripts[OffsetFetchRequest.API_KEY] = tell
        poller = GroupPoller(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run, lambda: True)
            with trio.fail_after(60):
                await groups.news.wait(20)
                assert offsets_of(groups) == {"told": 5}
                assert "refused" in (poller.fault.text or "")
                refusing = False
                await groups.news.wait(20)
                await groups.news.wait(20)
            nursery.cancel_scope.cancel()
        assert offsets_of(groups) == {"told": 5, "refused": 6}
        assert poller.fault.text is None


async def test_groups_of_every_type_that_has_positions_are_polled() -> None:
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        types = {"old": "", "one": "Classic", "two": "Consumer", "four": "Streams", "no": "Share"}
        for group in types:
            fake.offsets[group]["orders", 0] = 5

        async def list_groups(_: RequestHeader, __: ListGroupsRequest) -> ListGroupsResponse:
            listed = tuple(
                ListedGroup(group_id=group, protocol_type="consumer", group_type=kind)
                for group, kind in types.items()
            )
            return ListGroupsResponse(error_code=0, groups=listed)

        fake.brokers[0].scripts[ListGroupsRequest.API_KEY] = list_groups
        poller = GroupPoller(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run, lambda: True)
            with trio.fail_after(60):
                await groups.news.wait(20)
            nursery.cancel_scope.cancel()
        assert offsets_of(groups) == {"old": 5, "one": 5, "two": 5, "four": 5}


async def test_who_reads_from_the_beginning_again_knows_nothing_new_until_all_is_read() -> None:
    """A log whose end was lost, or that may be read again, first tells what is long past."""
    newest = SourcePosition(7, "")
    log = [(2, GOOD)]
    code = ErrorCode.NONE
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        fake.create_topic(OFFSETS_TOPIC, 0).partitions[0].end = 2

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer = fetched({0: log}, request)
            if code is ErrorCode.NONE:
                return answer
            [topic] = answer.responses
            refused = tuple(replace(one, error_code=code, records=b"") for one in topic.partitions)
            return replace(answer, responses=(replace(topic, partitions=refused),))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        reader = GroupReader(flow.config, links, groups)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run)
            read = {"a": 0, "b": 1}
            for refusal, behind in (
                (ErrorCode.OFFSET_OUT_OF_RANGE, (5, MORE)),
                (ErrorCode.TOPIC_AUTHORIZATION_FAILED, (6, commits(5, "f"))),
            ):
                await wait_known(groups, read)
                groups._learn("a", TopicPartition("orders", 0), newest)
                fake.topics[OFFSETS_TOPIC].partitions[0].end = behind[0]
                code = refusal
                await trio.sleep(0.6)
                code = ErrorCode.NONE
                await trio.sleep(0.6)
                assert offsets_of(groups) == {**read, "a": 7}
                log.append(behind)
                read |= {"e": 4} if behind[1] is MORE else {"f": 5}
            await wait_known(groups, read)
            nursery.cancel_scope.cancel()


async def test_positions_that_a_log_does_not_hold_any_more_are_forgotten() -> None:
    """The source's disk was restored from a copy that is older than the commit of b."""
    log: list[Stored] = [(1, commits(0, "a")), (2, commits(1, "b"))]
    is_cut = False
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        offsets = fake.create_topic(OFFSETS_TOPIC, 0).partitions[0]
        offsets.end = 2

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer = fetched({0: log}, request)
            [asked] = request.topics
            if not is_cut or asked.partitions[0].fetch_offset <= 1:
                return answer
            [topic] = answer.responses
            refused = replace(topic.partitions[0], error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
            return replace(answer, responses=(replace(topic, partitions=(refused,)),))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        reader = GroupReader(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run)
            await wait_known(groups, {"a": 0, "b": 1})
            del log[1:]
            offsets.end, is_cut = 1, True
            await wait_known(groups, {"a": 0})
            nursery.cancel_scope.cancel()
        assert groups.forgotten == {("b", "orders", 0)}


async def test_a_transaction_that_nobody_ends_does_not_hide_what_was_committed_before() -> None:
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        fake.create_topic(OFFSETS_TOPIC, 0).partitions[0].end = 9

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            return fetched({0: [(2, GOOD)]}, request)

        async def tell_ends(_: RequestHeader, request: ListOffsetsRequest) -> ListOffsetsResponse:
            told: ListOffsetsResponse = list_offsets(fake.brokers[0], 0, request)
            [topic] = told.topics
            [one] = topic.partitions
            if request.isolation_level and one.offset:
                topic = replace(topic, partitions=(replace(one, offset=2),))
            return replace(told, topics=(topic,))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        fake.brokers[0].scripts[ListOffsetsRequest.API_KEY] = tell_ends
        reader = GroupReader(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run)
            await wait_known(groups, {"a": 0, "b": 1})
            nursery.cancel_scope.cancel()


async def test_a_partition_without_a_leader_holds_up_its_own_groups_alone() -> None:
    logs = {0: [(2, GOOD)], 1: [(1, commits(0, "other"))]}
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        topic = fake.create_topic(OFFSETS_TOPIC, 0, -1)
        for index, log in logs.items():
            topic.partitions[index].end = log[-1][0]

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            return fetched(logs, request)

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        sync = GroupSync(flow.for_groups, links, MemoryWriters())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sync.reader.run)
            await wait_known(sync.groups, {"a": 0, "b": 1})
            assert sync.groups.changed.keys() == {"a", "b"}
            faults = [sync.reader.fault.text]
            topic.partitions[1].leader = 0
            await sync.reader._look()
            await wait_known(sync.groups, {"a": 0, "b": 1, "other": 0})
            faults.append(sync.reader.fault.text)
            nursery.cancel_scope.cancel()
        assert faults == ["partition 1: LEADER_NOT_AVAILABLE", None]


async def test_a_broker_that_leads_nothing_any_more_is_no_fault() -> None:
    """It may be gone for ever; what it led is read from another."""
    async with run_fake_cluster(2) as fake, source_of(fake) as (groups, flow, links):
        topic = fake.create_topic(OFFSETS_TOPIC, 0)
        topic.partitions[0].end = 2

        async def refuse(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer = fetched({0: [(2, GOOD)]}, request)
            [told] = answer.responses
            [one] = told.partitions
            code = ErrorCode.KAFKA_STORAGE_ERROR
            told = replace(told, partitions=(replace(one, error_code=code, records=b""),))
            return replace(answer, responses=(told,))

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            return fetched({0: [(2, GOOD)]}, request)

        fake.brokers[0].scripts[FetchRequest.API_KEY] = refuse
        fake.brokers[1].scripts[FetchRequest.API_KEY] = fetch
        reader = GroupReader(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.run)
            with trio.fail_after(20):
                await until(lambda: reader.fault.text is not None)
                topic.partitions[0].leader = 1
                await wait_known(groups, {"a": 0, "b": 1})
                await until(lambda: reader.fault.text is None)
            nursery.cancel_scope.cancel()


async def test_what_was_wrong_with_a_group_goes_with_the_group() -> None:
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        sync = GroupSync(flow.for_groups, links, MemoryWriters())
        for group in ("there", "gone"):
            sync.groups.take(group, {TopicPartition("orders", 0): GroupOffset(1)})
            sync.fault.note(f"group {group}: GROUP_AUTHORIZATION_FAILED", group)
        sync.groups.take("gone", {})
        await sync._apply({})
        assert sync.fault.text == "group there: GROUP_AUTHORIZATION_FAILED"


async def test_what_was_asked_for_before_it_could_be_read_is_not_taken() -> None:
    async with run_fake_cluster() as fake, source_of(fake) as (groups, flow, links):
        fake.offsets["g"]["orders", 0] = 5
        is_wanted, asked = True, trio.Event()

        async def tell(header: RequestHeader, request: OffsetFetchRequest) -> OffsetFetchResponse:
            nonlocal is_wanted
            is_wanted = False
            groups.take("g", {TopicPartition("orders", 0): GroupOffset(9)})
            asked.set()
            told: OffsetFetchResponse = offset_fetch(fake.brokers[0], header.api_version, request)
            return told

        fake.brokers[0].scripts[OffsetFetchRequest.API_KEY] = tell
        poller = GroupPoller(flow.config, links, groups)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run, lambda: is_wanted)
            with trio.fail_after(60):
                await asked.wait()
                await trio.sleep(0.2)
            nursery.cancel_scope.cancel()
        assert offsets_of(groups) == {"g": 9}
