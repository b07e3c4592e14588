"""ConsumerGroupHeartbeat: all that a member of the new protocol asks for (KIP-848)."""

from uuid import uuid4

from broker.apis.answers import with_short_messages
from broker.authorizer.authorizer import Rights
from broker.context import Call
from broker.groups.consumer.heartbeats import Beating, MemberRefusal, refused
from broker.groups.consumer.member import JOIN_EPOCH, LEAVE_FOR_A_WHILE_EPOCH
from broker.groups.consumer.partitions import gathered
from broker.groups.consumer.patterns import BadPattern, compiled
from broker.groups.consumer.sight import SEES_ALL, RightsSeen
from broker.groups.settings import MAX_STRING_BYTES, ConsumerGroupSettings
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

OWN_MEMBER_ID_SINCE = 1
"""Members make their ids themselves, so that a join whose answer is lost leaves no second one."""
SHORT_CHARS = MAX_STRING_BYTES // 4
"""A name of so few characters fits, whatever they are."""


async def handle(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse:
    """Answer at once, when what was decided is safe."""
    refusal = _refusal(request, call.api_version, call.node.groups.settings.consumer)
    if refusal is None:
        answer = await call.node.groups.heartbeat(_beating(request, call), _sight(call.rights))
        if not isinstance(answer, ErrorCode):
            return answer if answer.error_message is None else _shortened(answer)
        refusal = MemberRefusal(answer, "")
    return _shortened(refused(refusal))


def _shortened(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    short = with_short_messages(answer)
    assert isinstance(short, ConsumerGroupHeartbeatResponse)
    return short


def _refusal(
    request: ConsumerGroupHeartbeatRequest, version: int, settings: ConsumerGroupSettings
) -> MemberRefusal | None:
    """Return what is wrong with a request by itself, None for nothing."""
    if not settings.is_served:
        reason = "group.coordinator.rebalance.protocols holds no consumer"
        return MemberRefusal(ErrorCode.UNSUPPORTED_VERSION, reason)
    wrong = _wrong(request, version)
    if wrong is not None:
        return MemberRefusal(ErrorCode.INVALID_REQUEST, wrong)
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.assignors:
        reason = f"{assignor!r} is none of {', '.join(settings.assignors)}"
        return MemberRefusal(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)
    try:
        if request.subscribed_topic_regex:  # most beats have none, and this is a tenth of a beat
            compiled(request.subscribed_topic_regex)
    except BadPattern as reason:
        words = f"SubscribedTopicRegex {request.subscribed_topic_regex!r}: {reason}"
        return MemberRefusal(ErrorCode.INVALID_REGULAR_EXPRESSION, words)
    return None


def _wrong(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """Return what cannot be of a request, None for nothing; asked of every beat."""
    is_joining = request.member_epoch == JOIN_EPOCH
    wrong = _wrong_name(request, needs_id=not is_joining or version >= OWN_MEMBER_ID_SINCE)
    if wrong is not None:
        return wrong
    if request.member_epoch < LEAVE_FOR_A_WHILE_EPOCH:
        return f"MemberEpoch is {request.member_epoch}"
    if request.member_epoch == LEAVE_FOR_A_WHILE_EPOCH and request.instance_id is None:
        return "InstanceId is missing"
    return _wrong_of_joining(request) if is_joining else None


def _wrong_name(request: ConsumerGroupHeartbeatRequest, *, needs_id: bool) -> str | None:
    if not request.group_id:
        return "GroupId is empty"
    if request.instance_id == "":
        return "InstanceId is empty"
    if request.rack_id == "":
        return "RackId is empty"
    if needs_id and not request.member_id:
        return "MemberId is empty"
    names = (request.group_id, request.member_id, request.instance_id, request.rack_id)
    return "a name is too long" if any(name and _is_too_long(name) for name in names) else None


def _is_too_long(name: str) -> bool:
    return len(name) > SHORT_CHARS and len(name.encode(errors="replace")) > MAX_STRING_BYTES


def _wrong_of_joining(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms < 0:
        return "RebalanceTimeoutMs is missing"
    if request.topic_partitions != ():
        return "TopicPartitions is not empty"
    if not request.subscribed_topic_names and not request.subscribed_topic_regex:
        return "neither SubscribedTopicNames nor SubscribedTopicRegex is there"
    return None


def _sight(rights: Rights) -> RightsSeen:
    if not rights.are_limited:
        return SEES_ALL
    return RightsSeen(
        sees=lambda name: rights.may(Operation.DESCRIBE, ResourceType.TOPIC, name),
        changes=rights.changes,
    )


def _beating(request: ConsumerGroupHeartbeatRequest, call: Call) -> Beating:
    owned = request.topic_partitions
    return Beating(
        group_id=request.group_id,
        member_id=request.member_id or str(uuid4()),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=request.subscribed_topic_names,
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else gathered(owned),
        client_id=call.client_id or "",
        client_host=f"/{call.client_host}",  # as Java prints an address
    )
