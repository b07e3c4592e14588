"""Whether a majority of places has seen for long enough that the active site is gone. Pure.

    a   gone gone gone gone gone gone     three voters at three places; each look has a number,
    b   ---- gone gone gone gone gone     and says with which number it began to see the same
    c   ---- ---- ---- ---- ---- ----     c is cut off: a missing vote, and no smaller quorum
             |------ after_ms ------|     two of three agree: it is time

Times are those of one clock, of the process that counts, and of a voter's time only that counts
which the voter has proved by going on: from its first look that was seen to its last. Whatever
interrupts a voter has it begin anew: it saw something else meanwhile, it is another process, its
looks have stood still, or nobody counted.

A single voter that is answered stops everything, whatever the others see: applications beside it
may be answered too, and the site would take their writes behind a promotion.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from failover.automatic.hold import Hold
from failover.automatic.votes import Sight, Vote
from runtime.configuration.automatic_section import AutomaticConfig
from runtime.coordination.witness import ActiveSite
from wire.values import frozen

STALE_MS: Final = 15_000
"""A vote that was not seen to go on for so long is missing, and begins anew when it goes on."""


class InTheWay(StrEnum):
    """What keeps a site from being promoted by itself, in a word that a metric can carry."""

    HOLD = "hold"
    UNFINISHED = "unfinished"
    NO_FLOW = "no-flow"
    COOL_DOWN = "cool-down"
    ANSWERS = "answers"
    MINORITY = "minority"
    TOO_SOON = "too-soon"
    REFUSED = "refused"


@frozen
class Obstacle:
    """Nothing is promoted now; `reason` is one line."""

    cause: InTheWay
    reason: str


@frozen
class Agreement:
    """These voters have agreed for long enough: `site` may be promoted."""

    site: str
    voters: tuple[str, ...]


Verdict: TypeAlias = Agreement | Obstacle


@frozen
class Circumstances:
    """What else counts, as the witness has it."""

    active: ActiveSite
    target: str | None
    """The one site that takes over from the active one; None where no flow leads to any."""
    hold: Hold | None
    unfinished: str | None
    """The promotion that has begun and not ended."""
    since_last_ms: int | None
    """How long ago the last promotion ended; None where there was none."""


@dataclass(slots=True)
class _Run:
    """A voter's unbroken looks, as far as they were seen."""

    vote: Vote
    first_ms: int
    last_ms: int
    """When its number was last seen to have grown, or for the first time."""

    @property
    def age_ms(self) -> int:
        return self.last_ms - self.first_ms


@dataclass(slots=True)
class Ballots:
    """The votes as one process has seen them go on."""

    _runs: dict[str, _Run] = field(default_factory=dict)

    def see(self, votes: Mapping[str, Vote], now_ms: int) -> None:
        """Count what lies in the witness now; who has no vote begins anew with the next one."""
        self._runs = {
            name: self._followed(self._runs.get(name), vote, now_ms) for name, vote in votes.items()
        }

    def forget(self) -> None:
        """Begin anew: nobody could look."""
        self._runs.clear()

    def fresh(self, epoch: int, now_ms: int) -> dict[str, Vote]:
        """Return the votes about this epoch that go on."""
        return {
            name: run.vote
            for name, run in self._runs.items()
            if run.vote.epoch == epoch and now_ms - run.last_ms <= STALE_MS
        }

    def age_ms(self, voter: str) -> int:
        """Return for how long a voter was seen to see the same without a pause."""
        return self._runs[voter].age_ms

    @staticmethod
    def _followed(run: _Run | None, vote: Vote, now_ms: int) -> _Run:
        if run is None or _interrupts(run.vote, vote):
            return _Run(vote, now_ms, now_ms)
        if vote.number == run.vote.number:
            return run
        if now_ms - run.last_ms > STALE_MS:
            return _Run(vote, now_ms, now_ms)
        return _Run(vote, run.first_ms, now_ms)


def _interrupts(before: Vote, after: Vote) -> bool:
    """Tell whether a vote does not go on with an earlier one."""
    told = (before.run, before.since, before.epoch, before.sees)
    return told != (after.run, after.since, after.epoch, after.sees) or after.number < before.number


def judge(
    ballots: Ballots, config: AutomaticConfig, circumstances: Circumstances, now_ms: int
) -> Verdict:
    """Return which site may be promoted now, or what is in the way.

    The loss is not judged here: the promotion's own plan refuses what is beyond the budget.
    """
    obstacle = _whether_allowed(config, circumstances)
    if obstacle is not None:
        return obstacle
    assert circumstances.target is not None, "checked by _whether_allowed"
    active = circumstances.active
    fresh = ballots.fresh(active.epoch, now_ms)
    answered = sorted(name for name, vote in fresh.items() if vote.sees is Sight.ANSWERS)
    if answered:
        who = ", ".join(f"{name} ({config.voters[name]})" for name in answered)
        return Obstacle(cause=InTheWay.ANSWERS, reason=f"{active.site} is there for {who}")
    gone = [name for name in config.voters if name in fresh and fresh[name].sees is Sight.GONE]
    if len(gone) < config.majority:
        return Obstacle(
            cause=InTheWay.MINORITY,
            reason=f"{len(gone)} of {len(config.voters)} voters see that {active.site} is gone, and"
            f" {config.majority} have to: {_others(config, fresh)}",
        )
    long_enough = tuple(name for name in gone if ballots.age_ms(name) >= config.after_ms)
    if len(long_enough) < config.majority:
        ages = sorted((ballots.age_ms(name) for name in gone), reverse=True)
        return Obstacle(
            cause=InTheWay.TOO_SOON,
            reason=f"{config.majority} voters agree for {ages[config.majority - 1] // 1000} of"
            f" {config.after_ms / 1000:g} s that {active.site} is gone",
        )
    return Agreement(site=circumstances.target, voters=long_enough)


def _whether_allowed(config: AutomaticConfig, circumstances: Circumstances) -> Obstacle | None:
    active, since_ms = circumstances.active, circumstances.since_last_ms
    if circumstances.hold is not None:
        return Obstacle(cause=InTheWay.HOLD, reason=f"promotions are {circumstances.hold}")
    if circumstances.unfinished is not None:
        return Obstacle(
            cause=InTheWay.UNFINISHED, reason=f"{circumstances.unfinished} is unfinished"
        )
    if circumstances.target is None:
        return Obstacle(
            cause=InTheWay.NO_FLOW, reason=f"no flow leads from {active.site} to another site"
        )
    if since_ms is not None and since_ms < config.cooldown_ms:
        return Obstacle(
            cause=InTheWay.COOL_DOWN,
            reason=f"the last promotion was {max(0, since_ms) // 1000} s ago, and"
            f" failover.automatic.cooldown_ms wants {config.cooldown_ms // 1000} s",
        )
    return None


def _others(config: AutomaticConfig, fresh: Mapping[str, Vote]) -> str:
    return "; ".join(
        f"{name} {'does not vote' if name not in fresh else 'says ' + fresh[name].why}"
        for name in config.voters
        if name not in fresh or fresh[name].sees is not Sight.GONE
    )
