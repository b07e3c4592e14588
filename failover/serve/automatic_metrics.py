"""What voters see, and what keeps a site from being promoted by itself, as metrics."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.automatic.quorum import Obstacle, Verdict
from failover.automatic.votes import Vote

MISSING: Final = "missing"


class AutomaticCollector(Collector):
    """The votes as this voter has counted them last; nothing while it cannot count."""

    def __init__(self, voters: Mapping[str, str]) -> None:
        self._voters = voters
        self._votes: Mapping[str, Vote] | None = None
        self._verdict: Verdict | None = None

    def know(self, votes: Mapping[str, Vote], verdict: Verdict) -> None:
        """Show these votes that go on, and what follows from them."""
        self._votes, self._verdict = votes, verdict

    def know_nothing(self) -> None:
        """Show nothing: the witness could not be read."""
        self._votes = self._verdict = None

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        votes = GaugeMetricFamily(
            "failover_automatic_vote",
            "1 for what a voter sees of the active site: gone, answers, unknown or missing",
            labels=["voter", "place", "sees"],
        )
        if self._votes is not None:
            for name, place in self._voters.items():
                sees = self._votes[name].sees.value if name in self._votes else MISSING
                votes.add_metric([name, place, sees], 1)
        yield votes
        obstacle = GaugeMetricFamily(
            "failover_automatic_in_the_way",
            "1 for what keeps the standby from being promoted by itself now",
            labels=["reason"],
        )
        if isinstance(self._verdict, Obstacle):
            obstacle.add_metric([self._verdict.cause.value], 1)
        yield obstacle
