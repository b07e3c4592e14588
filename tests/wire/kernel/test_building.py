"""The chunk kernel is compiled where that can be done, and is left out where not."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hatch_build
from hatch_build import ChunkKernelHook, compile_kernel
from tests.fuzz.chunks import load
from wire.kernel.chosen import VERSION

COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
HEADERS = Path(sysconfig.get_path("include")) / "Python.h"
needs_a_compiler = pytest.mark.skipif(
    shutil.which(COMPILER) is None
    or not (Path(sysconfig.get_path("include")) / "Python.h").exists(),
    reason="no C compiler, or no headers of Python",
)


@needs_a_compiler
def test_what_is_compiled_is_of_the_version_that_is_asked_for(tmp_path: Path) -> None:
    assert compile_kernel(tmp_path) is None
    [file] = tmp_path.iterdir()
    assert load(file).VERSION == VERSION


@pytest.mark.parametrize(
    ("compiler", "why"),
    [("no-such-compiler -O3", "there is no C compiler no-such-compiler"), ("false", "false: ")],
)
def test_without_a_compiler_that_works_there_is_a_reason_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, why: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert str(compile_kernel(tmp_path)).startswith(why)
    assert list(tmp_path.iterdir()) == []


def test_setup_succeeds_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    ended = subprocess.run(
        [sys.executable, hatch_build.__file__], capture_output=True, text=True, check=False
    )
    told = "without the chunk kernel, chunks are walked in Python: there is no C compiler"
    assert (ended.returncode, ended.stderr) == (0, f"{told} no-such-compiler\n")


def wheel(monkeypatch: pytest.MonkeyPatch, why_not: str | None) -> tuple[dict[str, Any], list[str]]:
    """Return what the hook says of a wheel, and its warnings."""
    warnings: list[str] = []
    monkeypatch.setattr(hatch_build, "compile_kernel", lambda _folder: why_not)
    hook = ChunkKernelHook.__new__(ChunkKernelHook)
    monkeypatch.setattr(ChunkKernelHook, "app", SimpleNamespace(display_warning=warnings.append))
    built: dict[str, Any] = {"artifacts": []}
    hook.initialize("standard", built)
    return built, warnings


def test_a_wheel_with_the_kernel_is_for_its_platform_and_every_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CHUNK_KERNEL", raising=False)
    built, _ = wheel(monkeypatch, None)
    assert built["artifacts"] == ["/wire/kernel/_chunk.abi3.so"]
    assert (built["pure_python"], built["tag"].startswith("cp311-abi3-linux_")) == (False, True)


def test_a_wheel_without_the_kernel_is_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHUNK_KERNEL", raising=False)
    assert wheel(monkeypatch, "no cc") == (
        {"artifacts": []},
        ["without the chunk kernel: no cc"],
    )
    monkeypatch.setenv("CHUNK_KERNEL", "off")
    assert wheel(monkeypatch, None) == ({"artifacts": []}, [])
