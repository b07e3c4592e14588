"""What a hook is told: equal for repetitions alone, and signed as Standard Webhooks has it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.hooks.occasion import occasion_of, posted, signature
from failover.journal.steps import PromotionKind, StepName
from runtime.configuration.hooks_section import HookConfig, signing_key
from tests.failover.hooks.occasions import OCCASION
from tests.failover.journals import begun, ended_promotion

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BOOTSTRAPS = {"dc1": "a:1", "dc2": "b:2"}


def test_a_signature_is_the_one_of_the_specification_s_example() -> None:
    signed = signature(
        signing_key(KEY), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_post_says_what_the_environment_says() -> None:
    headers, body = posted(OCCASION, signing_key(KEY), 1_700_000_001_999)
    said = json.loads(body)
    assert (said["type"], said["timestamp"]) == ("failover.switch.after", "2023-11-14T22:13:21Z")
    environment = {f"KAFKA_DR_{name.upper()}": value for name, value in said["data"].items()}
    assert environment == OCCASION.environment()
    assert environment["KAFKA_DR_BOOTSTRAP"] == "k1:9092,k2:9092"
    sent = dict(headers)
    assert sent["webhook-timestamp"] == "1700000001"
    assert sent["webhook-signature"] == signature(
        signing_key(KEY), sent["webhook-id"], "1700000001", body
    )


names = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=1)


@given(names, names)
def test_hooks_of_any_names_have_ids_of_their_own_that_a_header_can_hold(a: str, b: str) -> None:
    ids = []
    for name in (a, b):
        headers, _ = posted(replace(OCCASION, hook=name), b"k", 0)
        ids.append(dict(headers)["webhook-id"])
        assert ids[-1].isascii()
        assert ids[-1].isprintable()
    assert (ids[0] == ids[1]) == (a == b)


@pytest.mark.parametrize("other", [{"action": "undo"}, {"epoch": 4}, {"when": "before"}])
def test_another_call_has_another_key(other: dict[str, object]) -> None:
    assert replace(OCCASION, **other).key != OCCASION.key  # type: ignore[arg-type]


def test_a_hook_hears_of_the_site_that_is_active_at_its_point() -> None:
    hook = HookConfig(name="dns", step="fence", is_before=False, command=("true",))
    before = occasion_of(hook, begun(), BOOTSTRAPS)
    assert (before.active, before.bootstrap, before.when) == ("dc1", "a:1", "after")
    switched = ended_promotion(PromotionKind.PLANNED, {StepName.SWITCH: {}})
    behind = occasion_of(hook, switched, BOOTSTRAPS, is_undone=True)
    assert (behind.active, behind.bootstrap, behind.action) == ("dc2", "b:2", "undo")
