"""Topic settings that differ between the sites, and which of them lose records. Pure.

Settings that bear on whether records are kept are compared by what holds, brokers' defaults
included. Of the others those that are set on the topic itself count, as only they travel.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

UNLIMITED: Final = -1
_KEEPING: Final = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "max.message.bytes",
    "min.insync.replicas",
)


class Setting(NamedTuple):
    """What holds on a topic; `is_own` if it is set there, and no default of the broker's."""

    value: str
    is_own: bool


class DifferentSetting(NamedTuple):
    """A setting of a topic that holds another value on the target."""

    topic: str
    name: str
    source: str | None
    target: str | None
    loses: str | None
    """What the target does to records by it, and the source does not. None: it loses none, or the
    file says that the setting does not travel."""

    @property
    def words(self) -> str:
        """Return the difference as words for people."""
        values = (value or "not set" for value in (self.source, self.target))
        what = "{} on the source, {} on the target".format(*values)
        return f"{self.topic}: {self.name} is {what}{'' if self.loses is None else self._advice}"

    @property
    def _advice(self) -> str:
        return f": the target {self.loses}; set it on the topic there with `kafka-configs`"


def different_settings(
    topic: str,
    source: Mapping[str, Setting],
    target: Mapping[str, Setting],
    travels: Callable[[str], bool],
) -> Iterator[DifferentSetting]:
    """Yield the settings of a topic that differ; `travels` tells of a name whether the mirror
    carries it.
    """
    for name in sorted({*source, *target}):
        ours, theirs = source.get(name), target.get(name)
        values = [None if one is None else one.value for one in (ours, theirs)]
        if values[0] == values[1]:
            continue
        is_own = any(one is not None and one.is_own for one in (ours, theirs))
        if name in _KEEPING or (is_own and travels(name)):
            loses = what_loses(name, source, target) if travels(name) else None
            yield DifferentSetting(topic, name, values[0], values[1], loses)


def what_loses(
    name: str, source: Mapping[str, Setting], target: Mapping[str, Setting]
) -> str | None:
    """Return what the target does to records by a setting that the source does not do."""
    kept, limit = _number(source, name), _number(target, name)
    match name:
        case "cleanup.policy":
            more = sorted(_policies(target) - _policies(source))
            return f"{' and '.join(f'{one}s' for one in more)} records" if more else None
        case "retention.ms" | "retention.bytes":
            if "delete" not in _policies(target) or limit is None or limit == UNLIMITED:
                return None
            is_unlimited = "delete" not in _policies(source) or kept in {None, UNLIMITED}
            is_earlier = is_unlimited or (kept is not None and limit < kept)
            return "deletes records earlier" if is_earlier else None
        case "max.message.bytes":
            is_less = kept is not None and limit is not None and limit < kept
            return "refuses batches that the source takes" if is_less else None
        case "min.insync.replicas":
            is_less = kept is not None and limit is not None and limit < kept
            return "acknowledges records with fewer copies" if is_less else None
        case _:
            return None


def is_compacted(settings: Mapping[str, Setting]) -> bool:
    """Return whether the topic's cleaner keeps the last record of each key."""
    return "compact" in _policies(settings)


def _policies(settings: Mapping[str, Setting]) -> frozenset[str]:
    """Return the policies; Kafka's default is `delete`."""
    setting = settings.get("cleanup.policy")
    words = ("delete",) if setting is None else setting.value.split(",")
    return frozenset(word.strip() for word in words if word.strip())


def _number(settings: Mapping[str, Setting], name: str) -> int | None:
    setting = settings.get(name)
    try:
        return None if setting is None else int(setting.value)
    except ValueError:
        return None
