"""When a majority has agreed for long enough: never by a minority, a gap, or against anybody."""

from dataclasses import dataclass, replace
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from failover.automatic.hold import Hold
from failover.automatic.quorum import (
    STALE_MS,
    Agreement,
    Ballots,
    Circumstances,
    InTheWay,
    Obstacle,
    judge,
)
from failover.automatic.votes import Polling, Sight, Vote
from runtime.configuration.automatic_section import AutomaticConfig
from runtime.coordination.witness import ActiveSite
from tests.properties import examples

AFTER_MS: Final = 60_000
COOLDOWN_MS: Final = 3_600_000
VOTERS: Final = {"a": "dc1", "b": "dc2", "c": "office"}
CONFIG: Final = AutomaticConfig(voters=VOTERS, after_ms=AFTER_MS, cooldown_ms=COOLDOWN_MS)
CALM: Final = Circumstances(
    active=ActiveSite(site="dc1", epoch=3),
    target="dc2",
    hold=None,
    unfinished=None,
    since_last_ms=None,
)
HOLD: Final = Hold(garbled="of the tests")
LOOK_MS: Final = 2_000


class Places:
    """Voters that look every two seconds, and one process that counts, in virtual time."""

    def __init__(self, config: AutomaticConfig = CONFIG) -> None:
        self.config = config
        self.now_ms = 0
        self.pollings = {name: Polling(place=place) for name, place in config.voters.items()}
        self.votes: dict[str, Vote] = {}
        self.ballots = Ballots()

    def look(self, **sights: Sight) -> None:
        """Let time pass, have these voters look, and count."""
        self.now_ms += LOOK_MS
        for name, sees in sights.items():
            self.votes[name] = self.pollings[name].vote(sees, "why", epoch=3, in_the_way="")
        self.ballots.see(self.votes, self.now_ms)

    def agree(self, for_ms: int, **sights: Sight) -> None:
        for _ in range(for_ms // LOOK_MS):
            self.look(**sights)

    def verdict(self, circumstances: Circumstances = CALM) -> Agreement | InTheWay:
        found = judge(self.ballots, self.config, circumstances, self.now_ms)
        if isinstance(found, Obstacle):
            assert found.reason
            return found.cause
        return found


TWO: Final = {"a": Sight.GONE, "b": Sight.GONE}
AGREED: Final = Agreement(site="dc2", voters=("a", "b"))


def agreed() -> Places:
    places = Places()
    places.agree(AFTER_MS + LOOK_MS, **TWO)
    return places


def test_a_majority_that_has_agreed_for_long_enough_promotes() -> None:
    places = Places()
    places.agree(AFTER_MS, **TWO)
    assert places.verdict() is InTheWay.TOO_SOON, "the first look proves no time"
    places.look(**TWO)
    assert places.verdict() == AGREED


def test_an_absent_voter_makes_no_smaller_quorum() -> None:
    places = Places()
    places.agree(10 * AFTER_MS, a=Sight.GONE)
    assert places.verdict() is InTheWay.MINORITY


@pytest.mark.parametrize("seen", [Sight.UNKNOWN, Sight.ANSWERS])
def test_one_look_that_sees_something_else_begins_the_time_anew(seen: Sight) -> None:
    places = agreed()
    places.look(a=Sight.GONE, b=seen)
    assert places.verdict() in {InTheWay.MINORITY, InTheWay.ANSWERS}
    places.agree(AFTER_MS, **TWO)
    assert places.verdict() is InTheWay.TOO_SOON
    places.look(**TWO)
    assert places.verdict() == AGREED


def test_what_a_voter_saw_between_two_counts_begins_its_time_anew_too() -> None:
    places = agreed()
    places.pollings["b"].vote(Sight.ANSWERS, "nobody counts this one", epoch=3, in_the_way="")
    places.look(**TWO)
    assert places.verdict() is InTheWay.TOO_SOON


def test_a_voter_that_was_started_again_begins_anew() -> None:
    places = agreed()
    places.pollings["b"] = Polling(place="dc2")
    places.look(**TWO)
    assert places.verdict() is InTheWay.TOO_SOON


def test_a_vote_that_stands_still_is_missing_and_begins_anew_when_it_goes_on() -> None:
    places = agreed()
    places.agree(STALE_MS + LOOK_MS, a=Sight.GONE)
    assert places.verdict() is InTheWay.MINORITY
    places.look(**TWO)
    assert places.verdict() is InTheWay.TOO_SOON


def test_a_vote_that_is_gone_from_the_witness_begins_anew() -> None:
    places = agreed()
    del places.votes["b"]
    places.look(a=Sight.GONE)
    places.look(**TWO)
    assert places.verdict() is InTheWay.TOO_SOON


def test_a_process_that_has_not_counted_for_a_while_begins_anew() -> None:
    places = agreed()
    places.now_ms += STALE_MS
    places.look(**TWO)
    assert places.verdict() is InTheWay.TOO_SOON


def test_a_single_voter_that_is_answered_stops_the_majority() -> None:
    """A line is cut around dc1, and clients beside it go on writing there."""
    places = Places()
    places.agree(2 * AFTER_MS, **TWO, c=Sight.ANSWERS)
    assert places.verdict() is InTheWay.ANSWERS


def test_a_vote_about_another_epoch_does_not_count() -> None:
    places = agreed()
    behind = replace(CALM, active=ActiveSite(site="dc1", epoch=5))
    assert places.verdict(behind) is InTheWay.MINORITY


@pytest.mark.parametrize(
    ("circumstances", "cause"),
    [
        (replace(CALM, hold=HOLD), InTheWay.HOLD),
        (replace(CALM, unfinished="the promotion of dc2"), InTheWay.UNFINISHED),
        (replace(CALM, target=None), InTheWay.NO_FLOW),
        (replace(CALM, since_last_ms=COOLDOWN_MS - 1), InTheWay.COOL_DOWN),
        (replace(CALM, since_last_ms=-5), InTheWay.COOL_DOWN),
    ],
)
def test_what_else_is_in_the_way_is_named(circumstances: Circumstances, cause: InTheWay) -> None:
    assert agreed().verdict(circumstances) is cause


def test_a_cool_down_ends() -> None:
    assert agreed().verdict(replace(CALM, since_last_ms=COOLDOWN_MS)) == AGREED


@dataclass(frozen=True, slots=True)
class Published:
    """One vote, as it truly was."""

    at_ms: int
    run: str
    sees: Sight


class Promotions(RuleBasedStateMachine):
    """Voters look, restart, fall silent; a process counts or sleeps; somebody holds or promotes."""

    @initialize(voters=st.sampled_from([3, 4, 5]))
    def begin(self, voters: int) -> None:
        config = replace(CONFIG, voters={f"v{n}": f"place {n}" for n in range(voters)})
        self.places = Places(config)
        self.history: dict[str, list[Published]] = {name: [] for name in config.voters}
        self.absent_ms: dict[str, int] = {}
        self.slept_ms = -1
        self.circumstances = CALM
        self.promoted_ms: int | None = None

    @rule(data=st.data(), looks=st.integers(1, 40))
    def look(self, data: st.DataObject, looks: int) -> None:
        """Have each voter see the same for a while, and count after each look."""
        sights = data.draw(
            st.fixed_dictionaries(
                {
                    name: st.sampled_from([Sight.GONE, Sight.GONE, *Sight, None])
                    for name in self.history
                }
            )
        )
        for _ in range(looks):
            seen = {name: sees for name, sees in sights.items() if sees is not None}
            self.places.look(**seen)
            for name, sees in seen.items():
                run = self.places.pollings[name].run
                self.history[name].append(Published(self.places.now_ms, run, sees))
            self.check()

    @rule(data=st.data())
    def see_between_counts(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.history)))
        polling = self.places.pollings[name]
        self.places.votes[name] = polling.vote(Sight.UNKNOWN, "", epoch=3, in_the_way="")
        self.history[name].append(Published(self.places.now_ms, polling.run, Sight.UNKNOWN))

    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.history)))
        self.places.pollings[name] = Polling(place="anywhere")
        self.places.votes.pop(name, None)

    @rule()
    def sleep(self) -> None:
        self.places.now_ms += STALE_MS + 1
        self.slept_ms = self.places.now_ms

    @rule()
    def hold(self) -> None:
        self.circumstances = replace(self.circumstances, hold=HOLD)

    @precondition(lambda self: self.circumstances.hold is not None)
    @rule()
    def release(self) -> None:
        self.circumstances = replace(self.circumstances, hold=None)

    def check(self) -> None:
        now = self.places.now_ms
        since = None if self.promoted_ms is None else now - self.promoted_ms
        circumstances = replace(self.circumstances, since_last_ms=since)
        verdict = judge(self.places.ballots, self.places.config, circumstances, now)
        if isinstance(verdict, Obstacle):
            return
        assert circumstances.hold is None
        assert since is None or since >= COOLDOWN_MS
        assert len(verdict.voters) > len(self.history) / 2
        assert now - self.slept_ms >= AFTER_MS or self.slept_ms < 0
        for name in verdict.voters:
            assert self.saw_it_gone_all_the_time(name), name
        fresh = [shown[-1] for shown in self.history.values() if shown]
        assert not [one for one in fresh if one.sees is Sight.ANSWERS and one.at_ms == now]
        self.promoted_ms = now

    def saw_it_gone_all_the_time(self, name: str) -> bool:
        """Tell from what was truly published whether a voter has agreed without a gap."""
        now, shown = self.places.now_ms, self.history[name]
        unbroken = [shown[-1]]
        for one in reversed(shown[:-1]):
            is_close = unbroken[-1].at_ms - one.at_ms <= STALE_MS
            if not is_close or (one.run, one.sees) != (shown[-1].run, Sight.GONE):
                break
            unbroken.append(one)
        is_fresh = now - shown[-1].at_ms <= STALE_MS
        lasted = shown[-1].at_ms - unbroken[-1].at_ms >= AFTER_MS
        return is_fresh and lasted and shown[-1].sees is Sight.GONE


TestPromotions = Promotions.TestCase
TestPromotions.settings = settings(max_examples=examples(25), stateful_step_count=20, deadline=None)
