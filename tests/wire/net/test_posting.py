"""Many requests in one go: when `post` returns, and what is put off until all answers are read."""

from itertools import groupby

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.doubles.memory_transport import connected_in_memory
from wire.headers import encode_response
from wire.messages.list_groups import ListGroupsRequest
from wire.net.connection import Connection
from wire.net.errors import ConnectionClosed
from wire.net.pending import HALF_OF_MANY, AnswerGathering, AnswerListener
from wire.primitives import Buffer
from wire.schema import pieces


class Heard:
    """Notes in what it shares with others that its answer came, or a fault."""

    def __init__(self, events: list[str], least_bytes: int = 0) -> None:
        self.correlation_id = 0
        self.deadline = 0.0
        self.least_bytes = least_bytes
        self.sent_through = 0
        self.events = events

    def settle(self, _: Buffer) -> None:
        self.events.append("answer")

    def fail(self, _: ConnectionClosed) -> None:
        self.events.append("fault")


async def post(connection: Connection, *heard: Heard) -> None:
    """Ask for groups, each in a request of its own."""
    version = connection.version_of(ListGroupsRequest)
    body = pieces(ListGroupsRequest(), version)
    size = sum(map(len, body))
    await connection.post(ListGroupsRequest, version, [(body, size, one) for one in heard])


class Listener(AnswerListener):
    """Notes when all that came has been given out."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def answers_read(self) -> None:
        self._events.append("done")


async def test_what_is_put_off_is_done_once_all_answers_that_came_are_given_out() -> None:
    async with connected_in_memory() as (broker, connection, _):
        events: list[str] = []
        connection.listen(Listener(events))
        found = await connection.request(ListGroupsRequest())
        answer = encode_response(0, found, connection.version_of(ListGroupsRequest))
        size = sum(map(len, answer))
        events.clear()
        await post(connection, *(Heard(events, size) for _ in range(64)))
        await wait_all_tasks_blocked()
        assert len(broker.asked) == 2 + 64
        assert events[-1] == "done"
        # The first answers come together, and half of those that are left at a time.
        assert sum(runs_of(events)) == 64
        assert len(runs_of(events)) <= 10
        events.clear()
        connection.listen(Listener(events), AnswerGathering(2, 0.75))
        await post(connection, *(Heard(events, size) for _ in range(64)))
        await wait_all_tasks_blocked()
        assert sum(runs_of(events)) == 64
        assert len(runs_of(events)) <= 6


def runs_of(events: list[str]) -> list[int]:
    """Return how many answers came together, each time."""
    return [len(list(run)) for is_run, run in groupby(events, "answer".__eq__) if is_run]


@pytest.mark.parametrize(
    ("gathering", "sizes", "least"),
    [
        (HALF_OF_MANY, [100] * 3, 0),
        (HALF_OF_MANY, [100, 20, 3, 1000], 120),
        (HALF_OF_MANY, [100, 20, 3, 1000, 1000], 123),
        (AnswerGathering(2, 0.75), [100], 0),
        (AnswerGathering(2, 0.75), [100, 20], 120),
        (AnswerGathering(2, 0.75), [100, 20, 3, 1000], 123),
    ],
)
def test_a_share_of_the_answers_is_waited_for_where_there_are_many(
    gathering: AnswerGathering, sizes: list[int], least: int
) -> None:
    assert gathering.least_bytes([Heard([], size) for size in sizes]) == least


async def test_what_is_put_off_is_done_before_faults_are_told() -> None:
    async with connected_in_memory() as (_, connection, transport):
        events: list[str] = []
        connection.listen(Listener(events))
        transport.room = 0
        await post(connection, Heard(events))
        connection.close("over")
        assert events == ["done", "fault"]


async def test_a_post_returns_once_what_was_posted_before_is_gone() -> None:
    async with connected_in_memory() as (broker, connection, transport):
        events: list[str] = []
        transport.room = 0
        with trio.fail_after(1):
            await post(connection, Heard(events))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(post, connection, Heard(events))
            await wait_all_tasks_blocked()
            assert nursery.child_tasks, "the first one is still here"
            connection.close("over")
        assert events == ["fault"] * 2
        assert len(broker.asked) == 1


async def test_posts_of_many_parts_arrive_in_order_whatever_the_socket_takes() -> None:
    async with connected_in_memory() as (broker, connection, transport):
        events: list[str] = []
        transport.room = 7
        for _ in range(20):
            await post(connection, *(Heard(events) for _ in range(5)))
        await wait_all_tasks_blocked()
        assert events == ["answer"] * 100
        assert len(broker.asked) == 1 + 100
