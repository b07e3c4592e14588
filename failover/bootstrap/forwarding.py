"""One client's connection, forwarded to one broker of the active site until that is another one.

    client ──► requests, each whole ──► gate ──► broker    expected: what is under way
           ◄── answers: passed on as they come, ◄──
               or changed where they hold addresses or ids

Brokers answer a connection in the order in which they were asked, so the next answer is to the
first that is expected. A connection belongs to one epoch: it ends when another site becomes
active, after the answers to what was written are here.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from math import inf
from struct import Struct
from types import MappingProxyType
from typing import Final

import trio

from failover.bootstrap.active_site import FollowedSite
from failover.bootstrap.addresses import CHANGED, ShownAddresses, shown
from failover.bootstrap.answers import lets_in, new_producer, no_new_groups, no_transactions
from failover.bootstrap.arrivals import ASKS_WHERE, FETCH, ArrivedClient, look_again
from failover.bootstrap.byte_budget import FREE_BYTES, ByteBudget
from failover.bootstrap.denials import denied_id, denied_write, for_now, may_be_fence
from failover.bootstrap.frame_source import FrameSource
from failover.bootstrap.group_members import GroupMembers, Member
from failover.bootstrap.leaving import (
    HEARTBEAT,
    JOIN,
    SPEAKS_FOR,
    leaving,
    member_of,
    rebalancing,
)
from failover.bootstrap.produce_requests import make_epochs_own
from failover.bootstrap.sites.broker_addresses import BrokerAddresses
from failover.bootstrap.spoken import (
    NEW_GROUPS,
    NotCarried,
    is_too_new,
    require_carried,
    too_new_answer,
)
from failover.bootstrap.the_way import HEAD
from runtime.coordination.witness import ActiveSite
from runtime.process.fault_note import FaultNote
from runtime.process.output import escaped
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.create_topics import CreateTopicsRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.produce import ProduceRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.rights import Right
from wire.request_headers import decode_request_header
from wire.schema import decode_prefix
from wire.values import frozen

MOST_REQUEST_BYTES: Final = 100 * 1024 * 1024
"""As Kafka's own socket.request.max.bytes."""
MOST_LOGIN_BYTES: Final = 512 * 1024
"""As Kafka's own sasl.server.max.receive.size."""
MOST_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Of an answer that is changed; others are passed on whatever their size."""
MOST_UNDER_WAY: Final = 10_000
"""So many requests of a connection wait for their answers; brokers take one at a time."""
MOST_MEMBERS: Final = 100
"""So many members a connection speaks for, of which clients have one; the promotion waits for the
others as if they stayed."""
_LEAST_BYTES: Final = 8
_SIZE_BYTES: Final = 4
IDLE_S: Final = 660.0
"""Brokers end a connection that is silent for ten minutes; this is for a peer that is gone."""
STALLED_S: Final = 60.0
"""So long a frame that is held may take to come or to go, or to be let through the gate."""
LAST_ANSWERS_S: Final = 1.0
"""So long the answers to what was written are waited for once another site is active."""
_PRODUCE: Final = ProduceRequest.API_KEY
_INIT_PRODUCER: Final = InitProducerIdRequest.API_KEY
_HELD: Final = frozenset({_PRODUCE, _INIT_PRODUCER, CreateTopicsRequest.API_KEY})
"""What the present site must not hear of any more while a promotion leads away from it."""
_LOGIN: Final = SaslAuthenticateRequest.API_KEY
_BEFORE_LOGIN: Final = frozenset({ApiVersionsRequest.API_KEY, SaslHandshakeRequest.API_KEY, _LOGIN})
"""What a client may ask where brokers want a login, before it has one."""
_LOOKED_AT: Final = CHANGED.keys() | {_PRODUCE, _INIT_PRODUCER, HEARTBEAT, _LOGIN}
"""Answers that may be changed; all others are passed on as they come."""
_ANSWER: Final = Struct(">ii")
TRANSACTIONS: Final = "transactions"
NEW_PROTOCOL: Final = "new-groups"
NOT_SPOKEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        TRANSACTIONS: "transactions do not go through: such an application must reach the brokers"
        " themselves",
        NEW_PROTOCOL: "groups of the new protocol do not go through: set group.protocol=classic",
    }
)
"""What a client hears by an error, and operators by the log."""
SHOWN_ID: Final = 100


@frozen(kw_only=False)
class Expected:
    """One request under way; `answer` is ours, where the broker does not hear of the request."""

    correlation_id: int
    key: int
    version: int
    answer: bytes | None = None
    is_swallowed: bool = False
    """Whether the client does not hear of the answer: it asked for something else."""
    asked: float = field(default_factory=trio.current_time)


class ForwardingCounts:
    """What all forwarded connections did."""

    def __init__(self) -> None:
        self.requests_bytes = 0
        self.answers_bytes = 0
        self.held = 0
        """Requests at the gate now."""
        self.softened = 0
        """Answers whose refusals were made ones for the moment."""
        self.left_out = 0
        """Brokers without a port that answers did not show."""
        self.not_spoken = dict.fromkeys(NOT_SPOKEN, 0)
        """Requests for what does not go through."""
        self.unanswered = 0
        """Produce requests whose answers did not come before their connection ended by a switch."""


@frozen
class Forwarding:
    """What all forwarded connections share."""

    followed: FollowedSite
    ask_witness: Callable[[], Awaitable[ActiveSite | None]]
    """Tells what the witness says now; None if it does not say."""
    ask_fence: Callable[[str], Awaitable[frozenset[Right] | None]]
    """Tells what a fence denies everybody at a site now; None where that is not known."""
    places: ShownAddresses
    budget: ByteBudget
    brokers: BrokerAddresses
    members: GroupMembers
    counts: ForwardingCounts
    without_port: FaultNote = field(default_factory=lambda: FaultNote("brokers without a port"))
    not_spoken: FaultNote = field(default_factory=lambda: FaultNote("clients that are refused"))


class ForwardedConnection:
    """One connection to a broker of `site`, of one epoch."""

    def __init__(
        self,
        client: trio.abc.Stream,
        broker: trio.abc.Stream,
        shared: Forwarding,
        note_movement: Callable[[], None],
        host: str = "",
        *,
        wants_login: bool = False,
    ) -> None:
        """Belong to the site that is active now; `note_movement` is called when bytes move.

        `host` is where the client is. Where the brokers want a login, a client without one holds no
        memory of others and speaks for no member: they would refuse it only after that.
        """
        answer = shared.followed.answer
        assert answer.site is not None, "a connection is reached for a site"
        self._site = answer.site
        self._epoch = answer.epoch
        self._client = client
        self._broker = broker
        self._shared = shared
        self._note_movement = note_movement
        self._host = host
        self._is_in = not wants_login
        """Whether the client needs no login, or has one."""
        self._scope = trio.CancelScope(deadline=trio.current_time() + IDLE_S)
        self._requests = FrameSource(client, self._moved)
        self._answers = FrameSource(broker, self._moved)
        self._expected: deque[Expected] = deque()
        self._written = 0
        """Produce requests that are not answered yet."""
        self._seen_open = inf
        """When the site was seen to be open for a client that was denied something last."""
        self.waiting_bytes = 0
        """Of our answers that wait for those before them."""
        self._answered = trio.Event()
        self._fault: Exception | None = None
        self._members: set[Member] = set()
        """For whom this connection has spoken."""

    async def carry(self) -> None:
        """Carry both ways until a side leaves or is silent for too long.

        Raises NotCarried, IdNotKnown and MalformedMessage.
        """
        try:
            with self._scope:
                async with trio.open_nursery() as tasks:
                    tasks.start_soon(self._end_with, self._ask)
                    tasks.start_soon(self._end_with, self._tell)
        finally:
            for member in self._members:
                self._shared.members.remove(member)
        if self._fault is not None:
            raise self._fault

    async def _end_with(self, direction: Callable[[], Awaitable[None]]) -> None:
        """End the connection with either direction; the first fault is its own."""
        try:
            await direction()
        except Exception as fault:  # noqa: BLE001 - `carry` raises it, outside of the nursery
            self._fault = self._fault or fault
        self._scope.cancel()

    async def finish(self) -> None:
        """Wait for the answers to what was written, but not for long; then end the connection."""
        with trio.move_on_after(LAST_ANSWERS_S):
            while self._written:
                await self._wait_answered()
        self._shared.counts.unanswered += self._written
        self._scope.cancel()

    async def _wait_answered(self) -> None:
        """Wait for the next answer; two tasks may."""
        if self._answered.is_set():
            self._answered = trio.Event()
        await self._answered.wait()

    def _moved(self) -> None:
        self._scope.deadline = trio.current_time() + IDLE_S
        self._note_movement()

    # --- requests ------------------------------------------------------------------------------

    async def _ask(self) -> None:
        """Pass requests on until the client leaves."""
        all_hold = min(MOST_REQUEST_BYTES, self._shared.budget.most)
        while (head := await self._requests.look(HEAD.size)) is not None:
            size, key, version = HEAD.unpack(head)
            if not self._is_in and key not in _BEFORE_LOGIN:
                raise NotCarried(f"a request of API {key} without a login, which brokers here want")
            most = all_hold if self._is_in else min(MOST_LOGIN_BYTES, all_hold)
            if not _LEAST_BYTES <= size <= most:
                raise NotCarried(
                    f"a request of {size} bytes, where {_LEAST_BYTES} to {most} are expected: does "
                    "the client speak TLS on a listener without it?"
                )
            if not is_too_new(key, version):
                require_carried(key, version)
            while len(self._expected) >= MOST_UNDER_WAY:
                await self._wait_answered()
            async with self._shared.budget.hold(size):
                with _within(f"a request of {size} bytes"):
                    frame = await self._requests.take(_SIZE_BYTES + size)
                await self._pass(frame, key, version)
            self._shared.counts.requests_bytes += _SIZE_BYTES + size

    async def _pass(self, frame: bytearray, key: int, version: int) -> None:
        """Pass one request on, once it may be, or answer it."""
        correlation_id = int.from_bytes(frame[8:12], "big", signed=True)
        answer = self._own_answer(frame, key, version, correlation_id)
        if answer is not None:
            await self._answer(Expected(correlation_id, key, version, answer))
            return
        if key in ASKS_WHERE:
            arrivals = self._shared.followed.arrivals
            arrivals.note(self._client_of(frame), trio.current_time())
        if key in SPEAKS_FOR:
            self._speak_for(member_of(memoryview(frame)[_SIZE_BYTES:]))
        if key == JOIN and not self._is_open:
            await self._leave(frame, correlation_id)
            return
        if key in _HELD:
            await self._wait_open()
        is_answered = True
        if key == _PRODUCE:
            is_answered = make_epochs_own(memoryview(frame)[_SIZE_BYTES:], self._epoch)
            self._written += is_answered
        if is_answered:
            self._expected.append(Expected(correlation_id, key, version))
        await self._broker.send_all(frame)
        self._moved()

    def _own_answer(
        self, frame: bytearray, key: int, version: int, correlation_id: int
    ) -> bytes | None:
        """Return the whole answer to what the broker need not hear of, None for all else."""
        if is_too_new(key, version):
            return too_new_answer(correlation_id)
        if key == NEW_GROUPS:
            self._note_not_spoken(frame, NEW_PROTOCOL)
            return no_new_groups(correlation_id, version)
        if key == _INIT_PRODUCER and _is_transactional(frame):
            self._note_not_spoken(frame, TRANSACTIONS)
            return no_transactions(correlation_id, version)
        if key == FETCH and not self._may_read(frame):
            return look_again(memoryview(frame)[_SIZE_BYTES:])
        return None

    def _note_not_spoken(self, frame: bytearray, what: str) -> None:
        self._shared.counts.not_spoken[what] += 1
        client = escaped(str(self._client_of(frame).client_id)[:SHOWN_ID])
        self._shared.not_spoken.note(f"{self._host} ({client}): {NOT_SPOKEN[what]}", what)

    async def _answer(self, expected: Expected) -> None:
        """Give an answer of ours, behind those that are expected.

        So much of ours waits at most as a connection may hold beside the budget, and one more.
        """
        assert expected.answer is not None, "it is ours"
        while self._expected and self.waiting_bytes >= FREE_BYTES:
            await self._wait_answered()
        if self._expected:
            self._expected.append(expected)
            self.waiting_bytes += len(expected.answer)
        else:  # the other task waits for the broker, which has nothing to say
            await self._client.send_all(expected.answer)

    def _may_read(self, frame: bytearray) -> bool:
        arrivals, now = self._shared.followed.arrivals, trio.current_time()
        return not arrivals.is_guarded(now) or arrivals.may_read(self._client_of(frame), now)

    def _client_of(self, frame: bytearray) -> ArrivedClient:
        header, _ = decode_request_header(memoryview(frame)[_SIZE_BYTES:])
        return ArrivedClient(self._host, header.client_id)

    def _speak_for(self, member: Member | None) -> None:
        if member is None or member in self._members or len(self._members) >= MOST_MEMBERS:
            return
        if self._shared.members.add(member):
            self._members.add(member)

    async def _leave(self, frame: bytearray, correlation_id: int) -> None:
        """Have the member leave, and end the connection once it can join where it has to."""
        leave = leaving(memoryview(frame)[_SIZE_BYTES:])
        if leave is not None:
            self._expected.append(Expected(correlation_id, JOIN, 0, is_swallowed=True))
            await self._broker.send_all(leave)
        await self._wait_open()
        self._scope.cancel()
        await trio.lowlevel.checkpoint()

    async def _wait_open(self) -> None:
        """Wait while a promotion leads away from this site. Raises NotCarried in the end."""
        if self._is_open:
            return
        self._shared.counts.held += 1
        try:
            with _within("a promotion, and a request held for it,"):
                while not self._is_open:
                    await self._shared.followed.news.wait()
        finally:
            self._shared.counts.held -= 1

    @property
    def _is_open(self) -> bool:
        """Whether the site is the active one, and no promotion leads away from it."""
        answer = self._shared.followed.answer
        return answer.site == self._site and not answer.is_moving

    # --- answers -------------------------------------------------------------------------------

    async def _tell(self) -> None:
        """Pass answers on until the broker leaves."""
        while (head := await self._answers.look(_ANSWER.size)) is not None:
            size, correlation_id = _ANSWER.unpack(head)
            if not self._expected or self._expected[0].correlation_id != correlation_id:
                raise NotCarried(f"the broker answers {correlation_id}, which nobody has asked")
            expected = self._expected[0]
            if expected.key in _LOOKED_AT or expected.is_swallowed:
                await self._tell_changed(size, expected)
            else:
                await self._answers.pass_on(_SIZE_BYTES + size, self._client)
            self._shared.counts.answers_bytes += _SIZE_BYTES + size
            self._expected.popleft()
            self._written -= expected.key == _PRODUCE
            self._answered.set()
            while self._expected and (ours := self._expected[0].answer) is not None:
                await self._client.send_all(ours)
                self._expected.popleft()
                self.waiting_bytes -= len(ours)
                self._answered.set()

    async def _tell_changed(self, size: int, expected: Expected) -> None:
        most = min(MOST_ANSWER_BYTES, self._shared.budget.most)
        if not _LEAST_BYTES - _SIZE_BYTES <= size <= most:
            raise NotCarried(
                f"an answer of {size} bytes to API {expected.key}, where {most} are held at most"
            )
        async with self._shared.budget.hold(size):
            with _within(f"an answer of {size} bytes"):
                frame = await self._answers.take(_SIZE_BYTES + size)
                if not expected.is_swallowed:
                    await self._client.send_all(await self._changed(frame, expected))
        self._moved()

    async def _changed(self, frame: bytearray, expected: Expected) -> bytes | bytearray:
        """Return the whole answer as the client gets it."""
        body = memoryview(frame)[_SIZE_BYTES:]
        if expected.key in CHANGED:
            answer = shown(body, expected.key, expected.version, self._shared.places)
            self._shared.brokers.learn(self._site, answer.brokers)
            for why in answer.left_out:
                self._shared.counts.left_out += 1
                self._shared.without_port.note(f"{self._site}: {why}")
            is_softened = answer.denied and await self._is_for_now(answer.denied, expected)
            return self._soften(answer.frame, expected) if is_softened else answer.frame
        if expected.key == _LOGIN:
            self._is_in = self._is_in or lets_in(body, expected.version)
            return frame
        if expected.key == HEARTBEAT:
            return frame if self._is_open else rebalancing(body, expected.version)
        denied = (denied_write if expected.key == _PRODUCE else denied_id)(body, expected.version)
        if denied is not None and await self._is_for_now(denied, expected):
            return self._soften(frame, expected)
        if expected.key == _PRODUCE:
            return frame
        return new_producer(body, expected.version, self._epoch)

    def _soften(self, frame: bytes | bytearray, expected: Expected) -> bytes:
        self._shared.counts.softened += 1
        return for_now(memoryview(frame)[_SIZE_BYTES:], expected.key, expected.version)

    async def _is_for_now(self, denied: frozenset[str], expected: Expected) -> bool:
        """Tell whether what a client is denied may be denied to everybody for the moment.

        A site that is closed by rights refuses writes as if the client had none. A fence may be
        lifted behind the denial and before the look at it, so what is seen to be open is denied
        only to a request that has come since.
        """
        closed = await self._shared.ask_fence(self._site)
        is_fenced = closed is None or may_be_fence(denied, expected.key, closed)
        if is_fenced or await self._is_moving():
            self._seen_open = inf
            return True
        seen_open, self._seen_open = self._seen_open, trio.current_time()
        return expected.asked <= seen_open

    async def _is_moving(self) -> bool:
        """Tell whether a promotion leads away, or may: by the witness's last word."""
        said = await self._shared.ask_witness()
        return said is None or said.moving_to is not None or said.site != self._site


def _is_transactional(frame: bytearray) -> bool:
    view = memoryview(frame)[_SIZE_BYTES:]
    header, position = decode_request_header(view)
    request, _ = decode_prefix(InitProducerIdRequest, view, header.api_version, position)
    return request.transactional_id is not None


@contextmanager
def _within(what: str) -> Iterator[None]:
    """End the block after STALLED_S: raises NotCarried naming `what` stood still."""
    with trio.move_on_after(STALLED_S) as limit:
        yield
    if limit.cancelled_caught:
        raise NotCarried(f"{what} stood still for {STALLED_S:g} s")
