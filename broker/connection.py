"""One client connection: requests in order, answers in the same order.

    Produce ─► appended ─► waits for the in-sync replicas ─► answered
    Produce ────────────► appended ─► waits ────────────────────────► answered

One request at a time, but that a Produce is begun while those before it wait for other brokers:
Apache Kafka leaves a connection's next request alone until the last one is answered. Answers to
requests that came together, or that became true together, leave together. Nothing that a peer
sends reaches anything but its own connection: what cannot be understood ends it, with one line in
the log.
"""

import logging
import math
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any, Final

import trio

from broker.apis.answers import LaterAnswer, file_bytes, with_throttle
from broker.apis.api import Api
from broker.apis.mutations import MUTATING
from broker.apis.produce_run import RunFrames, append_run
from broker.authorizer.authorizer import EVERY_RIGHT
from broker.awaited import AwaitedAnswer
from broker.context import Call, Node
from broker.framing import BadFrame, CloseConnection, FrameBuffer
from broker.incoming import Incoming
from broker.line_budget import LineBudget
from broker.long_messages import LongMessages, is_long
from broker.outgoing import Outgoing
from broker.produce_runs import ProduceRuns
from broker.quotas.entity import CONSUMER_RATE, PRODUCER_RATE, REQUEST_PERCENTAGE
from broker.quotas.work import Work, measured
from broker.security.entry import IncomingConnection
from broker.security.gate import GateState, Passage
from broker.sending import PeerGone, send_parts
from runtime.process.tasks import background_tasks
from wire.errors import ErrorCode
from wire.headers import RequestHeader, encode_response
from wire.hot.produce_run import read_run
from wire.kernel.chosen import ReadRun
from wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.fetch import FetchRequest, replica_of
from wire.messages.produce import ProduceRequest
from wire.primitives import MalformedMessage
from wire.request_headers import decode_request_header
from wire.schema import TooManyElements
from wire.values import frozen

_LOG = logging.getLogger(__name__)

EVERYBODY: Final = IncomingConnection()
"""A connection of which nothing is asked."""
PRODUCE: Final = "Produce"
MOST_AWAITED: Final = 2_000
"""Requests of one connection that wait for other brokers at the same time. Their batches are in
the log already, so one costs little; but what is allowed here in the time that followers need is
all that one producer gets, and they need long on a busy machine: 64 were 300 records a second."""
LONGEST_REST_MS: Final = 600_000
"""A client that has a tiny quota, and moves much at once, is heard again after so long."""
LONGEST_REST_FOR_WORK_MS: Final = 1_000
"""quota.window.size.seconds, as in Kafka: work is spent in small pieces."""


@frozen
class SocketLimits:
    """The limits of one connection: bytes, times and lines in the log."""

    largest_request_bytes: int
    idle_s: float
    largest_request_of_strangers_bytes: int = 524_288
    """Before SASL has said who asks (sasl.server.max.receive.size)."""
    refusal_delay_s: float = 0.1
    """Before a refused stranger hears of it (connection.failed.authentication.delay.ms)."""
    log_lines: LineBudget = field(default_factory=LineBudget)
    long_messages: LongMessages = field(default_factory=LongMessages)
    """Both shared by all connections that have these limits."""
    read_run: ReadRun = read_run
    """In native code, or in Python."""


class Unserved(ValueError):
    """A request for an API or a version that this broker does not serve."""


class NotLetIn(Exception):
    """The client was refused by SASL, and has been told."""


class Connection:
    """Serves one socket until the peer leaves or misbehaves.

    A `SilenceWatch` looks after `incoming`, so that a silent one ends as if the peer had left.
    """

    def __init__(
        self,
        peer_socket: socket.socket,
        peer: str,
        node: Node,
        apis: Mapping[int, Api],
        limits: SocketLimits,
        entry: IncomingConnection = EVERYBODY,
    ) -> None:
        self._peer_socket = peer_socket
        self._peer = peer
        self._node = node
        self._apis = apis
        self._limits = limits
        self._metrics = node.metrics
        self._client_host = peer.rpartition(":")[0]
        self._listener = entry.listener
        self._passage = entry.passage
        self._authenticating = trio.CancelScope(deadline=entry.deadline)
        # Over TLS parts of files are read and encrypted; everywhere else they never come in here.
        tls = entry.tls
        recv_into = peer_socket.recv_into if tls is None else tls.recv_into
        send = partial(send_parts, peer_socket) if tls is None else tls.send_parts
        self._is_broker = False
        self._rights = EVERY_RIGHT
        self._last_call: Call | None = None
        self._be(entry.principal)
        is_stranger = entry.passage is not None and entry.passage.is_demanded
        self._frames = FrameBuffer(
            limits.largest_request_of_strangers_bytes
            if is_stranger
            else limits.largest_request_bytes
        )
        self.incoming = Incoming(
            peer_socket, peer, recv_into, self._frames, self._metrics, is_drained=tls is None
        )
        self._runs = ProduceRuns(self._frames, limits.read_run)
        self._outgoing = Outgoing(apis, send, limits.idle_s, self._metrics, limits.long_messages)
        self._overlaps = False
        self._awaited: deque[AwaitedAnswer] = deque()
        self._come = trio.Event()
        self._given = trio.Event()
        self._rests_until = -math.inf
        self._lost: OSError | PeerGone | None = None

    async def serve(self) -> None:
        """Answer until the connection ends; a fault of the peer's ends here, in one log line."""
        try:
            if self._passage is None:
                await self._serve()
            else:
                await self._serve_with_gate()
        except (BadFrame, MalformedMessage, TooManyElements, Unserved, CloseConnection) as reason:
            self._complain(f"{self._peer}: connection closed: {reason}")
        except NotLetIn as reason:
            self._metrics.failed_authentications += 1
            self._complain(f"{self._peer}: not let in on {self._listener}: {reason}")
        except (OSError, PeerGone) as error:
            _LOG.debug("%s: connection lost: %s", self._peer, error)
        except Exception:  # noqa: BLE001
            # A mistake of ours in one request must not take the other clients' broker away.
            self._complain(f"{self._peer}: connection closed: our mistake", _LOG.exception)

    def _complain(self, text: str, log: Callable[..., None] = _LOG.warning) -> None:
        line = self._limits.log_lines.line(text, trio.current_time())
        if line is not None:
            log("%s", line)

    async def _serve_with_gate(self) -> None:
        """Serve, but a stranger who takes too long to say who it is; raises NotLetIn."""
        with self._authenticating:
            await self._serve()
        if self._authenticating.cancelled_caught:
            raise NotLetIn("it took too long to authenticate")

    async def _serve(self) -> None:
        """Serve with one task until an answer has to be awaited, from then on with two."""
        await self._take_requests()
        if not self._awaited:
            return
        self._overlaps = True
        async with background_tasks() as nursery:
            reading = trio.CancelScope()
            nursery.start_soon(self._give_awaited, reading)
            with reading:
                await self._take_requests()
        if self._lost is not None:
            raise self._lost

    async def _take_requests(self) -> None:
        """Take requests until the peer leaves, or until the first answer that is awaited."""
        while self._overlaps or not self._awaited:
            if await self._take_run():
                continue
            frame = self._frames.next_frame()
            if frame is not None:
                await self._rest()
                await self._answer(frame)
                continue
            if not self._awaited:
                await self._outgoing.flush()
            if not await self.incoming.receive():
                return

    async def _take_run(self) -> bool:
        """Append plain Produce requests that came together; False where there are none.

        Each request of a client that has quotas or limited rights is handled by itself.
        """
        most = MOST_AWAITED - len(self._awaited)
        if most <= 0 or not self._is_unlimited():
            return False
        found = self._runs.next(most)
        if found is None:
            return False
        view, run = found
        started = trio.current_time()
        header = RequestHeader(ProduceRequest.API_KEY, run.version, 0, run.client_id)
        answers = append_run(view, run, self._call(header), as_frames=not self._awaited)
        if answers is None:
            self._runs.leave(run)
            return False
        self._runs.take(run)
        if isinstance(answers, RunFrames):
            self._metrics.observe(PRODUCE, trio.current_time() - started, len(run.requests))
            self._outgoing.add_frames(answers.frames)
            if self._outgoing.is_full:
                await self._outgoing.flush()
            return True
        for correlation_id, answer in answers:
            each = header._replace(correlation_id=correlation_id)
            await self._await_later(
                AwaitedAnswer(
                    each, answer, PRODUCE, started, was_asked_at_length=False, throttle_ms=0
                )
            )
        return True

    def _is_unlimited(self) -> bool:
        """Say whether requests need not be looked at one by one. Raises CloseConnection."""
        return (
            not self._rights.are_limited
            and self._node.quotas.table.is_empty
            and self._rests_until <= trio.current_time()
            and (self._passage is None or self._passage.is_open(self._node.clock.monotonic_ms()))
        )

    async def _give_awaited(self, reading: trio.CancelScope) -> None:
        """Give the answers that are awaited, in order. Nobody else writes while there are any."""
        try:
            while True:
                while self._awaited:
                    await self._give_ready()
                await self._come.wait()
                self._come = trio.Event()
        except (OSError, PeerGone) as error:
            self._lost = error
            reading.cancel()

    async def _give_ready(self) -> None:
        """Give the first answer that is awaited, and with it those behind it that are ready."""
        given = 0
        while not given or (
            given < len(self._awaited)
            and self._awaited[given].is_ready
            and not self._outgoing.is_full
        ):
            header, answer, name, started, at_length, throttle_ms = self._awaited[given]
            message = await answer.wait() if isinstance(answer, LaterAnswer) else answer
            if throttle_ms:
                message = with_throttle(message, throttle_ms)
            self._metrics.observe(name, trio.current_time() - started)
            await self._outgoing.answer(header, message, is_long=at_length)
            given += 1
        await self._outgoing.flush()
        for _ in range(given):  # only now: as long as there are any, nobody else writes
            self._awaited.popleft()
        self._given.set()

    async def _wait_awaited_below(self, limit: int) -> None:
        while len(self._awaited) >= limit:
            self._given = trio.Event()
            await self._given.wait()

    async def _pass_gate(self, passage: Passage, frame: memoryview) -> bool:
        """Say whether a request may be served; what belongs to SASL is answered here."""
        was_inside = passage.state is GateState.INSIDE
        step = passage.take(frame, self._node.clock.monotonic_ms())
        if step is None:
            return True
        await self._wait_awaited_below(1)
        if step.refusal is not None:
            await trio.sleep(self._limits.refusal_delay_s)
        self._outgoing.add([*step.answer])
        await self._outgoing.flush()
        if step.refusal is not None:
            raise NotLetIn(step.refusal)
        if passage.state is GateState.INSIDE and not was_inside:
            self._become(passage)
            self._authenticating.deadline = math.inf
            self._frames.limit(self._limits.largest_request_bytes)
            self._metrics.authentications += 1
            _LOG.debug("%s: is %s on %s", self._peer, self._principal, self._listener)
        return False

    def _become(self, passage: Passage) -> None:
        """Note who the peer has proved to be; a broker's name is no user's."""
        if passage.is_of_broker:
            self._last_call = None
            self._is_broker = True
            self._rights = EVERY_RIGHT
        else:
            self._be(passage.principal)

    def _be(self, principal: str) -> None:
        node = self._node
        self._last_call = None
        self._principal = principal
        self._is_broker = principal in node.cluster_brokers.principals
        if node.acls is None or self._is_broker:
            self._rights = EVERY_RIGHT
        else:
            self._rights = node.acls.authorizer.rights_of(principal, self._client_host)

    async def _answer(self, frame: memoryview) -> None:
        if self._passage is not None and not await self._pass_gate(self._passage, frame):
            return
        header, position = decode_request_header(frame)
        api = self._apis.get(header.api_key)
        if api is None:
            raise Unserved(f"API {header.api_key} is not served")
        is_served = header.api_version in api.versions
        await self._wait_awaited_below(1 if api.may_wait or not is_served else MOST_AWAITED)
        if not is_served:
            self._refuse_version(header, api)
            return
        self._runs.handled(header.api_key)
        request, at_length = await self._limits.long_messages.decode(
            api, frame, header.api_version, position
        )
        if api.may_wait:
            await self._outgoing.flush()
        started = trio.current_time()
        size = len(frame)
        answer, work = await self._handle(api, request, header)
        throttle_ms = self._count(request, answer, header, size)
        throttle_ms = self._rest_for(max(throttle_ms, self._count_work(work, header)))
        if self._awaited or isinstance(answer, LaterAnswer):
            await self._await_later(
                AwaitedAnswer(header, answer, api.name, started, at_length, throttle_ms)
            )
            return
        if throttle_ms and answer is not None:
            answer = with_throttle(answer, throttle_ms)
        self._metrics.observe(api.name, trio.current_time() - started)
        at_length = at_length or (api.answers_at_length and is_long(answer))
        await self._outgoing.answer(header, answer, is_long=at_length)
        if self._outgoing.is_full:
            await self._outgoing.flush()

    async def _handle(
        self,
        api: Api,
        request: Any,  # noqa: ANN401 - one per API
        header: RequestHeader,
    ) -> tuple[Any, Work | None]:
        """Return the answer, and the work that it took where clients have quotas of it."""
        handled = api.answer(request, self._call(header))
        if self._is_broker or not self._node.quotas.table.has(REQUEST_PERCENTAGE):
            return await handled, None
        work = Work()
        return await measured(handled, work), work

    def _count_work(self, work: Work | None, header: RequestHeader) -> int:
        """Hold a request's work against the client's quota; return for how long it has to rest."""
        if work is None:
            return 0
        rest_ms = self._node.quotas.throttle_ms(
            REQUEST_PERCENTAGE,
            self._principal,
            header.client_id,
            work.percent_seconds,
            self._node.clock.monotonic_ms(),
        )
        return min(rest_ms, LONGEST_REST_FOR_WORK_MS)

    def _rest_for(self, throttle_ms: int) -> int:
        """Begin a rest; return how long it is."""
        throttle_ms = int(min(throttle_ms, self._limits.idle_s * 1000, LONGEST_REST_MS))
        if throttle_ms:
            self._rests_until = trio.current_time() + throttle_ms / 1000
        return throttle_ms

    def _count(
        self,
        request: Any,  # noqa: ANN401 - one per API
        answer: Any,  # noqa: ANN401 - one per API
        header: RequestHeader,
        size: int,
    ) -> int:
        """Hold what was moved against the client's quota; return for how long it has to rest."""
        quotas = self._node.quotas
        if quotas.table.is_empty:
            return 0
        if header.api_key == ProduceRequest.API_KEY:
            key = PRODUCER_RATE
        elif header.api_key == FetchRequest.API_KEY and replica_of(request) < 0:
            key, size = CONSUMER_RATE, file_bytes(answer)
        else:
            return int(answer.throttle_time_ms) if header.api_key in MUTATING else 0
        now_ms = self._node.clock.monotonic_ms()
        return quotas.throttle_ms(key, self._principal, header.client_id, size, now_ms)

    async def _rest(self) -> None:
        """Leave the client's requests alone until its quota allows more (KIP-219)."""
        if self._rests_until > trio.current_time():
            if not self._awaited:
                await self._outgoing.flush()
            await trio.sleep_until(self._rests_until)

    async def _await_later(self, one: AwaitedAnswer) -> None:
        """Leave the answer to the task that gives awaited ones; what is ready leaves before."""
        if one.answer is None:
            return  # a producer that asked for no answer
        if not self._awaited:
            await self._outgoing.flush()
        self._awaited.append(one)
        self._come.set()

    def _call(self, header: RequestHeader) -> Call:
        """Return what surrounds the request: mostly what surrounded the one before it."""
        call = self._last_call
        if (
            call is None
            or call.api_version != header.api_version
            or call.client_id != header.client_id
        ):
            call = self._last_call = self._new_call(header)
        return call

    def _new_call(self, header: RequestHeader) -> Call:
        return Call(
            node=self._node,
            api_version=header.api_version,
            client_id=header.client_id,
            client_host=self._client_host,
            listener=self._listener,
            principal=self._principal,
            is_broker=self._is_broker,
            rights=self._rights,
            aside=self._limits.long_messages,
        )

    def _refuse_version(self, header: RequestHeader, api: Api) -> None:
        """Answer ApiVersions in a form that every client reads (KIP-511); end all others."""
        if header.api_key != ApiVersionsRequest.API_KEY:
            raise Unserved(
                f"{api.name} version {header.api_version} is not served, only "
                f"{api.versions.start} to {api.versions.stop - 1}"
            )
        listing = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=tuple(served.listed for served in self._apis.values()),
        )
        self._outgoing.add([*encode_response(header.correlation_id, listing, 0)])
