"""The names that a flow gives topics on its target: the section `flows[].rename`."""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from runtime.configuration.topic_names import HEARTBEATS, NO_RENAMES, Renames, TopicNames

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rename.<topic>": "The name on the target of the source's topic of this name; it goes "
        "before a prefix. See [topics under other names](../operate/renames.md).",
    }
)
"""What each key is for."""

MOST_RENAMED: Final = 1_000
"""Both clusters carry their names, too (`runtime.pair.evidence`)."""
LONGEST: Final = 249
"""Characters of a topic's name, as Kafka has it."""
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+")


def read_renames(section: Section, names: TopicNames) -> Renames:
    """Return what the whole section says, of a flow that else goes by `names`.

    Raises ConfigurationError for names that no topic can have, or that are not for applications,
    and for two topics with one name.
    """
    if len(section.values) > MOST_RENAMED:
        raise section.complaint(f"renames {len(section.values)} topics, more than {MOST_RENAMED}")
    given: dict[str, str] = {}
    owners: dict[str, str] = {}
    for topic in section.values:
        name = section.attempt(partial(section.string, topic), "")
        for one in (topic, name):
            if one and (wrong := _why_not(one, names)) is not None:
                section.complain(topic, f"{one!r} {wrong}")
        # Kafka makes no topic beside one that differs from it by `.` for `_` alone.
        owner = owners.setdefault(name.replace(".", "_"), topic)
        if name and owner != topic:
            of_owner = f"the name of the copy of {owner!r}"
            section.complain(
                topic,
                f"{name!r} is {of_owner} already"
                if given[owner] == name
                else f"Kafka takes {name!r} for {given[owner]!r}, {of_owner}",
            )
        given[topic] = name
    section.finish()
    return Renames(given) if given else NO_RENAMES


def _why_not(name: str, names: TopicNames) -> str | None:
    """Return why no topic of an application can have a name, None where one can."""
    if not _LEGAL.fullmatch(name) or name in {".", ".."}:
        return "is no topic's name: letters, digits, '.', '_' and '-'"
    if len(name) > LONGEST:
        return f"has {len(name)} characters, and a topic's name {LONGEST} at most"
    if names.is_internal(name):
        return "is kept for internal topics, which are never mirrored"
    if names.original_topic(name) == HEARTBEATS:
        return "is kept for MirrorMaker's heartbeats"
    return None
