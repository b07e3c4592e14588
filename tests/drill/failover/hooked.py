"""The hooks of a drill: one at every point where there may be one, which fail and hang as is drawn.

Each is the same small script. It writes down that it was called, looks up what is to become of this
call, and writes down how it ended. A hook that hangs is killed by whoever has called it.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from runtime.configuration.hooks_section import STEPS_BEHIND_SWITCH, STEPS_WITH_HOOKS

POINTS: Final = (
    *((when, step) for step in STEPS_WITH_HOOKS for when in ("before", "after")),
    *(("after", step) for step in STEPS_BEHIND_SWITCH),
)
NAMES: Final = tuple(f"{when}_{step}" for when, step in POINTS)
"""Of the hooks, as a promotion comes to them."""
SCRIPT: Final = """#!/bin/sh
say() { echo "$KAFKA_DR_KEY $(date +%s%3N) $1" >> "$0.calls"; }
say begun
while read -r hook what; do
  if [ "$hook" = "$KAFKA_DR_HOOK" ]; then
    case $what in
      fails) say failed; exit 1 ;;
      hangs) exec sleep 60 ;;
      "fails once") if mkdir "$0.$KAFKA_DR_KEY" 2>/dev/null; then say failed; exit 1; fi ;;
    esac
  fi
done < "$0.luck"
say done
"""
TIMEOUT_MS: Final = 800
BACKOFF_MS: Final = 50


class Mishap(Enum):
    """What becomes of a hook's calls."""

    FAILS = "fails"
    FAILS_ONCE = "fails once"
    HANGS = "hangs"


class Told(Enum):
    """What a call has written down."""

    BEGUN = "begun"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookLine:
    """One line of the script: of which promotion, of which hook, and when.

    `topic_set` is the named set that moved, None for the default set's.
    """

    started_ms: int
    epoch: int
    is_undone: bool
    hook: str
    at_ms: int
    told: Told
    topic_set: str | None = None


@dataclass(frozen=True, slots=True)
class DrilledHooks:
    """The script and what lies beside it."""

    script: Path

    def install(self) -> list[Mapping[str, Any]]:
        """Write the script; return the section `failover.hooks`."""
        self.script.write_text(SCRIPT)
        self.script.chmod(0o755)
        self.draw({})
        return [
            {
                "name": name,
                when: step,
                "command": [str(self.script)],
                "timeout_ms": TIMEOUT_MS,
                "attempts": 2,
                "backoff_ms": BACKOFF_MS,
            }
            for name, (when, step) in zip(NAMES, POINTS, strict=True)
        ]

    def draw(self, mishaps: Mapping[str, Mishap]) -> None:
        """Have these hooks fail or hang from now on, and all others do what they should."""
        lines = [f"{hook} {mishap.value}\n" for hook, mishap in mishaps.items()]
        new = self.script.with_suffix(".new")
        new.write_text("".join(lines))
        new.replace(f"{self.script}.luck")

    def calls(self) -> list[HookLine]:
        """Return all lines so far, in order."""
        file = Path(f"{self.script}.calls")
        return [line_of(one) for one in file.read_text().splitlines()] if file.exists() else []


def line_of(line: str) -> HookLine:
    """Return what a line of the script says: a key as `failover.hooks.occasion` makes it."""
    key, at_ms, told = line.split(" ")
    named, _, own = key.partition("-")
    topic_set = None if named.isdecimal() else named
    started_ms, epoch, rest = (key if topic_set is None else own).split("-", 2)
    hook = next(name for name in NAMES if rest.endswith(f"-{name}"))
    return HookLine(
        started_ms=int(started_ms),
        epoch=int(epoch),
        is_undone=rest.removesuffix(f"-{hook}").endswith("-undo"),
        hook=hook,
        at_ms=int(at_ms),
        told=Told(told),
        topic_set=topic_set,
    )


def plan_mishaps(seed: int, number: int) -> Mapping[str, Mishap]:
    """Return which hooks fail or hang in round `number`: none in every second round."""
    luck = random.Random(f"hooks {seed} {number}")
    if luck.random() < 0.5:
        return {}
    mishap = luck.choices([*Mishap], [2, 3, 2])[0]
    return dict.fromkeys(luck.sample(NAMES, luck.choice((1, 1, 2))), mishap)
