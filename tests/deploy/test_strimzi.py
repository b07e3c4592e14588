"""The example for Strimzi leaves our fences alone; Kustomize builds it in `make interop`."""

import re
from typing import Any

import pytest
import yaml

from runtime.rights.closing import EVERYBODY, FOUND_BY, SET_BY
from tests.deploy.strimzi import EXAMPLE


def ignored_users() -> str:
    """Return the pattern of the users whose entries Strimzi's operator does not delete."""
    objects: list[dict[str, Any]] = list(
        yaml.safe_load_all((EXAMPLE / "site" / "cluster.yaml").read_text())
    )
    [kafka] = [one for one in objects if one["kind"] == "Kafka"]
    operator = kafka["spec"]["entityOperator"]["template"]["userOperatorContainer"]
    [setting] = operator["env"]
    assert setting["name"] == "STRIMZI_IGNORED_USERS_PATTERN"
    return str(setting["value"])


@pytest.mark.parametrize(
    "principal", [EVERYBODY, f"{SET_BY}mirror-dc1-dc2", f"{FOUND_BY}mirror-dc1-dc2"]
)
def test_the_operator_deletes_no_entry_of_a_fence(principal: str) -> None:
    assert re.fullmatch(ignored_users(), principal.removeprefix("User:"))


@pytest.mark.parametrize("name", ["orders", "write-fence", "write-fences/x", "x*", "ANONYMOUS"])
def test_the_operator_still_looks_after_users(name: str) -> None:
    assert not re.fullmatch(ignored_users(), name)
