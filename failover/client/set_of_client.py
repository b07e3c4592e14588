"""The configuration of the set of topics that a client reads or writes, of a file with sets."""

from collections.abc import Sequence
from pathlib import Path

from runtime.configuration.config import Configuration, ConfigurationError, load


def configuration_of_set(
    config: Path | str | Configuration, name: str | None, topics: Sequence[str] = ()
) -> Configuration:
    """Return what one set has of the file; all of a file without sets.

    Where no set is named it is that of the topics. Raises ConfigurationError where that is none, or
    more than one: sets move by themselves, and a client is on one site.
    """
    configuration = config if isinstance(config, Configuration) else load(Path(config))
    sets = configuration.whole.sets
    if configuration.topic_set is not None and name is None:
        return configuration
    if name is None and not sets.named:
        return configuration
    by_set = sets.by_set(topics)
    if name is None and len(by_set) == 1:
        [name] = by_set
    elif name is None and not by_set and len(sets.of_applications) == 1:
        [name] = sets.of_applications
    if name is None or name not in sets.names:
        what = "the topics are of several sets" if len(by_set) > 1 else f"topic_set is {name!r}"
        raise ConfigurationError(
            f"{configuration.file}: {what}: a client takes topic_set=NAME, one of"
            f" {', '.join(sets.names)}"
        )
    others = [one for one in by_set if one != name]
    if others:
        raise ConfigurationError(
            f"{configuration.file}: {by_set[others[0]][0]} is of the set {others[0]}, not of {name}"
        )
    return configuration.of_set(name)
