"""A real single ZooKeeper server as a child process, from the jars inside the PySpark package."""

import argparse
import errno
import fcntl
import importlib.util
import logging
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Final

import trio

from runtime.process.child import end_child, open_child
from runtime.process.class_archive import ClassArchive, class_archive
from runtime.process.extras import install_command
from runtime.process.java import JavaMissing, java_command
from runtime.process.logs import configure
from runtime.process.ports import free_port
from runtime.process.signals import cancel_on_signal
from wire.values import frozen

_LOG = logging.getLogger(__name__)

JARS: Final = (
    "zookeeper-*.jar",
    "slf4j-api-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-io-*.jar",
)
"""What a server without TLS and users loads: the JVM opens all that it is given."""
GUARDED_JARS: Final = ("netty-*.jar", "commons-*.jar")
"""What one with TLS or users loads beside."""
START_TIMEOUT_S: Final = 30
ANSWER_TIMEOUT_S: Final = 1
STOP_TIMEOUT_S: Final = 5
FREED_WITHIN_S: Final = 5
FREED_POLL_S: Final = 0.1
HEAP_MEGABYTES: Final = 64


class ZooKeeperServerFailed(RuntimeError):
    """The server did not come up; the message names its port, folder and last words."""


@frozen
class ServerDoors:
    """How clients come in: with neither keys nor users, everybody does."""

    keys: Path | None = None
    """The server's certificate and private key in one PEM file: it speaks TLS alone."""
    authorities: Path | None = None
    """With `keys`: only clients with a certificate of these, a PEM file."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords by user, for SASL's DIGEST-MD5; the digest scheme needs none here."""
    owner: str | None = None
    """`<user>:<hash>` of the digest scheme: who may do everything, whatever a node's rights say."""


UNGUARDED: Final = ServerDoors()


@frozen
class ZooKeeperServer:
    """A server that answers on `host`:`port`; `process` is its Java process."""

    host: str
    port: int
    process: trio.Process
    doors: ServerDoors = UNGUARDED

    @property
    def address(self) -> str:
        """Return `host:port`, as a `zookeeper.connect` setting wants it."""
        return f"{self.host}:{self.port}"


def jar_folder() -> Path:
    """Return PySpark's jar folder without importing PySpark, which would cost 30 MB."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ZooKeeperServerFailed(
            "ZooKeeper's jar ships inside the Python package pyspark, which is not installed: "
            + install_command("local")
        )
    return Path(spec.origin).parent / "jars"


def _jars(*, is_guarded: bool) -> list[Path]:
    patterns = {*JARS, *GUARDED_JARS} if is_guarded else JARS
    return sorted({jar for pattern in patterns for jar in jar_folder().glob(pattern)})


def _configuration(data: Path, host: str, port: int, doors: ServerDoors) -> str:
    lines = (
        "tickTime=250\ninitLimit=10\nsyncLimit=5\nminSessionTimeout=2000\n"
        "maxSessionTimeout=60000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
        "4lw.commands.whitelist=ruok,srvr,mntr\nautopurge.purgeInterval=1\n"
        "autopurge.snapRetainCount=3\n"
        f"dataDir={data}\n"
    )
    if doors.users:
        lines += "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
    if doors.owner is not None:
        lines += f"DigestAuthenticationProvider.superDigest={doors.owner}\n"
    if doors.keys is None:
        return lines + f"clientPortAddress={host}\nclientPort={port}\n"
    return lines + (
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={doors.keys}\nssl.keyStore.type=PEM\n"
        f"ssl.trustStore.location={doors.authorities or doors.keys}\nssl.trustStore.type=PEM\n"
        f"ssl.clientAuth={'none' if doors.authorities is None else 'need'}\n"
        f"secureClientPortAddress={host}\nsecureClientPort={port}\n"
    )


def _logins(users: Mapping[str, str]) -> str:
    """Return the users as the Java login modules want them."""
    lines = "".join(f'    user_{name}="{password}"\n' for name, password in users.items())
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    return f"Server {{\n  {module}\n{lines}  ;\n}};\n"


def server_command(configuration: Path) -> list[str]:
    """Return how to start a server on a `zoo.cfg`; raises JavaMissing."""
    return _command(java_command(), _jars(is_guarded=True), None, configuration, None)


def _command(
    java: Path,
    jars: Sequence[Path],
    archive: ClassArchive | None,
    configuration: Path,
    logins: Path | None,
) -> list[str]:
    return [
        str(java),
        *(archive.options if archive is not None else ()),
        f"-Xmx{HEAP_MEGABYTES}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        "-Xshare:auto",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.preAllocSize=1024",
        *([] if logins is None else [f"-Djava.security.auth.login.config={logins}"]),
        "-cp",
        ":".join(map(str, jars)),
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        str(configuration),
    ]


async def _wait_free(host: str, port: int) -> None:
    """Wait until nobody listens there; raises ZooKeeperServerFailed.

    Whoever was killed just now leaves a server behind that is still ending, and has its port.
    """
    deadline_s = trio.current_time() + FREED_WITHIN_S
    while (error := _occupied(host, port)) is not None:
        if error.errno != errno.EADDRINUSE or trio.current_time() >= deadline_s:
            raise ZooKeeperServerFailed(
                f"ZooKeeper cannot listen on {host}:{port}: {error.strerror}"
            ) from error
        await trio.sleep(FREED_POLL_S)


def _occupied(host: str, port: int) -> OSError | None:
    """Return why nobody can listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


async def _connect(server: ZooKeeperServer) -> trio.abc.Stream:
    """Connect as a client that asks for nothing but whether the server, our child, serves."""
    stream = await trio.open_tcp_stream(server.host, server.port)
    keys = server.doors.keys
    if keys is None:
        return stream
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(keys)
    return trio.SSLStream(stream, context, https_compatible=True)


async def _is_serving(server: ZooKeeperServer) -> bool:
    """Ask with the four-letter word `srvr`.

    A server that is still starting refuses the connection, says that it is not serving, or takes
    the connection and never answers it.
    """
    answer = b""
    with trio.move_on_after(ANSWER_TIMEOUT_S):
        try:
            async with await _connect(server) as stream:
                await stream.send_all(b"srvr")
                async for chunk in stream:
                    answer += chunk
        except (OSError, trio.BrokenResourceError):
            return False
    return answer.startswith(b"Zookeeper version")


async def _wait_serving(server: ZooKeeperServer, output: Path) -> None:
    with trio.move_on_after(START_TIMEOUT_S):
        while server.process.poll() is None:
            if await _is_serving(server):
                return
            await trio.sleep(0.05)
    last_words = output.read_text(errors="replace").strip().splitlines()[-1:] or [
        "(it said nothing)"
    ]
    raise ZooKeeperServerFailed(
        f"ZooKeeper on {server.address} with data in {output.parent} did not start: {last_words[0]}"
    )


@asynccontextmanager
async def run_zookeeper(
    data: Path, *, host: str = "127.0.0.1", port: int = 0, doors: ServerDoors = UNGUARDED
) -> AsyncIterator[ZooKeeperServer]:
    """Run a server on `data` (kept across runs) until the block ends; port 0 takes a free one.

    Raises JavaMissing or ZooKeeperServerFailed: ZooKeeper itself would let two servers write into
    one folder, so it is locked. The server ends with this process, even when that is killed by
    SIGKILL.
    """
    java, jars = java_command(), _jars(is_guarded=doors.keys is not None or bool(doors.users))
    archive = class_archive(java, jars)
    chosen = port or free_port(host)
    await _wait_free(host, chosen)
    with ExitStack() as opened:
        configuration = data / "zoo.cfg"
        output = data / "zookeeper.out"
        try:
            data.mkdir(parents=True, exist_ok=True)
            data.chmod(0o700)  # what lies in its files is read past every right of a node
            lock = opened.enter_context((data / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            configuration.write_text(_configuration(data, host, chosen, doors))
            logins = data / "logins.conf" if doors.users else None
            if logins is not None:
                logins.touch(mode=0o600)
                logins.write_text(_logins(doors.users))
            sink = opened.enter_context(output.open("wb"))
        except OSError as error:
            raise ZooKeeperServerFailed(f"ZooKeeper's data folder {data}: {_why(error)}") from error
        command = _command(java, jars, archive, configuration, logins)
        process = await open_child(command, output=sink)
        server = ZooKeeperServer(host=host, port=chosen, process=process, doors=doors)
        try:
            await _wait_serving(server, output)
            yield server
        finally:
            await end_child(process, patience_s=STOP_TIMEOUT_S)
            _keep(archive)


def _keep(archive: ClassArchive | None) -> None:
    try:
        if archive is not None:
            archive.keep()
    except OSError as error:
        _LOG.info("the next ZooKeeper starts no sooner: %s", error)


def _why(error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return "in use by another ZooKeeper server"
    return error.strerror or str(error)


async def _serve(data: Path, host: str, port: int, doors: ServerDoors) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(cancel_on_signal, nursery.cancel_scope))
        async with run_zookeeper(data, host=host, port=port, doors=doors) as server:
            _LOG.info("ZooKeeper serves %s with data in %s", server.address, data)
            await server.process.wait()
        raise ZooKeeperServerFailed(f"ZooKeeper on {server.address} ended by itself")


def main() -> int:
    """Run one ZooKeeper in the foreground, as `python -m` starts this module."""
    parser = argparse.ArgumentParser(prog="zookeeper_server", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=2181)
    parser.add_argument("--keys", type=Path, help="key and certificate as PEM: TLS alone")
    parser.add_argument("--authorities", type=Path, help="of the certificates that clients show")
    options = parser.parse_args()
    doors = ServerDoors(keys=options.keys, authorities=options.authorities)
    configure("zookeeper")
    failures: list[str] = []
    try:
        trio.run(_serve, options.data.resolve(), options.host, options.port, doors)
    except* (JavaMissing, ZooKeeperServerFailed) as group:
        failures = [str(error) for error in group.exceptions]
    for failure in failures:
        _LOG.error("%s", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
