"""Decide whether a flow may run, from what the witness says. Pure."""

from enum import Enum

from runtime.coordination.witness import ActiveSite, FlowCommand
from runtime.coordination.zookeeper import SessionState
from wire.values import frozen


class Role(Enum):
    """The role of this daemon for a flow; people and JSON see the values."""

    STARTING = "starting"
    NO_WITNESS = "no witness"
    RUNNING = "running"
    HELD = "held"
    PAUSED = "paused"
    NOT_AUTHORISED = "not authorised"
    """Running, but a cluster refuses our credentials; only a report says so."""
    STOPPING = "stopping"


@frozen
class Witnessed:
    """The witness's nodes as far as they are known; None for one not read yet or not there."""

    session: SessionState
    is_member: bool
    """Nothing has taken from us what our session with the witness gave."""
    active: ActiveSite | None
    command: FlowCommand | None
    garbled: str | None = None
    """The fault of a node that could not be understood, or of the witness as a whole."""
    paused: str | None = None
    """Why people want the whole flow to rest."""


@frozen
class Duty:
    """The role to take, and the reason for it."""

    role: Role
    reason: str = ""


def decide_duty(witnessed: Witnessed, *, source: str, heeds_promotions: bool = True) -> Duty:
    """Return the role that the witness allows a worker of a flow from ``source``.

    Out of the witness's reach nothing is written; once the session or a node of ours is lost,
    somebody else may have taken over.
    """
    if witnessed.session is SessionState.LOST or not witnessed.is_member:
        return Duty(role=Role.NO_WITNESS, reason="the session with the witness is lost")
    if witnessed.session is SessionState.SUSPENDED:
        return Duty(role=Role.HELD, reason="the witness is out of reach")
    forbidden = _forbidden(witnessed, source if heeds_promotions else None)
    if forbidden is not None:
        return Duty(role=Role.PAUSED, reason=forbidden)
    return Duty(role=Role.RUNNING)


def _forbidden(witnessed: Witnessed, source: str | None) -> str | None:
    """Return why the flow must not run, although the witness answers.

    Without ``source`` it runs whichever site is active: no promotion has a say in it.
    """
    if witnessed.garbled is not None:
        return witnessed.garbled
    if source is not None and witnessed.command is not None and not witnessed.command.run:
        return f"stopped by the failover of epoch {witnessed.command.epoch}"
    if witnessed.paused is not None:
        return witnessed.paused
    if witnessed.active is None:
        return "the witness does not say which site is active"
    if source is not None and witnessed.active.site != source:
        return f"{witnessed.active.site} is the active site, not the source {source}"
    return None


def is_left(
    active: ActiveSite | None, command: FlowCommand | None, *, source: str, heeds_promotions: bool
) -> bool:
    """Whether applications write to another site: a lag behind this source grows no more."""
    is_stopped = command is not None and not command.run
    is_elsewhere = active is not None and active.site != source
    return (is_stopped or is_elsewhere) and heeds_promotions


def must_acknowledge(
    command: FlowCommand | None, acknowledged: FlowCommand | None, role: Role
) -> bool:
    """Whether a command has been carried out and nobody has been told."""
    if command is None or command == acknowledged:
        return False
    return role is (Role.RUNNING if command.run else Role.PAUSED)
