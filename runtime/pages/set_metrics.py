"""Metrics of several sets of topics: the same families, each sample with the name of its set."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

LABEL: Final = "set"


class SetsCollector(Collector):
    """Yields what the collectors of each set have; of a file without sets, as they have it."""

    def __init__(self, by_set: Mapping[str, Sequence[Collector]]) -> None:
        self._by_set = by_set

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        if len(self._by_set) == 1:
            [alone] = self._by_set.values()
            for collector in alone:
                yield from collector.collect()
            return
        families: dict[str, Metric] = {}
        for name, collectors in self._by_set.items():
            for collector in collectors:
                for one in collector.collect():
                    family = families.setdefault(
                        one.name, Metric(one.name, one.documentation, one.type)
                    )
                    family.samples += [
                        sample._replace(labels={LABEL: name, **sample.labels})
                        for sample in one.samples
                    ]
        yield from families.values()
