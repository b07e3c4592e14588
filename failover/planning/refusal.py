"""Why a promotion may not begin: a line for people, and a word for metrics. Pure."""

from dataclasses import field
from enum import StrEnum

from wire.values import frozen


class Cause(StrEnum):
    """What is in the way of a promotion, in a word that a metric can carry."""

    UNKNOWN_SITE = "unknown-site"
    ACTIVE_ALREADY = "active-already"
    UNFINISHED = "unfinished"
    NO_FLOW = "no-flow"
    CONFIGURATION = "configuration"
    TARGET_SILENT = "target-silent"
    SOURCE_SILENT = "source-silent"
    SOURCE_ANSWERS = "source-answers"
    NO_MIRROR = "no-mirror"
    UNFENCEABLE = "unfenceable"
    OTHER_LOG = "other-log"
    WITNESS_OUTDATED = "witness-outdated"
    MAP_REFUSED = "map-refused"
    STANDSTILL = "standstill"
    OTHER_FILE = "other-file"
    TARGET_DIFFERS = "target-differs"
    LOSS = "loss"
    MAP_WRITERS = "map-writers"
    NOTHING_MOVES = "nothing-moves"
    TOO_LARGE = "too-large"
    BEHIND = "behind"
    PLAIN_CONSUMERS = "plain-consumers"
    CUT_GROUP = "cut-group"
    HOOK = "hook"
    HOLD = "hold"
    OTHER = "other"


@frozen
class Refusal:
    """The promotion may not begin; `reason` is one line that names what is in the way."""

    reason: str
    cause: Cause = field(default=Cause.OTHER, compare=False)
