"""Other pairs on a cluster that move topics which this pair moves too.

Their patterns are somebody else's, and Python's `re` may take for ever over a pattern: nothing in
its own process stops it. So they are tried in a child that is killed after TRIAL_S.
"""

import json
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from runtime.pair import pattern_trial
from runtime.pair.evidence import TOPIC, Evidence

TRIAL_S: Final = 10.0


class RivalsUnknown(Exception):
    """Nobody can tell which topics other pairs move; the message names them."""


def find_candidates(
    evidence: Collection[Evidence], *, path: str, sites: Collection[str], cluster_id: str
) -> list[Evidence]:
    """Return the evidence of other pairs on this cluster.

    Evidence that names other cluster ids was copied here and says nothing.
    """
    return [
        one
        for one in evidence
        if not one.is_of(path, sites) and cluster_id in one.clusters.values()
    ]


async def find_rivals(
    candidates: Sequence[Evidence], ours: Sequence[str], *, limit_s: float = TRIAL_S
) -> Mapping[str, Evidence]:
    """Return the pairs that move some of our topics, by the first of these topics.

    Raises RivalsUnknown where their patterns take longer than `limit_s`.
    """
    if not candidates or not ours:
        return {}
    flows = [[(each.include, each.exclude) for each in one.topics.values()] for one in candidates]
    asked = json.dumps([flows, ours]).encode()
    with trio.move_on_after(limit_s):
        answer = await trio.run_process(
            [sys.executable, "-I", str(Path(pattern_trial.__file__))],
            stdin=asked,
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if answer.returncode == 0:
            moved = json.loads(answer.stdout)
            found: dict[str, Evidence] = {}
            for topic, one in zip(moved, candidates, strict=True):
                if topic is not None:
                    found.setdefault(topic, one)
            return found
    pairs = ", ".join(f"{' and '.join(sorted(one.clusters))} at {one.path}" for one in candidates)
    raise RivalsUnknown(
        f"which topics other pairs move could not be found out within {limit_s:g} s, by the"
        f" patterns in {TOPIC} ({pairs}); correct their patterns, or delete their records there"
    )
