"""The ports of an endpoint under test: a row in which nobody listens."""

import socket
from itertools import chain

import pytest

from runtime.process.ports import free_port
from tests.failover.bootstrap import served

HOST = "127.0.0.1"


def test_a_row_in_which_somebody_listens_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = served.ports_in_a_row(4)
    beside, _ = served.ports_in_a_row(3)
    tried = chain([first - 2, beside], iter(free_port, None))
    monkeypatch.setattr(served, "free_port", lambda: next(tried))
    with socket.create_server((HOST, first)):
        assert served.ports_in_a_row(3) != (first - 2, first)
    assert last == first + 3
