"""What a promotion calls on its way: the list `failover.hooks` of the configuration."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from runtime.configuration.usable_keys import require_usable_ca
from runtime.tokens.https_address import HttpsAddress, parse_https
from wire.net.security import Secret, reveal
from wire.values import frozen

STEPS_WITH_HOOKS: Final = ("announce", "fence", "stop-flow", "seal", "open-target")
"""The steps before the switch that can be taken back, and a hook with them."""
STEPS_BEHIND_SWITCH: Final = ("switch", "start-reverse")
"""The steps behind which a hook can stand, and from which there is no way back."""

KEY_PREFIX: Final = "whsec_"
SHORTEST_SECRET_BYTES: Final = 24
LONGEST_SECRET_BYTES: Final = 64
_NAME_BYTES: Final = 64

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.hooks[].name": "The hook's name in the journal and in reports.",
        "failover.hooks[].before": "The step before which the hook is called: `announce`, `fence`, "
        "`stop-flow`, `seal` or `open-target`. When that step is taken back, the hook is called "
        "again to take back what it did.",
        "failover.hooks[].after": "The step behind which it is called: one of those, `switch` or "
        "`start-reverse`. Each hook has `before` or `after`.",
        "failover.hooks[].command": "A command and its arguments; no shell reads it. Status 0 is "
        "success.",
        "failover.hooks[].url": "Instead of a command: an address, `https://...`, that gets a POST "
        "as Standard Webhooks has it. A status from 200 to 299 is success.",
        "failover.hooks[].secret": "What the POST is signed with: `whsec_` and 24 to 64 bytes in "
        "base64.",
        "failover.hooks[].secret_file": "A file that holds `secret`; read at each call.",
        "failover.hooks[].ca": "The authorities of the address's certificate, as PEM. Without it "
        "the system's.",
        "failover.hooks[].check": "A command that tells by status 0 that the hook's work is to be "
        "seen. It is asked again and again until `timeout_ms` has passed.",
        "failover.hooks[].timeout_ms": "How long one call, and one check, may take. A command that "
        "takes longer is killed with all that it has started.",
        "failover.hooks[].attempts": "How many calls are made before the hook has failed.",
        "failover.hooks[].backoff_ms": "The pause before the second call, doubled before each "
        "further one.",
    }
)
"""What each key is for."""


@frozen
class Webhook:
    """Where a POST goes, and what it is signed with."""

    address: HttpsAddress
    secret: Secret = field(repr=False)
    ca: Path | None = None

    def signing_key(self) -> bytes:
        """Return the key as it is now. Raises ValueError, which does not show it."""
        return signing_key(reveal(self.secret))


@frozen
class HookConfig:
    """One hook: at which point of a promotion what is called, and with what patience."""

    name: str
    step: str
    is_before: bool
    """Whether it is called before the step, or behind it."""
    command: tuple[str, ...] = ()
    """Empty where `webhook` is called."""
    webhook: Webhook | None = None
    check: tuple[str, ...] = ()
    timeout_ms: int = 10_000
    attempts: int = 3
    backoff_ms: int = 1_000

    @property
    def point(self) -> str:
        """Return where it stands, as people say it: `before fence`."""
        return f"{'before' if self.is_before else 'after'} {self.step}"


def signing_key(secret: str) -> bytes:
    """Return the bytes of a `whsec_` secret. Raises ValueError, which does not show it."""
    if not secret.startswith(KEY_PREFIX):
        raise ValueError(f"must begin with {KEY_PREFIX}")
    try:
        key = base64.b64decode(secret.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"must have base64 behind {KEY_PREFIX}") from None
    if not SHORTEST_SECRET_BYTES <= len(key) <= LONGEST_SECRET_BYTES:
        raise ValueError(
            f"has {len(key)} bytes, not {SHORTEST_SECRET_BYTES} to {LONGEST_SECRET_BYTES}"
        )
    return key


def read_hooks(section: Section) -> tuple[HookConfig, ...]:
    """Take the list `hooks`, empty where there is none; raises ConfigurationError."""
    if "hooks" not in section.values:
        return ()
    hooks: list[HookConfig] = []
    for found in section.sections("hooks"):
        hook = found.attempt(partial(_read_hook, found))
        if hook is None:
            continue
        if any(hook.name == other.name for other in hooks):
            found.complain("name", f"there are two hooks {hook.name!r}")
        hooks.append(hook)
    return tuple(hooks)


def _read_hook(section: Section) -> HookConfig:
    name = section.string("name")
    if len(name.encode()) > _NAME_BYTES or not name.isprintable():
        raise section.error("name", f"must have at most {_NAME_BYTES} printable characters")
    step, is_before = _read_point(section)
    command = _command(section, "command")
    webhook = _read_webhook(section)
    section.require("command", "url")
    if bool(command) == (webhook is not None):
        problem = "names neither a command nor a url" if not command else "has a command and a url"
        raise section.complaint(problem)
    hook = HookConfig(
        name=name,
        step=step,
        is_before=is_before,
        command=command,
        webhook=webhook,
        check=_command(section, "check"),
        timeout_ms=section.integer("timeout_ms", 10_000, least=100, most=600_000),
        attempts=section.integer("attempts", 3, least=1, most=100),
        backoff_ms=section.integer("backoff_ms", 1_000, least=10, most=600_000),
    )
    section.finish()
    return hook


def _read_point(section: Section) -> tuple[str, bool]:
    if section.optional_string("before") in {"switch", "verify-fence"}:
        section.complain(
            "before",
            f"nothing may come between the last look and the switch; take one of"
            f" {', '.join(STEPS_WITH_HOOKS)}",
        )
    before = section.optional_choice("before", STEPS_WITH_HOOKS)
    after = section.optional_choice("after", (*STEPS_WITH_HOOKS, *STEPS_BEHIND_SWITCH))
    section.require("before", "after")
    if before is not None and after is None:
        return before, True
    if after is not None and before is None:
        return after, False
    raise section.complaint("needs one of `before` and `after`")


def _command(section: Section, key: str) -> tuple[str, ...]:
    command = section.strings(key, ())
    if key in section.values and (not command or not command[0]):
        raise section.error(key, "names no command")
    if any("\0" in part for part in command):
        raise section.error(key, "must not hold the character NUL")
    return command


def _read_webhook(section: Section) -> Webhook | None:
    url = section.optional_string("url")
    secret = section.secret("secret", required=url is not None)
    ca = section.file_path("ca")
    section.require("url")
    if url is None:
        for key in ("secret", "secret_file", "ca"):
            if key in section.values:
                raise section.error(key, "is of no use without a url")
        return None
    assert secret is not None, "it is required beside a url"
    try:
        signing_key(reveal(secret))
    except ValueError as problem:
        key = "secret" if "secret" in section.values else "secret_file"
        raise section.error(key, str(problem)) from None
    address = _address(section, url)
    require_usable_ca(section, "ca", ca)
    return Webhook(address=address, secret=secret, ca=ca)


def _address(section: Section, url: str) -> HttpsAddress:
    try:
        return parse_https(url)
    except ValueError as problem:
        raise section.error("url", str(problem)) from None
