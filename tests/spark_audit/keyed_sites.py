"""Two sites that both write the keys of one compacted topic."""

from collections.abc import Mapping

from spark_audit.snapshot.origins import Brought
from tests.spark_audit.logs import Pair
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("t", 0)
DC1_MIRROR, DC2_MIRROR = 11, 22
"""The producer ids of the mirrors out of these sites."""


def key_of(content: str) -> str:
    return content.partition("@")[0]


def value_of(content: str) -> str | None:
    return None if content.endswith(":tombstone") else content


class KeyedSites:
    """Two sites that write to a compacted topic, and mirror it to each other record by record."""

    def __init__(self) -> None:
        self.pair = Pair(
            to_source=Brought(producer_ids=frozenset({DC2_MIRROR})),
            to_target=Brought(producer_ids=frozenset({DC1_MIRROR})),
        )
        self.logs = (self.pair.source, self.pair.target)
        for log in self.logs:
            log.is_compacted = True
        self.waiting: tuple[list[str], list[str]] = ([], [])
        """What each site has written and not mirrored yet."""
        self.contents: tuple[dict[int, str], dict[int, str]] = ({}, {})

    def write(self, site: int, content: str) -> None:
        self.waiting[site].append(content)
        self._append(site, content)

    def mirror(self, site: int, records: int = 1) -> None:
        for content in self.waiting[site][:records]:
            self._append(1 - site, content, producer_id=(DC1_MIRROR, DC2_MIRROR)[site])
        del self.waiting[site][:records]

    def _append(self, site: int, content: str, producer_id: int = -1) -> None:
        (offset,) = self.logs[site].append(content, producer_id=producer_id)
        self.contents[site][offset] = content

    def clean(self, site: int) -> None:
        """Keep the last record of each key."""
        kept = set(self.lasts(site).values())
        log = self.logs[site]
        log.batches = [one for one in log.batches if one[0] - 1 in kept]

    def lasts(self, site: int) -> Mapping[str, int]:
        """Return the offset of the last record of each key."""
        return {key_of(content): offset for offset, content in self.contents[site].items()}

    def back(self) -> Pair:
        pair = self.pair
        return Pair(pair.target, pair.source, to_source=pair.to_target, to_target=pair.to_source)

    def differing(self) -> set[tuple[int, int]]:
        """Return the offsets of the last records of each key that ends differently."""
        source, target = self.lasts(0), self.lasts(1)
        return {
            (source[key], target[key])
            for key in source.keys() & target.keys()
            if value_of(self.contents[0][source[key]]) != value_of(self.contents[1][target[key]])
        }


def crossed(*keys: str) -> KeyedSites:
    """Both sites write these keys before either has the other's record."""
    sites = KeyedSites()
    for key in keys:
        sites.write(0, f"{key}@1")
        sites.write(1, f"{key}@2")
    for site in (0, 1):
        sites.mirror(site, len(keys))
    return sites
