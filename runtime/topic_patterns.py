"""Patterns of topics that a write fence closes, as the setting of bundled brokers holds them. Pure.

`write.fence.patterns` is `{"include": ["orders.*"], "exclude": []}`: Python's regular expressions
for whole names. `failover` sets it, and the brokers go by it, so a topic that is made behind a
fence takes no write either, from its first moment on.
"""

import json
import re
from collections.abc import Sequence

from runtime.configuration.flow_section import FlowConfig, PatternSet
from runtime.configuration.name_patterns import NamePattern, read_name_pattern
from runtime.configuration.topic_names import DIVERGED, HEARTBEATS
from runtime.untrusted_json import read_json, text

NO_PATTERNS = PatternSet(include=(), exclude=())
LARGEST: int = 100_000
"""Characters of all patterns together."""


def moving_patterns(flow: FlowConfig, site: str) -> PatternSet:
    """Return the patterns of the topics of a site of the flow that a promotion moves.

    On the source as `FlowConfig.moves` has it, on the target as `brings`; but a copy that was given
    a name which `topics.exclude` takes is in no pattern. Of a flow without prefixes, which all
    flows are that can be promoted.
    """
    include, exclude_names = _by_given_names(flow, site)
    kept = [r"(__|\.).*", rf".*({re.escape(flow.separator)}internal|\.internal|-internal)"]
    kept.append(f".*{re.escape(DIVERGED)}")
    if flow.mirrormaker.heartbeats:
        kept.append(rf"(.*{re.escape(flow.separator)})?{HEARTBEATS}")
    # Kafka's names hold no line breaks, but whoever asks may ask about any name.
    exclude = tuple(re.compile(one, re.DOTALL) for one in (*kept, *exclude_names))
    return PatternSet(include=include, exclude=(*flow.topics.exclude, *exclude))


def _by_given_names(
    flow: FlowConfig, site: str
) -> tuple[tuple[re.Pattern[str], ...], Sequence[str]]:
    """Return the patterns of topics on a site, and patterns of names there that are others'.

    On the target there are copies of other names, and what has the name of their source's topic
    there is none. On the source the topic whose name was given away stays behind.
    """
    given = flow.renames
    copies, originals = given.to_source.keys(), given.to_target.keys()
    if site == flow.source:
        return flow.topics.include, [re.escape(one) for one in sorted(copies - originals)]
    include = [
        one
        for one in flow.topics.include
        if (said := read_name_pattern(one.pattern)) is None
        or said.is_prefix
        or said.text not in originals - copies
    ]
    include += [NamePattern(one).compiled() for one in sorted(copies)]
    return tuple(include), [re.escape(one) for one in sorted(originals - copies)]


def encode_patterns(patterns: PatternSet) -> str:
    """Return the text of the setting; empty for no patterns."""
    if not patterns.include:
        return ""
    return json.dumps(
        {
            "include": [one.pattern for one in patterns.include],
            "exclude": [one.pattern for one in patterns.exclude],
        },
        separators=(",", ":"),
    )


def decode_patterns(value: str) -> PatternSet:
    """Return what the setting says; raises ValueError saying what is wrong with it."""
    if not value.strip():
        return NO_PATTERNS
    if len(value) > LARGEST:
        raise ValueError(f"has {len(value)} characters, more than {LARGEST}")
    found = read_json(value)
    if not isinstance(found, dict) or found.keys() != {"include", "exclude"}:
        raise ValueError("is no JSON object of include and exclude")
    return PatternSet(include=_compiled(found["include"]), exclude=_compiled(found["exclude"]))


def _compiled(listed: object) -> tuple[re.Pattern[str], ...]:
    if not isinstance(listed, list):
        raise ValueError(f"{listed!r:.80} is no list of patterns")  # noqa: TRY004 - of a document
    try:
        return tuple(re.compile(text(one), re.DOTALL) for one in listed)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"no pattern: {error}") from error
