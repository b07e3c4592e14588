"""Small foreign clients, built when asked: franz-go, Sarama (Go), kafkajs (JavaScript), and kcat.

Each raises PeerUnavailable, with what to install, when it cannot be had.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.peers import PeerUnavailable
from tests.interop.peers.artifacts import CACHE

GO_SOURCES: Final = Path(__file__).with_name("go")
JS_SOURCES: Final = Path(__file__).with_name("js")
BUILD_TIMEOUT_S: Final = 600
RUN_TIMEOUT_S: Final = 300
FRANZ_GO: Final = "github.com/twmb/franz-go"
SARAMA: Final = "github.com/IBM/sarama"


class ClientFailed(RuntimeError):
    """A foreign client ended with a status other than 0; the message has what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignClient:
    """A client that is ready to run: `command BOOTSTRAP TOPIC RECORDS HOW` prints a JSON report."""

    name: str
    command: tuple[str, ...]
    prefix: str = ""
    """What tells this client from another one in the same program, in `through`."""

    def through(self, bootstrap: str, topic: str, how: str) -> list[str]:
        """Return the command that goes on to `write` or to `read` until SIGTERM."""
        program, *script = self.command
        beside = [str(Path(each).with_name("through.js")) for each in script]
        return [program, *beside, bootstrap, topic, "0", f"{self.prefix}{how}"]

    def work(
        self,
        bootstrap: str,
        topic: str,
        records: int,
        how: str,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, int]:
        """Produce, consume, commit and read again; return the client's report.

        The topic is subscribed to by its `name` or by a `pattern`; or records are committed in
        `transactions`. With `rights` and `quota` it writes alone.
        """
        command = [*self.command, bootstrap, topic, str(records), how]
        said = run_client(command, environment=environment)
        report: dict[str, int] = json.loads(said)
        return report


def franz_go() -> ForeignClient:
    """Build the Go client."""
    return _of_go("franz-go", FRANZ_GO)


def named_franz_go() -> ForeignClient:
    """Build the Go client; in `through` it knows topics by their names alone."""
    return _of_go("franz-go by names", FRANZ_GO, "named-")


def sarama() -> ForeignClient:
    """Build the other Go client, which goes on through promotions alone."""
    return _of_go("Sarama", SARAMA, "sarama-")


def _of_go(name: str, module: str, prefix: str = "") -> ForeignClient:
    go = _installed("go", "Go 1.24 or newer")
    binary = CACHE / "franz-go" / "interop"
    binary.parent.mkdir(parents=True, exist_ok=True)
    _build([go, "build", "-o", str(binary), "."], GO_SOURCES)
    version = _build([go, "list", "-m", "-f", "{{.Version}}", module], GO_SOURCES).strip()
    full = f"{name} {version.removeprefix('v')}"
    return ForeignClient(name=full, command=(str(binary),), prefix=prefix)


def kafkajs() -> ForeignClient:
    """Install the JavaScript client beside a copy of its program."""
    node = _installed("node", "Node.js 18 or newer")
    npm = _installed("npm", "npm")
    folder = CACHE / "kafkajs"
    shutil.copytree(JS_SOURCES, folder, dirs_exist_ok=True)
    _build([npm, "install", "--no-package-lock", "--no-audit", "--no-fund"], folder)
    installed = folder / "node_modules" / "kafkajs" / "package.json"
    version = json.loads(installed.read_text())["version"]
    return ForeignClient(name=f"kafkajs {version}", command=(node, str(folder / "main.js")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kcat:
    """The program kcat; Debian's is built on an old librdkafka, which asks for more."""

    name: str
    path: str

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Return what it printed. Raises ClientFailed."""
        return run_client([self.path, *arguments], given=given)

    def run_json(self, *arguments: str) -> Any:
        """Return what it printed as one JSON value."""
        return json.loads(self.run(*arguments, "-J"))


def kcat() -> Kcat:
    """Find kcat on the machine."""
    path = shutil.which("kcat") or shutil.which("kafkacat")
    if path is None:
        raise PeerUnavailable("kcat is missing: install it (apt-get install kcat)")
    told = subprocess.run(
        [path, "-V"], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=True
    ).stdout
    line = next(line for line in told.splitlines() if line.startswith("Version"))
    version = line.split()[1]
    library = line.partition("librdkafka ")[2].split()[0]
    return Kcat(name=f"kcat {version} (librdkafka {library})", path=path)


def run_client(
    command: list[str],
    *,
    given: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a client to its end and return its standard output; ClientFailed otherwise."""
    try:
        ended = subprocess.run(
            command,
            input=given,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ClientFailed(
            f"{command[0]} did not end within {RUN_TIMEOUT_S} s; it said:\n"
            f"{error.stdout!r}\n{error.stderr!r}"
        ) from error
    if ended.returncode != 0:
        raise ClientFailed(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


def _installed(program: str, wanted: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise PeerUnavailable(f"{program} is missing: install {wanted}")
    return path


def _build(command: list[str], folder: Path) -> str:
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailable(f"{' '.join(command)}: not done in {BUILD_TIMEOUT_S} s") from error
    if ended.returncode != 0:
        reason = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-1:]
        raise PeerUnavailable(f"{' '.join(command)}: {''.join(reason)}")
    return ended.stdout
