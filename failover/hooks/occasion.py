"""What a hook is told: the same facts as variables of the environment and as a signed POST. Pure.

The POST is as Standard Webhooks has it (github.com/standard-webhooks/standard-webhooks, 1.0):
`webhook-id` is the same for every repetition of a call, `webhook-signature` is `v1,` and the base64
of HMAC-SHA256 over `<id>.<timestamp>.<body>`.
"""

import base64
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from failover.journal.journal import Journal
from failover.journal.steps import is_switched
from runtime.configuration.hooks_section import HookConfig
from runtime.configuration.topic_sets import DEFAULT_SET
from wire.values import frozen

PREFIX: Final = "KAFKA_DR_"


@frozen
class Occasion:
    """One hook at one point of one promotion; every repetition of the call is told the same."""

    hook: str
    step: str
    when: str
    """`before` or `after` the step."""
    action: str
    """`do`, or `undo` while the step is taken back."""
    epoch: int
    kind: str
    source: str
    site: str
    """The site that the promotion makes active."""
    active: str
    """The site that is active now."""
    bootstrap: str
    """The addresses of the active site's brokers, `host:port,host:port`."""
    begun_ms: int
    """When the promotion was begun: epochs begin anew with a new pair."""
    topic_set: str = DEFAULT_SET
    """The set of topics that moves; each has epochs of its own."""

    @property
    def key(self) -> str:
        """Return what tells a repetition from another call: equal for repetitions alone."""
        parts = (f"{self.begun_ms}", f"{self.epoch}", self.step, self.when, self.action, self.hook)
        of_set = () if self.topic_set == DEFAULT_SET else (self.topic_set,)
        return "-".join((*of_set, *parts))

    def facts(self) -> Mapping[str, str]:
        """Return all of it by name."""
        return {
            "key": self.key,
            "hook": self.hook,
            "step": self.step,
            "when": self.when,
            "action": self.action,
            "epoch": f"{self.epoch}",
            "kind": self.kind,
            "source": self.source,
            "site": self.site,
            "active": self.active,
            "bootstrap": self.bootstrap,
            "set": self.topic_set,
        }

    def environment(self) -> Mapping[str, str]:
        """Return the variables that a command gets beside those of the program."""
        return {f"{PREFIX}{name.upper()}": fact for name, fact in self.facts().items()}


def occasion_of(
    hook: HookConfig,
    journal: Journal,
    bootstraps: Mapping[str, str],
    *,
    is_undone: bool = False,
    topic_set: str = DEFAULT_SET,
) -> Occasion:
    """Return what a hook is told at its point of this promotion.

    `bootstraps` has the addresses of each site's brokers.
    """
    active = journal.site if is_switched(journal.step_states) else journal.source
    return Occasion(
        hook=hook.name,
        step=hook.step,
        when="before" if hook.is_before else "after",
        action="undo" if is_undone else "do",
        epoch=journal.epoch,
        kind=journal.kind.value,
        source=journal.source,
        site=journal.site,
        active=active,
        bootstrap=bootstraps.get(active, ""),
        begun_ms=journal.started_ms,
        topic_set=topic_set,
    )


def posted(
    occasion: Occasion, signing_key: bytes, now_ms: int
) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of the POST, signed now."""
    at = datetime.fromtimestamp(now_ms // 1_000, UTC)
    body = json.dumps(
        {
            "type": f"failover.{occasion.step}.{occasion.when}",
            "timestamp": at.isoformat().replace("+00:00", "Z"),
            "data": dict(occasion.facts()),
        }
    ).encode()
    message_id = quote(occasion.key, safe="")  # a hook's name may have any letters
    seconds = f"{now_ms // 1_000}"
    headers = [
        ("Content-Type", "application/json"),
        ("webhook-id", message_id),
        ("webhook-timestamp", seconds),
        ("webhook-signature", signature(signing_key, message_id, seconds, body)),
    ]
    return headers, body


def signature(signing_key: bytes, message_id: str, seconds: str, body: bytes) -> str:
    """Return the header that signs a POST sent at this time, in seconds since the epoch."""
    signed = b".".join((message_id.encode(), seconds.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(signing_key, signed, 'sha256')).decode()}"
