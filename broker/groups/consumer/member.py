"""One member of a group of the new protocol: what it has told of itself, and what it owns."""

from dataclasses import replace
from enum import IntEnum
from typing import Final

from broker.groups.consumer.partitions import NONE, Partitions, by_topic, gathered
from broker.groups.settings import MAX_STRING_BYTES
from wire.consumer_group_records import (
    ClassicMember,
    CurrentValue,
    MemberValue,
    TopicPartitions,
    Value,
)
from wire.values import frozen

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_A_WHILE_EPOCH: Final = -2
"""A static member leaves and is to come back: it keeps its partitions for a session."""

VERSION_BYTES: Final = 2
"""Of the version that the subscription of a classic member begins with."""
_LAST_EPOCH: Final = 2**31 - 1


def following(epoch: int) -> int:
    """Return the next epoch; they begin anew at the end of an int32, where only records lead."""
    return epoch + 1 if epoch < _LAST_EPOCH else 1


class MemberState(IntEnum):
    """How far a member is on its way to its target, by the number in its record."""

    STABLE = 0
    """It owns what was its target at its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions, and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 2
    """It lacks partitions that others have not given up yet."""
    UNKNOWN = 127
    """A later version of Kafka has written another number."""


@frozen
class Member:
    """One member; `topics` are in order, `pattern` is the regular expression it subscribes with."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMember | None = None
    """Set while it speaks the classic protocol."""
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NONE
    revoking: Partitions = NONE
    """What it owned and has to give up; nobody else gets it before."""

    @property
    def is_away(self) -> bool:
        """Whether it is a static member that has left for a while."""
        return self.epoch == LEAVE_FOR_A_WHILE_EPOCH

    @property
    def owned(self) -> Partitions:
        """What nobody else may own."""
        return self.assigned | self.revoking

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it owns what is its target."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def at(self, epoch: int) -> "Member":
        """Return the member in another epoch; it may not have heard of that one yet."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch)

    def told_value(self) -> MemberValue:
        """Return the record of what it has told of itself."""
        return MemberValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=self.topics,
            subscribed_topic_regex=self.pattern,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic=self.classic,
        )

    def with_told(self, value: MemberValue) -> "Member":
        """Return the member as that record describes it."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=value.subscribed_topic_names,
            pattern=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=value.classic,
        )

    def current_value(self) -> CurrentValue:
        """Return the record of what it owns."""
        return CurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=written(self.assigned),
            partitions_pending_revocation=written(self.revoking),
        )

    def with_current(self, value: CurrentValue | None) -> "Member":
        """Return the member as that record describes it; without one it owns nothing."""
        if value is None:
            return replace(
                self,
                epoch=JOIN_EPOCH,
                previous_epoch=JOIN_EPOCH,
                state=MemberState.STABLE,
                assigned=NONE,
                revoking=NONE,
            )
        known = value.state in {state.value for state in MemberState}
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=gathered(value.assigned_partitions),
            revoking=gathered(value.partitions_pending_revocation),
        )


def contradiction(value: Value) -> str | None:
    """Say what of a record can never have been so, None for what no group contradicts.

    No coordinator writes such a record, but whoever may write to `__consumer_offsets` can.
    """
    if not isinstance(value, MemberValue):
        return None
    protocols = () if value.classic is None else value.classic.supported_protocols
    names = [
        value.instance_id,
        value.client_id,
        value.client_host,
        *(one.name for one in protocols),
    ]
    if any(len((name or "").encode()) > MAX_STRING_BYTES for name in names):
        return "a name is longer than the record of a classic group could have it"
    if value.classic is None:
        return None
    if not protocols:
        return "a classic member supports no protocol"
    if len(protocols[0].metadata) < VERSION_BYTES:
        return "a classic member has no subscription"
    return None


def written(partitions: Partitions) -> tuple[TopicPartitions, ...]:
    """Return partitions as records hold them."""
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=indexes)
        for topic_id, indexes in by_topic(partitions).items()
    )
