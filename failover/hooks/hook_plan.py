"""What a plan says of hooks, and which of them cannot be called from this host."""

import shutil
from collections.abc import Iterable, Iterator, Mapping

from failover.journal.steps import ORDER, PromotionKind
from runtime.configuration.hooks_section import HookConfig


def hook_lines(hooks: Iterable[HookConfig], kind: PromotionKind) -> Iterator[str]:
    """Yield a line for each hook that a promotion of this kind calls."""
    for one in hooks_document(hooks, kind):
        yield f"  hook     {one['name']}, {one['point']}: {one['calls']}"


def hooks_document(hooks: Iterable[HookConfig], kind: PromotionKind) -> list[Mapping[str, str]]:
    """Return the JSON form of these hooks."""
    steps = {step.value for step in ORDER[kind]}
    return [
        {
            "name": hook.name,
            "point": hook.point,
            "calls": str(hook.webhook.address) if hook.webhook else " ".join(hook.command),
        }
        for hook in hooks
        if hook.step in steps
    ]


def why_not_runnable(hooks: Iterable[HookConfig]) -> str | None:
    """Return which hook names a command that cannot be run on this host, and None for none."""
    for hook in hooks:
        for command in (hook.command, hook.check):
            if command and shutil.which(command[0]) is None:
                return f"hook {hook.name}: {command[0]} is no command that can be run on this host"
    return None
