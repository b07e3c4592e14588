"""Programs that judge what is written for Kubernetes: Helm, Kustomize, schemas of its kinds.

Helm and Kustomize are built from the Go module proxy, once, into build/peers. The schemas come with
a package of PyPI, into an environment of its own. There is no cluster.
"""

import os
import re
import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.interop.peers.faults import PeerUnavailable

CACHE: Final = Path(__file__).parents[3] / "build" / "peers" / "kubernetes"
HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.22.0"
KUSTOMIZE: Final = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"
SCHEMAS: Final = "kubernetes-validate==1.37.0"
VERSION: Final = "1.33.0"
"""The Kubernetes that charts are rendered for."""
MAJOR: Final = re.compile(r"v\d+")
"""The end of a module's path that is no name of its own."""
BUILD_TIMEOUT_S: Final = 1_500
RUN_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that reads files and complains by its exit status."""

    path: Path

    def run(self, *arguments: str | Path, given: str | None = None) -> str:
        """Return what it printed; raises ToolComplains with what it said otherwise."""
        done = subprocess.run(
            [self.path, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise ToolComplains(f"{self.path.name}: {done.stdout}{done.stderr}")
        return done.stdout


class ToolComplains(AssertionError):
    """A tool did not take what it was given; the message has what it said."""


def helm() -> Tool:
    """Return Helm, built here if it was not yet. Raises PeerUnavailable."""
    return Tool(path=go_program(HELM))


def kustomize() -> Tool:
    """Return Kustomize, built here if it was not yet. Raises PeerUnavailable."""
    return Tool(path=go_program(KUSTOMIZE))


def go_program(module: str) -> Path:
    """Return a program that Go builds from the module proxy. Raises PeerUnavailable."""
    *_, name = (one for one in module.partition("@")[0].split("/") if not MAJOR.fullmatch(one))
    program = CACHE / name
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise PeerUnavailable(f"go is missing, and builds {module}: install Go 1.24 or newer")
    CACHE.mkdir(parents=True, exist_ok=True)
    _make([go, "install", "-trimpath", "-ldflags=-s -w", module], {"GOBIN": str(CACHE)})
    return program


def schemas() -> Tool:
    """Return kubernetes-validate, in an environment of its own. Raises PeerUnavailable."""
    folder = CACHE / SCHEMAS.replace("==", "-")
    program = folder / "bin" / "kubernetes-validate"
    if not program.exists():
        venv.create(folder, with_pip=True, clear=True)
        _make([str(folder / "bin" / "pip"), "install", "--quiet", SCHEMAS], {})
    return Tool(path=program)


def _make(command: list[str], environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailable(f"{command[-1]}: not there in {BUILD_TIMEOUT_S} s") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise PeerUnavailable(f"{command[-1]}: {' '.join(said)}")
