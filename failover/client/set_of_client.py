"""The configuration of the set of topics that a client reads or writes, of a file with sets."""

from collections.abc import Iterable, Sequence
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


def require_one_name(configuration: Configuration, topics: Iterable[str]) -> None:
    """Raise ConfigurationError for a topic that is called otherwise on another site.

    A client asks for one name on whichever site is active, and its positions go by that name.
    """
    for topic in topics:
        for flow in configuration.flows:
            given = flow.renames
            if topic in given.to_target or topic in given.to_source:
                here = given.to_source.get(topic, topic)
                raise ConfigurationError(
                    f"{configuration.file}: {here} is {given.to_target[here]} on {flow.target}"
                    f" (`rename` of {flow.name}), and this client asks for {topic} on every site:"
                    " use a client of the site's own, with the topic's name there"
                )
