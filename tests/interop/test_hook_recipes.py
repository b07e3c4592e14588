"""The recipes of `deploy/hooks`, called as a promotion calls them, against real DNS servers."""

import os
import socket
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio

from failover.hooks.call import HookFailed, call_hook
from runtime.configuration.hooks_section import HookConfig
from runtime.process.child import end_child, open_child
from runtime.process.ports import free_port
from tests.debian import unpack_packages
from tests.failover.hooks.occasions import OCCASION
from tests.interop.peers import PeerUnavailable

RECIPES: Final = Path(__file__).parents[2] / "deploy" / "hooks"
UNPACKED: Final = Path(__file__).parents[2] / "build" / "dns"
PACKAGES: Final = (
    *("dnsmasq-base", "libnetfilter-conntrack3", "libnfnetlink0", "libmnl0", "libnftables1"),
    *("libnftnl11", "libjansson4", "libxtables12"),
    *("bind9", "bind9-dnsutils", "bind9-libs", "libjemalloc2", "libmaxminddb0", "libfstrm0"),
    *("libprotobuf-c1", "liburcu8", "libuv1", "libedit2", "libbsd0", "libmd0"),
)
NAME: Final = "kafka.example.com"
SEEN_S: Final = 20
A, CNAME = 1, 5

pytestmark = pytest.mark.usefixtures("system")


@pytest.fixture(scope="module")
def system() -> Iterator[None]:
    """The environment in which the packages' programs are found."""
    if not UNPACKED.exists():
        said = unpack_packages(PACKAGES, UNPACKED)
        if said is not None:
            raise PeerUnavailable(f"dnsmasq and BIND: {said}")
    programs = os.pathsep.join(str(UNPACKED / "usr" / one) for one in ("sbin", "bin"))
    libraries = next((UNPACKED / "usr" / "lib").glob("*-linux-gnu"))
    added = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(libraries),
    }
    with pytest.MonkeyPatch.context() as patch:
        for key, value in added.items():
            patch.setenv(key, value)
        yield


@asynccontextmanager
async def server(folder: Path, *command: str) -> AsyncIterator[None]:
    with (folder / "out").open("wb") as output:
        process = await open_child(command, output=output)
        try:
            yield
        finally:
            await end_child(process, patience_s=10)


def asked(port: int, kind: int) -> bytes | None:
    """Ask the server for the name; return the data of its first answer, None for none."""
    labels = b"".join(bytes([len(one)]) + one.encode() for one in NAME.split("."))
    question = labels + struct.pack(">xHH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        client.sendto(struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + question, ("127.0.0.1", port))
        try:
            answer = client.recv(4096)
        except (TimeoutError, ConnectionRefusedError):
            return None
    if struct.unpack_from(">H", answer, 6)[0] == 0:
        return None
    start = 12 + len(question)
    start += 2 if answer[start] >= 0xC0 else len(labels) + 1
    (length,) = struct.unpack_from(">H", answer, start + 8)
    return answer[start + 10 : start + 10 + length]


async def shows(port: int, kind: int, wanted: bytes) -> None:
    with trio.fail_after(SEEN_S):
        while wanted not in (asked(port, kind) or b""):  # noqa: ASYNC110 - another process
            await trio.sleep(0.1)


def recipe(file: str, *arguments: str) -> HookConfig:
    command = (str(RECIPES / file), *arguments)
    return HookConfig(name="dns", step="switch", is_before=False, command=command)


async def moved(hook: HookConfig, sites: Sequence[str]) -> AsyncIterator[str]:
    for site in sites:
        await call_hook(hook, replace(OCCASION, active=site))
        yield site


@pytest.mark.matrix(subject="Hooks of a promotion", against="dnsmasq of Debian")
async def test_dnsmasq_points_the_name_at_the_active_site(tmp_path: Path) -> None:
    hosts, port = tmp_path / "hosts", free_port()
    hosts.mkdir()
    command = ["dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--pid-file="]
    command += [f"--hostsdir={hosts}", f"--port={port}", "--listen-address=127.0.0.1"]
    command += ["--bind-interfaces", "--user=", "--conf-file=/dev/null", "--local-ttl=1"]
    addresses = {"dc1": "10.1.0.10", "dc2": "10.2.0.10"}
    hook = recipe(
        "dns-dnsmasq.sh", NAME, str(hosts), *(f"{one}={addresses[one]}" for one in addresses)
    )
    async with server(tmp_path, *command):
        async for site in moved(hook, ("dc1", "dc2", "dc2", "dc1")):
            await shows(port, A, socket.inet_aton(addresses[site]))
        with pytest.raises(HookFailed, match="no address is given for the site dc3"):
            await call_hook(hook, replace(OCCASION, active="dc3"))


@pytest.mark.matrix(subject="Hooks of a promotion", against="BIND of Debian")
async def test_bind_points_the_name_at_the_active_site(tmp_path: Path) -> None:
    port = free_port()
    key = (
        'key "promotions" { algorithm hmac-sha256; secret "c2VjcmV0IG9mIGEgdGVzdC4uLi4uLi4u"; };\n'
    )
    (tmp_path / "key").write_text(key)
    (tmp_path / "zone").write_text(
        "$TTL 30\n@ IN SOA ns.example.com. admin.example.com. 1 60 60 60 30\n"
        "@ IN NS ns.example.com.\nns IN A 127.0.0.1\nkafka IN CNAME k.dc1.example.com.\n"
    )
    (tmp_path / "named.conf").write_text(
        key
        + f'options {{ directory "{tmp_path}"; listen-on port {port} {{ 127.0.0.1; }}; '
        + f'listen-on-v6 {{ none; }}; pid-file "{tmp_path}/pid"; recursion no; '
        + f'session-keyfile "{tmp_path}/session"; dnssec-validation no; }};\n'
        + "controls { };\n"
        + f'zone "example.com" {{ type master; file "{tmp_path}/zone"; '
        + "allow-update { key promotions; }; };\n"
    )
    hook = recipe(
        "dns-update.sh",
        *(NAME, f"127.0.0.1 {port}", str(tmp_path / "key")),
        *("dc1=k.dc1.example.com", "dc2=k.dc2.example.com"),
    )
    async with server(tmp_path, "named", "-g", "-c", str(tmp_path / "named.conf")):
        await shows(port, CNAME, b"\x03dc1")
        async for site in moved(hook, ("dc2", "dc2", "dc1")):
            await shows(port, CNAME, b"\x03" + site.encode())
