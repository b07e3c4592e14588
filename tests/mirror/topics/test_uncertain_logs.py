"""What is behind a high watermark, or was under a leader that is away, is not taken for settled."""

from copy import deepcopy

import pytest
import trio

from mirror.clusters.log_ends import LogEnds, read_quiet_target_ends
from mirror.state.partition_state import PartitionState
from mirror.topics.leaders import follow_leaders
from offset_translation.translation import translate
from tests.doubles.fake_answers import ANSWERS
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from tests.mirror.whole_flow import WholeFlow, batch_at, until, values, whole_flow
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest
from wire.messages.list_offsets import ListOffsetsRequest
from wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.record_batch import parse_header
from wire.topic_partition import TopicPartition

COUNT = 100
COMMITTED = 10


class HungFollower:
    """Of the target's leader: nothing behind COMMITTED is committed until it leaves the ISR."""

    def __init__(self, whole: WholeFlow) -> None:
        self.whole = whole
        self.is_gone = False
        self.broker = whole.dc2.brokers[0]
        self.broker.scripts[ProduceRequest.API_KEY] = self.produce

    async def produce(self, header: RequestHeader, request: ProduceRequest) -> object:
        """Append as a leader does, which knows the producer, and answer what is committed."""
        [topic] = request.topic_data
        log = self.whole.target
        if topic.name == "t":
            records = topic.partition_data[0].records
            assert isinstance(records, memoryview)
            if parse_header(records).base_sequence != log.end:
                refused = PartitionProduceResponse(
                    index=0, error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, base_offset=-1
                )
                return ProduceResponse(
                    responses=(TopicProduceResponse(name="t", partition_responses=(refused,)),)
                )
        answer = ANSWERS[header.api_key](self.broker, header.api_version, request)
        if self.is_gone or log.end <= COMMITTED:
            return answer
        log.uncommitted = log.end - COMMITTED
        return answer if topic.name != "t" else None


async def discover(whole: WholeFlow) -> None:
    """Learn who leads both logs."""
    links, partition = whole.discovery._links, whole.partition
    source, target = [
        (await admin.metadata(refresh=True)).partition("t", 0)
        for admin in (links.source_admin, links.target_admin)
    ]
    follow_leaders(whole.flow.interruptions, partition, source, target, None)
    whole.flow.wakeups.fetch_anew()


async def test_batches_of_ours_that_are_not_committed_yet_keep_their_places_in_the_map() -> None:
    """Records at even offsets, as if a marker stood behind each, and chunks of ten records."""
    log = [batch_at(offset, b"v%03d" % offset) for offset in range(0, 2 * COUNT, 2)]
    async with whole_flow(log, 2 * COUNT - 1, chunk_bytes=10 * len(log[0]) + 5) as whole:
        follower = HungFollower(whole)
        target = whole.target
        await until(lambda: target.end >= 3 * COMMITTED)
        await follower.broker.cut_connections()
        await until(lambda: "OFFSET_NOT_AVAILABLE" in whole.partition.status.reason)
        follower.is_gone, target.uncommitted = True, 0
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        found = values(target)
        assert found == values(whole.source)
        places = [translate(whole.partition.offset_map, 2 * place) for place in range(COUNT)]
        assert places == list(range(COUNT))


async def test_a_source_leader_that_moved_is_asked_whether_it_has_what_was_mirrored() -> None:
    """The old one hangs; the new one was elected uncleanly, and has grown past what it lost."""

    async def hang(_: RequestHeader, __: object) -> None:
        return None

    log = [batch_at(offset, b"a%d" % offset) for offset in range(10)]
    async with whole_flow(log, 10, chunk_bytes=1_000_000) as whole:
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        whole.dc1.brokers[0].scripts[FetchRequest.API_KEY] = hang
        source = whole.source
        source.batches = log[:6] + [batch_at(offset, b"b%d" % offset) for offset in range(6, 15)]
        source.end, source.leader, source.leader_epoch = 15, 1, 1
        await discover(whole)
        await until(lambda: whole.partition.state is PartitionState.SOURCE_WENT_BACK)
        assert values(whole.target) == [b"a%d" % offset for offset in range(10)]


@pytest.mark.parametrize("leader", [0, 1])
async def test_what_a_quiet_target_lost_in_an_election_is_mirrored_again(leader: int) -> None:
    """Its broker comes back without its disk's tail, or another one is elected uncleanly."""
    log = [batch_at(offset, b"a%d" % offset) for offset in range(10)]
    async with whole_flow(log, 10, chunk_bytes=1_000_000) as whole:
        await until(lambda: whole.partition.lag_records(0) == 0 and len(values(whole.target)) == 10)
        await discover(whole)
        target = whole.target
        target.batches, target.end = [], 0
        target.leader, target.leader_epoch = leader, 1
        await discover(whole)
        await until(lambda: values(whole.target) == values(whole.source))


async def test_what_others_wrote_where_an_election_had_cut_a_target_is_not_counted() -> None:
    """As many records as were lost, so that the log ends where it did."""
    log = [batch_at(offset, b"a%d" % offset) for offset in range(10)]
    async with whole_flow(log, 10, chunk_bytes=1_000_000) as whole:
        await until(lambda: whole.partition.lag_records(0) == 0 and len(values(whole.target)) == 10)
        await discover(whole)
        whole.target.batches = [batch_at(offset, b"b%d" % offset) for offset in range(10)]
        whole.target.leader_epoch = 1
        await discover(whole)
        await until(lambda: whole.partition.state is PartitionState.TARGET_DIVERGED)
        assert "offsets 0 to 9 that no mirror has written" in whole.partition.status.reason


async def test_a_log_that_others_write_to_all_the_time_is_placed_by_what_it_held_at_first() -> None:
    """A thousand records a second, each with its followers for 40 ms."""
    began_s = trio.current_time()

    def end(at_s: float) -> int:
        return 100 + max(0, int((at_s - began_s) * 1_000))

    async with two_fakes() as (_, dc2, links):
        log, broker = dc2.create_topic("orders", 0).partitions[0], dc2.brokers[0]

        async def tell(header: RequestHeader, request: object) -> object:
            log.end = end(trio.current_time())
            log.uncommitted = log.end - end(trio.current_time() - 0.04)
            return ANSWERS[header.api_key](broker, header.api_version, request)

        for api in (ListOffsetsRequest, OffsetForLeaderEpochRequest):
            broker.scripts[api.API_KEY] = tell
        names, place = CONFIG.names, TopicPartition("orders", 0)
        found = (await read_quiet_target_ends(links.target_admin, names, [place]))[place]
        assert isinstance(found, LogEnds)
        assert 100 <= found.end <= log.end
        log.uncommitted = 1
        del broker.scripts[ListOffsetsRequest.API_KEY]
        del broker.scripts[OffsetForLeaderEpochRequest.API_KEY]
        told = await read_quiet_target_ends(links.target_admin, names, [place])
        assert told == {place: ErrorCode.OFFSET_NOT_AVAILABLE}


async def test_what_was_mirrored_is_looked_for_at_the_leader_that_there_is_now() -> None:
    """The old one serves on, as followers do, and has not cut its log yet."""
    log = [batch_at(offset, b"a%d" % offset) for offset in range(10)]
    async with whole_flow(log, 10, chunk_bytes=1_000_000) as whole:
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        whole.partition.target.lose_anchor()
        whole.flow.interruptions.interrupt(whole.partition, "a fault", 0, at_once=True)
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        source, old = whole.source, deepcopy(whole.source)

        async def serve_on(header: RequestHeader, request: object) -> object:
            whole.dc1.topics["t"].partitions[0] = old
            answer = ANSWERS[header.api_key](whole.dc1.brokers[0], header.api_version, request)
            whole.dc1.topics["t"].partitions[0] = source
            return answer

        whole.dc1.brokers[0].scripts[FetchRequest.API_KEY] = serve_on
        source.batches = log[:6] + [batch_at(offset, b"b%d" % offset) for offset in range(6, 15)]
        source.end, source.leader, source.leader_epoch = 15, 1, 1
        await discover(whole)
        await until(lambda: whole.partition.state is PartitionState.SOURCE_WENT_BACK)
        assert values(whole.target) == [b"a%d" % offset for offset in range(10)]


@pytest.mark.parametrize("leads_again", [False, True])
async def test_a_leader_that_another_one_has_followed_sends_nothing_in_its_place(
    *, leads_again: bool
) -> None:
    """It has cut its log and got the other's, between two fetches and before discovery looks."""
    log = [batch_at(offset, b"a%d" % offset) for offset in range(10)]
    async with whole_flow(log, 10, chunk_bytes=1_000_000) as whole:
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        source, broker = whole.source, whole.dc1.brokers[0]

        async def serve_on(header: RequestHeader, request: object) -> object:
            source.leader = 0
            answer = ANSWERS[header.api_key](broker, header.api_version, request)
            source.leader = 0 if leads_again else 1
            return answer

        broker.scripts[FetchRequest.API_KEY] = serve_on
        source.batches = log[:6] + [batch_at(offset, b"b%d" % offset) for offset in range(6, 15)]
        source.end, source.leader_epoch = 15, 2
        await until(lambda: whole.partition.state is PartitionState.WAITING)
        assert whole.partition.status.reason == "source: FENCED_LEADER_EPOCH"
        await discover(whole)
        await until(lambda: whole.partition.state is PartitionState.SOURCE_WENT_BACK)
        assert values(whole.target) == [b"a%d" % offset for offset in range(10)]
