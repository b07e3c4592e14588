"""A realm of Kerberos: MIT's KDC as a child process, with principals and keytabs in a folder."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Final

from runtime.process.ports import free_port
from tests.failover.two_sites import pause
from tests.interop.peers.faults import PeerFailed, PeerUnavailable

REALM: Final = "DRILL.TEST"
HOST: Final = "127.0.0.1"
PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
UP_S: Final = 30


@dataclass(frozen=True, slots=True)
class Realm:
    """The running realm; `environment` is what clients and servers of it need."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'ccache'}",
        }

    def keytab(self, principal: str) -> Path:
        """Add a principal with a random key, and return a keytab of it."""
        file = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-q", f"ktadd -k {file} {principal}")
        return file

    def log_in(self, keytab: Path, principal: str) -> None:
        """Fill the credential cache, as a person does."""
        self.run("kinit", "-k", "-t", str(keytab), principal)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the realm's programs to its end."""
        done = subprocess.run(
            [_found(program), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=UP_S,
            check=False,
        )
        if done.returncode != 0:
            raise PeerFailed(f"{program}: {done.stderr.strip() or done.stdout.strip()}")


@contextmanager
def run_kdc(folder: Path) -> Iterator[Realm]:
    """Run a realm until the block ends. Raises PeerUnavailable where it cannot be had."""
    if find_spec("gssapi") is None:
        raise PeerUnavailable("the Python package gssapi is not installed (`pip install gssapi`)")
    missing = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if missing:
        raise PeerUnavailable(f"{missing[0]} is not installed (Debian: krb5-kdc, krb5-user)")
    folder.mkdir(parents=True)
    port = free_port(HOST)
    (folder / "krb5.conf").write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
        " dns_lookup_realm = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = {HOST}:{port}\n }}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principals\n"
        f"  key_stash_file = {folder}/stash\n  kdc_listen = {HOST}:{port}\n"
        f"  kdc_tcp_listen = {HOST}:{port}\n }}\n"
    )
    realm = Realm(folder)
    realm.run("kdb5_util", "create", "-s", "-P", "of a test", "-r", REALM)
    with (folder / "kdc.log").open("wb") as log:
        server = subprocess.Popen(
            [_found("krb5kdc"), "-n"],
            env={**os.environ, **realm.environment},
            stdout=log,
            stderr=log,
        )
    try:
        _wait_listening(server, port)
        yield realm
    finally:
        server.terminate()
        server.wait(UP_S)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin"


def _found(program: str) -> str:
    return shutil.which(program, path=_path()) or program


def _wait_listening(server: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = monotonic() + UP_S
    while monotonic() < deadline and server.poll() is None:
        try:
            with socket.create_connection((HOST, port), timeout=1):
                return
        except OSError:
            pause(0.05)
    raise PeerFailed("krb5kdc does not listen")
