"""How long a request may wait."""

import pytest

from broker.apis.timeouts import timeout_s


@pytest.mark.parametrize(("sent_ms", "waited_s"), [(-5, 0), (0, 0), (1, 0.001), (1_500, 1.5)])
def test_a_negative_timeout_waits_for_nothing(sent_ms: int, waited_s: float) -> None:
    assert timeout_s(sent_ms) == waited_s
