"""The page about the states of a mirrored partition."""

from collections.abc import Iterable
from typing import Final

from docs.generate.markdown import literal, page, section, sentence, table
from mirror.state.partition_state import (
    ALLOWED,
    ASKED_AGAIN_MS,
    FLOWING,
    MEANING,
    STOPPED,
    PartitionState,
    advice,
)
from runtime.configuration.flow_section import POLICIES, Policy


def _again(state: PartitionState) -> int:
    return ASKED_AGAIN_MS[state] // 1000


INTRODUCTION: Final = f"""
Each mirrored partition is in exactly one state. `mirror status` shows it with its reason and its
age, and the metric `mirror_partition_state` exports it. The runbook
[Diverged](../runbooks/diverged.md) goes through `target diverged`, [The
mirror](../runbooks/mirror.md) through the others.

A stopped partition needs a decision: a command, a [policy](configuration.md#flows) of the flow, a
topic that is back, or a right that is granted. Nothing is skipped unless a policy or a command
says so. The mirror asks for a missing right again every {_again(PartitionState.NOT_AUTHORISED)}
seconds, and sends what the target has refused again every
{_again(PartitionState.TARGET_REFUSED)} seconds.
"""

POLICY_WORDS: Final = {
    Policy.STOP: "The partition stays in its state until somebody decides.",
    Policy.SKIP: "The mirror continues behind what is lost or refused, counts it, and says so.",
    Policy.RESTART: "The mirror deletes the target's topic and mirrors it anew from the earliest "
    "record.",
    Policy.QUARANTINE: "The mirror saves what only the target has to `<topic>.diverged` on both "
    "sites and to a file, and leaves it out of the flow back: both sites end with the same last "
    "value of each key.",
    Policy.MERGE: "The mirror keeps what only the target has. The flow back appends it late, "
    "behind newer records: the log says how many keys end with different values.",
}


def states_page() -> str:
    """Return the page."""
    return page(
        "Partition states",
        INTRODUCTION,
        section("What each state means", _meanings()),
        section("What to do in a stopped state", _advice()),
        section("Which state may follow which", _transitions()),
        section("Policies", _policies()),
    )


def _meanings() -> str:
    return table(
        ("state", "kind", "meaning"),
        ((literal(one.value), _kind(one), sentence(MEANING[one])) for one in PartitionState),
    )


def _kind(state: PartitionState) -> str:
    if state in STOPPED:
        return "stopped"
    return "flowing" if state in FLOWING else "on the way"


def _advice() -> str:
    return table(
        ("state", "what to do"),
        ((literal(one.value), sentence(advice(one))) for one in PartitionState if one in STOPPED),
    )


def _transitions() -> str:
    rows = (
        (literal(one.value), _listed(to for to in PartitionState if to in ALLOWED[one]))
        for one in PartitionState
    )
    return table(("from", "to"), rows)


def _listed(states: Iterable[PartitionState | Policy]) -> str:
    return ", ".join(literal(one.value) for one in states)


def _policies() -> str:
    words = table(
        ("policy", "what it does"),
        ((literal(one.value), POLICY_WORDS[one]) for one in Policy),
    )
    allowed = table(
        ("key of a flow", "policies, the default first"),
        ((literal(f"on_{cause}"), _listed(policies)) for cause, policies in POLICIES.items()),
    )
    return f"{words}\n\n{allowed}"
