"""Addresses of ZooKeeper as Kafka's `zookeeper.connect` has them."""

import pytest

from broker.zookeeper.address import check_address, chroot_of, servers_of


@pytest.mark.parametrize(
    ("address", "servers", "chroot"),
    [
        ("zk:2181", "zk:2181", ""),
        ("a:1,b:2/kafka", "a:1,b:2", "/kafka"),
        ("a:1/sites/dc1", "a:1", "/sites/dc1"),
    ],
)
def test_the_chroot_comes_behind_all_servers(address: str, servers: str, chroot: str) -> None:
    check_address(address)
    assert (servers_of(address), chroot_of(address)) == (servers, chroot)


@pytest.mark.parametrize(
    "address",
    ["", "zk", "zk:x", "zk:1/", "zk:1//a", "zk:1/a/", "zk:1/a/../b", "zk:1/.", "a:1/c,b:2/c"],
)
def test_what_is_no_address_is_named_with_the_form(address: str) -> None:
    with pytest.raises(ValueError, match=r"is not of the form host:port\[,host:port\]\[/chroot\]"):
        check_address(address)


@pytest.mark.parametrize("port", [0, 65_536])
def test_a_port_that_cannot_be_is_named_with_its_server(port: int) -> None:
    with pytest.raises(ValueError, match=f"'b:{port}': there is no port {port}"):
        check_address(f"a:1,b:{port}/kafka")
