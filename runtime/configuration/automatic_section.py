"""Automatic promotion in the configuration: the section `failover.automatic`, off without one."""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from runtime.configuration.flow_section import FlowConfig
from runtime.configuration.reading.section import Section
from wire.values import frozen

LEAST_VOTERS: Final = 3
MOST_VOTERS: Final = 15
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.automatic.voters.<name>": "The place that a voter looks from. Each has its own, "
        "three at least, and best where clients are. `failover serve --voter NAME` votes; one that "
        "does not is a missing vote. Without voters nothing is promoted by itself.",
        "failover.automatic.after_ms": "How long the same majority has to see without a pause that "
        "the active site is gone and the standby is healthy.",
        "failover.automatic.cooldown_ms": "How long nothing is promoted by itself behind any "
        "promotion, also one that was taken back.",
    }
)
"""What each key is for."""


@frozen
class AutomaticConfig:
    """Who votes, by name and place, and with what patience."""

    voters: Mapping[str, str]
    after_ms: int
    cooldown_ms: int

    @property
    def majority(self) -> int:
        """The number of voters that has to agree."""
        return len(self.voters) // 2 + 1


def read_automatic(
    section: Section, flows: Iterable[FlowConfig] | None, *, has_budget: bool
) -> AutomaticConfig | None:
    """Take the whole section, None where there is none; raises ConfigurationError.

    None stands for flows with mistakes, which nothing is held against.
    """
    voters = section.attempt(lambda: _voters(section.section("voters", required=False)), {})
    after_ms = section.integer("after_ms", 60_000, least=5_000, most=86_400_000)
    cooldown_ms = section.integer("cooldown_ms", 3_600_000, least=1_000, most=2_592_000_000)
    section.finish()
    if not section.values:
        return None
    if len(voters) < LEAST_VOTERS:
        raise section.error(
            "voters",
            f"{len(voters)} voters at as many places cannot tell a dead site from a broken line:"
            f" {LEAST_VOTERS} at least",
        )
    if not has_budget:
        raise section.complaint(
            "needs failover.loss_budget: nobody is there to say how much may be lost"
        )
    if flows is not None:
        _refuse_unfit(section, tuple(flows))
    return AutomaticConfig(
        voters=MappingProxyType(voters), after_ms=after_ms, cooldown_ms=cooldown_ms
    )


def _voters(section: Section) -> dict[str, str]:
    voters: dict[str, str] = {}
    for name in section.values:
        if not _NAME.fullmatch(name):
            section.complain(name, "a name has 1 to 64 letters, digits, '-' or '_'")
        place = section.attempt(partial(section.string, name))
        for other, its in voters.items():
            if its == place:
                section.complain(
                    name, f"{other} looks from {place} already: a line that breaks there costs both"
                )
        if place is not None:
            voters[name] = place
    section.finish()
    if len(voters) > MOST_VOTERS:
        raise section.complaint(f"has {len(voters)} voters, more than {MOST_VOTERS}")
    return voters


def _refuse_unfit(section: Section, flows: tuple[FlowConfig, ...]) -> None:
    """Refuse flows with which nobody could say which site is to be promoted, or lost."""
    targets: dict[str, str] = {}
    for flow in flows:
        if flow.is_active_active:
            raise section.complaint(
                f"{flow.name} has `active_active: true`: both sites are written to, so no promotion"
                " may close one"
            )
        if not flow.heeds_promotions:
            continue
        other = targets.setdefault(flow.source, flow.target)
        if other != flow.target:
            raise section.complaint(
                f"both {other} and {flow.target} could take over from {flow.source}: a person has"
                " to say which"
            )
    if not targets:
        raise section.complaint("no flow moves with a promotion")
