"""The states a mirrored partition can be in; it is always in exactly one, visible with its reason.

discovering ─► positioning ─► catching up ◄─► streaming
                  ▲  │             │              │
                  │  └─────────────┴──────┬───────┘
                  └── waiting ◄───────────┤   a fault that passes: tried again by itself
                                          ├─► paused          by a command or the witness
                                          └─► one of STOPPED  needs somebody to decide

A command decides, or beforehand the flow's policy for the cause
(runtime.configuration.flow_section). The mirror asks for missing rights, and sends what the target
has refused, again by itself.
"""

from enum import Enum
from typing import Final

from runtime.configuration.flow_section import FlowConfig
from runtime.set_option import set_option
from wire.topic_partition import TopicPartition
from wire.values import frozen


class PartitionState(Enum):
    """The state of a partition; people and JSON see the values."""

    DISCOVERING = "discovering"
    POSITIONING = "positioning"
    CATCHING_UP = "catching up"
    STREAMING = "streaming"
    WAITING = "waiting"
    PAUSED = "paused"
    RETENTION_OVERRUN = "retention overrun"
    TOPIC_RECREATED = "topic recreated"
    COPY_RENAMED = "copy renamed"
    SOURCE_WENT_BACK = "source went back"
    SOURCE_GONE = "source gone"
    SOURCE_CORRUPT = "source corrupt"
    TARGET_DIVERGED = "target diverged"
    TARGET_REFUSED = "target refused"
    RECORD_TOO_LARGE = "record too large"
    NOT_AUTHORISED = "not authorised"
    FAILED = "failed"


_S = PartitionState

STOPPED: Final = frozenset(
    {
        _S.RETENTION_OVERRUN,
        _S.TOPIC_RECREATED,
        _S.COPY_RENAMED,
        _S.SOURCE_WENT_BACK,
        _S.SOURCE_GONE,
        _S.SOURCE_CORRUPT,
        _S.TARGET_DIVERGED,
        _S.TARGET_REFUSED,
        _S.RECORD_TOO_LARGE,
        _S.NOT_AUTHORISED,
        _S.FAILED,
    }
)
"""States that end by somebody's decision: a policy, a command, a topic that is back, a right that
is granted, a limit that is widened."""

ASKED_AGAIN_MS: Final[dict[PartitionState, int]] = {
    _S.NOT_AUTHORISED: 15_000,
    _S.TARGET_REFUSED: 30_000,
    _S.RECORD_TOO_LARGE: 30_000,
}
"""Stops that end without a command, once a right is granted or a limit of the target is widened:
so often the mirror tries again."""

FLOWING: Final = frozenset({_S.CATCHING_UP, _S.STREAMING})
"""States in which records are fetched."""

_INTERRUPTIONS: Final = STOPPED | {_S.WAITING, _S.PAUSED}

ALLOWED: Final[dict[PartitionState, frozenset[PartitionState]]] = {
    _S.DISCOVERING: _INTERRUPTIONS | {_S.POSITIONING},
    _S.POSITIONING: _INTERRUPTIONS | {_S.CATCHING_UP},
    _S.CATCHING_UP: _INTERRUPTIONS | {_S.STREAMING},
    _S.STREAMING: _INTERRUPTIONS | {_S.CATCHING_UP},
    _S.WAITING: _INTERRUPTIONS | {_S.POSITIONING},
    _S.PAUSED: frozenset(
        {_S.POSITIONING, _S.WAITING, _S.SOURCE_GONE, _S.TOPIC_RECREATED, _S.COPY_RENAMED}
    ),
    **{state: frozenset({_S.PAUSED, _S.WAITING}) for state in STOPPED},
    _S.SOURCE_GONE: frozenset({_S.PAUSED, _S.WAITING, _S.TOPIC_RECREATED}),
    _S.SOURCE_WENT_BACK: frozenset({_S.PAUSED, _S.WAITING, _S.TOPIC_RECREATED}),
    **{state: frozenset({_S.PAUSED, _S.WAITING, _S.POSITIONING}) for state in ASKED_AGAIN_MS},
}

MEANING: Final[dict[PartitionState, str]] = {
    _S.DISCOVERING: "the mirror has heard of the partition and knows nothing of it yet",
    _S.POSITIONING: "the mirror looks in the map and in both logs where to continue",
    _S.CATCHING_UP: "records are copied, and the source has more",
    _S.STREAMING: "the target has everything that the source has",
    _S.WAITING: "a fault that passes: the mirror tries again by itself",
    _S.PAUSED: "somebody has paused it with `mirror pause`",
    _S.RETENTION_OVERRUN: "the source deleted records before they were mirrored",
    _S.TOPIC_RECREATED: "the source topic was deleted and made again",
    _S.COPY_RENAMED: "the copy lies on the target under another name than the file gives it",
    _S.SOURCE_WENT_BACK: "the source has lost records that the target holds",
    _S.SOURCE_GONE: "the source topic, or this partition of it, is gone",
    _S.SOURCE_CORRUPT: "the source holds a damaged batch",
    _S.TARGET_DIVERGED: "the target holds records that the source has not",
    _S.TARGET_REFUSED: "the target refuses the records",
    _S.RECORD_TOO_LARGE: "the target refuses a batch for its size",
    _S.NOT_AUTHORISED: "the mirror's user lacks a right, or its credentials are refused",
    _S.FAILED: "the mirror has met an error that it does not know, in this partition alone",
}

ADVICE: Final[dict[PartitionState, str]] = {
    _S.RETENTION_OVERRUN: "records were deleted on the source before they were mirrored: go on "
    "behind them with `mirror restart --skip{of_set}`, or mirror what is left anew with "
    "--from-earliest",
    _S.TOPIC_RECREATED: "the source topic is another than was mirrored: mirror it anew with "
    "`mirror restart --from-earliest{of_set}`, which deletes the target's copy of the old one",
    _S.COPY_RENAMED: "`rename`, `names` or `separator` of the flow was changed since the topic was "
    "mirrored: give it the former name back in the file, and restart `mirror run`; or mirror it "
    "anew under the new name with `mirror restart --from-earliest{of_set}`, which deletes what has "
    "that name on the target, and leaves the former copy there",
    _S.SOURCE_WENT_BACK: "the source lost records that the target holds, and `failover "
    "divergence{of_set}` lists: `failover promote TARGET --source-lost --force{of_set}` goes on "
    "with them; only to give them up, begin anew with `mirror restart --from-earliest{of_set}`, "
    "which deletes the target's copy",
    _S.SOURCE_GONE: "the source topic was deleted, or made again with fewer partitions: if that "
    "was meant, delete the target topic, or begin one that is there anew with `mirror restart "
    "--from-earliest{of_set}`",
    _S.SOURCE_CORRUPT: "the source holds a damaged batch: repair it or let another replica lead, "
    "then `mirror restart{of_set}`; or go on behind it with `mirror restart --skip{of_set}`",
    _S.TARGET_DIVERGED: "the target holds records that the source has not: see the reason, find "
    "their writer; after a lost site, set them aside with `mirror restart --quarantine{of_set}`, "
    "which saves them and has both sites end alike, or have them appended late with --merge; "
    "`mirror restart --from-earliest{of_set}` deletes the target's copy, with them, and begins "
    "anew",
    _S.TARGET_REFUSED: "widen the setting of the target topic that the reason names, with "
    "`kafka-configs.sh --alter`: the mirror then goes on by itself, and nothing is lost; only to "
    "give the records up, go on behind them with `mirror restart --skip{of_set}`",
    _S.RECORD_TOO_LARGE: "raise max.message.bytes of the target topic, with `kafka-configs.sh "
    "--alter`: the mirror then goes on by itself, and nothing is lost; only to give the batch up, "
    "go on behind it with `mirror restart --skip{of_set}`",
    _S.NOT_AUTHORISED: "grant the mirror's user the right, or correct its credentials: it is "
    "tried again by itself; where a site of Apache Kafka is closed for writes, its `super.users` "
    "have to name the mirror's user",
    _S.FAILED: "the mirror's log has the traceback, please report it; try again with `mirror "
    "restart{of_set}`, which loses nothing; or go on behind the batch with `mirror restart "
    "--skip{of_set}`",
}


_DELETES_COPY: Final = frozenset({_S.TOPIC_RECREATED, _S.SOURCE_WENT_BACK, _S.SOURCE_GONE})
"""States that nothing but a new copy ends, so that the flow goes on."""


def advice(state: PartitionState, topic_set: str | None = None) -> str:
    """Return what to do about a state, "" where nothing is to be done; the set is the flow's."""
    return ADVICE.get(state, "").format(of_set=set_option(topic_set))


def advice_for(
    state: PartitionState, flow: FlowConfig, *, is_savable: bool, holds_own: bool
) -> str:
    """Return what to do about a state of a partition whose copy `holds_own` records, or not.

    `is_savable` says whether it is known what they are.
    """
    if holds_own and state in _DELETES_COPY:
        return keep_copy(flow)
    if holds_own and state is _S.TARGET_DIVERGED and not is_savable:
        return fill_anew(flow)
    return advice(state, flow.topic_set)


def fill_anew(flow: FlowConfig) -> str:
    """Return what to do where the copy is not what both maps speak of: it has lost records.

    The flow's source is active and has all that it ever sent or got. What the copy has instead
    goes with it.
    """
    if not flow.heeds_promotions:
        return keep_copy(flow)
    return (
        f"`mirror refill {flow.target} --write` has all brought from {flow.source} again, once"
        f" every mirror is stopped and the topic is deleted on {flow.target}; copy beforehand what"
        " failover divergence lists there"
    )


def keep_copy(flow: FlowConfig) -> str:
    """Return what to do where `--from-earliest` is refused, as the copy holds records of its own.

    It may be the last that there is of them, and of what the source has lost.
    """
    kept = f"the copy on {flow.target} holds records of its own, and is not deleted for a new one"
    if not flow.heeds_promotions:
        return (
            f"{kept}: compare both sites; `kafka-topics.sh --delete` on {flow.target} gives these"
            " records up, and the topic is mirrored anew"
        )
    return f"{kept}: {_go_on_with_target(flow)} with it, and with what {flow.source} has lost of it"


def _go_on_with_target(flow: FlowConfig) -> str:
    of_set = set_option(flow.topic_set)
    return f"`failover promote {flow.target} --source-lost --force{of_set}` goes on"


RESTART: Final[dict[PartitionState, tuple[str, str]]] = {
    _S.RETENTION_OVERRUN: ("{partition} --skip", "goes on behind what the source has deleted"),
    _S.TOPIC_RECREATED: ("{topic} --from-earliest", "deletes the copy of the former topic"),
    _S.COPY_RENAMED: ("{topic} --from-earliest", "mirrors it anew under the new name"),
    _S.SOURCE_WENT_BACK: ("{topic} --from-earliest", "deletes the copy, and begins anew"),
    _S.SOURCE_CORRUPT: ("{partition}", "tries again once another replica leads"),
    _S.TARGET_DIVERGED: ("{partition} --quarantine", "saves what only the target has"),
    _S.FAILED: ("{partition}", "tries again"),
}
"""The restart that ends a stop, of the topic or the partition, and what it does."""

BY_HAND: Final[dict[PartitionState, str]] = {
    _S.TARGET_REFUSED: "widen the setting that the reason names with `kafka-configs.sh --alter`",
    _S.RECORD_TOO_LARGE: "raise max.message.bytes of the target topic with `kafka-configs.sh"
    " --alter`",
    _S.NOT_AUTHORISED: "grant the mirror's user the right, or correct its credentials",
}
"""What ends a stop without a command of ours."""


STANDING: Final = frozenset({*RESTART, *BY_HAND})
"""States in which a partition of the source waits for somebody."""


def remedy(
    state: PartitionState,
    flow: FlowConfig,
    where: TopicPartition,
    *,
    is_savable: bool,
    holds_own: bool,
) -> str:
    """Return the one thing to do about a stopped partition.

    Where `is_savable` is not true nobody can tell what the target's own records are, and where
    `holds_own` is, the copy is not deleted.
    """
    assert state in STANDING, f"{state} ends by itself, or nothing of the partition is left"
    if state in BY_HAND:
        return BY_HAND[state]
    how, what = RESTART[state]
    is_unclear = state is _S.TARGET_DIVERGED and not is_savable
    if holds_own and (is_unclear or state in _DELETES_COPY):
        return fill_anew(flow) if is_unclear else keep_copy(flow)
    if state is _S.SOURCE_WENT_BACK and flow.heeds_promotions:
        return (
            f"{_go_on_with_target(flow)} with what {flow.source} has lost; only to give that up,"
            " restart the topic with --from-earliest, which deletes the copy"
        )
    topic, index = where
    if is_unclear:
        how, what = RESTART[_S.SOURCE_WENT_BACK]
        what += "; where the map's topic was lost, `mirror rebuild-map` saves that"
    of = how.format(topic=topic, partition=f"{topic}:{index}")
    named = f"{flow.source}-{flow.target}"
    return f"`mirror restart {named} {of}{set_option(flow.topic_set)}` {what}"


@frozen
class PartitionStatus:
    """A state, since when (wall clock, milliseconds), and why."""

    state: PartitionState
    since_ms: int
    reason: str = ""


def move(
    status: PartitionStatus, state: PartitionState, now_ms: int, reason: str = ""
) -> PartitionStatus:
    """Return the next status; the same state keeps its age and takes the new reason.

    A transition that the table does not allow is our own bug.
    """
    if state is status.state:
        return PartitionStatus(state=state, since_ms=status.since_ms, reason=reason)
    assert state in ALLOWED[status.state], f"{status.state} may not become {state}"
    return PartitionStatus(state=state, since_ms=now_ms, reason=reason)
