"""Which partitions and groups `mirror status` shows, of all that there are. Pure."""

import re
from collections.abc import Sequence

from mirror.report.status import NO_DAEMON, FlowReport, GroupReport, PartitionReport, StatusReport
from mirror.state.partition_state import PartitionState
from wire.values import frozen


class UnknownState(Exception):
    """A word behind --state is no state of a partition; one line."""


@frozen
class StatusChoice:
    """What is shown: names that match whole, partitions in these states, lags beyond a limit.

    A lag that is not known may be any: `lag_over` shows it.
    """

    topic: re.Pattern[str] | None = None
    group: re.Pattern[str] | None = None
    states: frozenset[str] = frozenset()
    lag_over: int | None = None
    lists_all: bool = False
    """Each partition and each position has a line, however many there are."""

    @property
    def is_narrow(self) -> bool:
        """Tell whether rows may be left out."""
        return bool(self.topic or self.group or self.states or self.lag_over is not None)

    def of_flow(self, flow: FlowReport) -> FlowReport:
        """Return what is shown of a flow.

        Where groups are named, only their positions are; where states are, those in partitions
        that have one of them.
        """
        partitions = [one for one in flow["partitions"] if self._shows_partition(one)]
        in_state = {
            (one["topic"], one["partition"])
            for one in flow["partitions"]
            if one["state"] in self.states
        }
        groups = [
            one
            for one in flow["groups"]
            if self._shows_position(one)
            and (not self.states or (one["topic"], one["partition"]) in in_state)
        ]
        return {
            **flow,
            "partitions": partitions if self.group is None else [],
            "groups": groups,
        }

    def of_report(self, report: StatusReport) -> StatusReport:
        """Return what is shown of a report."""
        return {**report, "flows": [self.of_flow(one) for one in report["flows"]]}

    def _shows_partition(self, one: PartitionReport) -> bool:
        return (
            self._names(one)
            and (not self.states or one["state"] in self.states)
            and self._is_over(one["lag_records"])
        )

    def _shows_position(self, one: GroupReport) -> bool:
        return (
            (self.group is None or self.group.fullmatch(one["group"]) is not None)
            and self._names(one)
            and self._is_over(one["source_lag"])
        )

    def _names(self, one: PartitionReport | GroupReport) -> bool:
        """Tell whether a line is of a topic that is asked for, by its name on either site."""
        names = (one["topic"], one.get("target_topic", one["topic"]))
        return self.topic is None or any(map(self.topic.fullmatch, names))

    def _is_over(self, lag: int | None) -> bool:
        return self.lag_over is None or lag is None or lag > self.lag_over


def states_named(words: Sequence[str]) -> frozenset[str]:
    """Return the states that these words name, in any case; raises UnknownState."""
    known = [*(one.value for one in PartitionState), NO_DAEMON]
    for word in words:
        if word.lower() not in known:
            raise UnknownState(
                f"--state {word}: no partition is ever in that state; states are {', '.join(known)}"
            )
    return frozenset(word.lower() for word in words)
