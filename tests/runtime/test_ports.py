"""Free ports: none comes twice, and none on which somebody listens."""

import socket
from itertools import islice

from runtime.ports import UNASSIGNED_PORTS, free_port, free_ports

HOST = "127.0.0.1"


def test_ports_are_different_and_below_the_outgoing_ones() -> None:
    ports = list(islice(free_ports(HOST), 50))
    assert len(set(ports)) == 50
    assert set(ports) <= set(UNASSIGNED_PORTS)


def test_a_port_in_use_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, free_port(HOST)))
        assert taken.getsockname()[1] not in set(free_ports(HOST))
