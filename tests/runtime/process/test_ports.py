"""Free ports: none comes twice, whoever asks, and none on which somebody listens."""

import socket
import subprocess
import sys
from itertools import islice

import pytest

from runtime.process.ports import UNASSIGNED_PORTS, NoFreePort, free_port, free_ports

HOST = "127.0.0.1"


def test_ports_are_different_and_below_the_outgoing_ones() -> None:
    ports = list(islice(free_ports(HOST), 50))
    assert len(set(ports)) == 50
    assert set(ports) <= set(UNASSIGNED_PORTS)


def test_a_port_in_use_is_passed_over() -> None:
    with socket.create_server((HOST, 0)) as server:
        taken = server.getsockname()[1]
        assert list(free_ports(HOST, range(taken, taken + 1))) == []


def test_a_port_given_out_is_given_to_no_other_process_before_its_server_listens() -> None:
    given = free_port(HOST)
    again = (
        "from runtime.process.ports import free_ports\n"
        f"print(list(free_ports({HOST!r}, range({given}, {given + 1}))))"
    )
    assert subprocess.check_output([sys.executable, "-c", again], text=True).strip() == "[]"


def test_a_server_may_listen_on_a_port_given_out_stop_and_listen_again() -> None:
    port = free_port(HOST)
    for _ in range(2):
        with socket.create_server((HOST, port)), pytest.raises(OSError, match="in use"):
            socket.create_server((HOST, port))


def test_nobody_answers_on_a_port_given_out() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, free_port(HOST)), timeout=5)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("no-such-host.invalid", "not known"),
        ("no..host", "label empty"),
        ("192.0.2.1", "Cannot assign requested address"),
    ],
)
def test_a_host_where_nobody_can_listen_is_named_at_once(host: str, why: str) -> None:
    with pytest.raises(NoFreePort, match=f"^{host}: .*{why}"):
        free_port(host)
