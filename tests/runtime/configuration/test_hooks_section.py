"""The list `failover.hooks`: what is called when, and what is wrong with a hook."""

from pathlib import Path
from typing import Any

import pytest

from runtime.configuration.config import ConfigurationError, load
from runtime.configuration.hooks_section import HookConfig
from tests.dc_yaml import dc_yaml

KEY = "whsec_" + "A" * 40
DNS: dict[str, Any] = {"name": "dns", "after": "switch", "command": ["move-dns", "dc2"]}
PAGER: dict[str, Any] = {"name": "pager", "before": "fence", "url": "https://a/b", "secret": KEY}


def loaded(folder: Path, *hooks: dict[str, Any]) -> tuple[HookConfig, ...]:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(failover={"hooks": list(hooks)}))
    return load(file).failover.hooks


def test_without_the_list_nothing_is_called(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml())
    assert load(file).failover.hooks == ()


def test_commands_and_webhooks_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    dns, pager = loaded(tmp_path, {**DNS, "check": "seen"}, {**PAGER, "attempts": 7})
    assert (dns.point, dns.command, dns.check) == ("after switch", ("move-dns", "dc2"), ("seen",))
    assert (dns.timeout_ms, dns.attempts, dns.backoff_ms) == (10_000, 3, 1_000)
    assert (pager.point, pager.attempts) == ("before fence", 7)
    assert pager.webhook is not None
    assert str(pager.webhook.address) == "https://a/b"
    assert KEY not in repr(pager)


def test_a_secret_s_file_is_read_at_each_call(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text(KEY)
    secret.chmod(0o600)
    [hook] = loaded(tmp_path, {**without(PAGER, "secret"), "secret_file": "key"})
    assert hook.webhook is not None
    before = hook.webhook.signing_key()
    secret.write_text("whsec_" + "B" * 40)
    assert hook.webhook.signing_key() != before


def without(hook: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in hook.items() if name != key}


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (without(DNS, "after"), r"hooks\[0\]: needs one of `before` and `after`"),
        ({**DNS, "before": "fence"}, "needs one of `before` and `after`"),
        ({**without(DNS, "after"), "before": "switch"}, "between the last look and the switch"),
        ({**without(DNS, "after"), "before": "drain"}, "'drain' is not one of announce, fence"),
        ({**DNS, "after": "confirm"}, "'confirm' is not one of announce"),
        (without(DNS, "command"), "names neither a command nor a url"),
        ({**DNS, "url": "https://a/b", "secret": KEY}, "has a command and a url"),
        ({**DNS, "command": []}, "command: names no command"),
        ({**DNS, "check": [""]}, "check: names no command"),
        ({**DNS, "name": "a\nb"}, "name: must have at most 64 printable"),
        ({**DNS, "secret": KEY}, "secret: is of no use without a url"),
        (without(PAGER, "secret"), "secret: is missing"),
        ({**PAGER, "url": "http://a/b"}, "url: must begin with https://"),
        ({**PAGER, "secret": "opensesame"}, "secret: must begin with whsec_"),
        ({**PAGER, "secret": "whsec_%%%"}, "secret: must have base64 behind whsec_"),
        ({**PAGER, "secret": "whsec_QUJD"}, "secret: has 3 bytes, not 24 to 64"),
        ({**PAGER, "ca": "dc.yaml"}, "ca: cannot be used"),
        ({**DNS, "timeout_ms": 0}, "timeout_ms: 0 is not between 100 and 600000"),
        ({**DNS, "attempts": 0}, "attempts"),
        ({**DNS, "retries": 3}, "retries: unknown key"),
    ],
)
def test_what_is_wrong_with_a_hook_is_named(
    tmp_path: Path, hook: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        loaded(tmp_path, hook)
    assert "opensesame" not in str(caught.value)


def test_two_hooks_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there are two hooks 'dns'"):
        loaded(tmp_path, DNS, {**DNS, "after": "fence"})
