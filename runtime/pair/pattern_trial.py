"""Strangers' patterns against topics: a script of its own, in a process that may be killed.

It reads `[rivals, topics]` as JSON from its standard input, and writes for each rival the first
topic that it moves, or null. A rival is a list of `[include, exclude]`, one for each of its flows.
It imports none of our packages: it is started by its path.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import TypeAlias

Flow: TypeAlias = tuple[Sequence[str], Sequence[str]]


def first_moved(flows: Sequence[Flow], topics: Sequence[str]) -> str | None:
    """Return the first topic that some flow moves.

    A pattern that is not understood matches nothing: it is another program's.
    """
    return next((topic for topic in topics if any(_moves(flow, topic) for flow in flows)), None)


def _moves(flow: Flow, topic: str) -> bool:
    include, exclude = flow
    return any(_full_match(each, topic) for each in include) and not any(
        _full_match(each, topic) for each in exclude
    )


def _full_match(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic, re.DOTALL) is not None
    except (re.error, OverflowError, RecursionError):
        return False


if __name__ == "__main__":
    rivals, topics = json.load(sys.stdin)
    json.dump([first_moved(flows, topics) for flows in rivals], sys.stdout)
