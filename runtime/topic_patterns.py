"""Patterns of topics that a write fence closes, as the setting of bundled brokers holds them. Pure.

`write.fence.patterns` is `{"include": ["orders.*"], "exclude": []}`: Python's regular expressions
for whole names. `failover` sets it, and the brokers go by it, so a topic that is made behind a
fence takes no write either, from its first moment on.
"""

import json
import re

from runtime.configuration.flow_section import FlowConfig, PatternSet
from runtime.configuration.topic_names import DIVERGED, HEARTBEATS
from runtime.untrusted_json import read_json, text

NO_PATTERNS = PatternSet(include=(), exclude=())
LARGEST: int = 100_000
"""Characters of all patterns together."""


def moving_patterns(flow: FlowConfig) -> PatternSet:
    """Return the patterns of the topics that a promotion moves: as `FlowConfig.moves` has it.

    Of a flow with identical names, which all flows are that can be promoted.
    """
    kept = [r"(__|\.).*", rf".*({re.escape(flow.separator)}internal|\.internal|-internal)"]
    kept.append(f".*{re.escape(DIVERGED)}")
    if flow.mirrormaker.heartbeats:
        kept.append(rf"(.*{re.escape(flow.separator)})?{HEARTBEATS}")
    # Kafka's names hold no line breaks, but whoever asks may ask about any name.
    exclude = tuple(re.compile(one, re.DOTALL) for one in kept)
    return PatternSet(include=flow.topics.include, exclude=(*flow.topics.exclude, *exclude))


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
