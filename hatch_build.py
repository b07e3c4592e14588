"""Compile the chunk kernel where that can be done; where not, Python walks chunks (wire/kernel).

hatchling calls this for each wheel: one with the kernel is for one platform and every Python from
3.11 on (the stable ABI), one without is for all. CHUNK_KERNEL=off leaves it out.
`python hatch_build.py` compiles it into the checkout, and always succeeds;
`python hatch_build.py FOLDER [FLAG...]` compiles another into a folder, with further flags.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CHECKOUT: Final = Path(__file__).parent
FOLDER: Final = CHECKOUT / "wire" / "kernel"
SOURCES: Final = ("chunk.c", "crc32c.c", "produced.c")
NAME: Final = "_chunk.abi3.so"
FLAGS: Final = ("-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
TIMEOUT_S: Final = 120


def compile_kernel(folder: Path, flags: tuple[str, ...] = ()) -> str | None:
    """Compile it into a folder; return why that cannot be done, None if it was."""
    words = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    compiler = shlex.split(words)
    if shutil.which(compiler[0]) is None:
        return f"there is no C compiler {compiler[0]}"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        return f"there is no {headers}/Python.h"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no stable ABI"
    link = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)
    fresh = folder / f"{NAME}.{os.getpid()}"
    sources = [str(FOLDER / name) for name in SOURCES]
    command = [*compiler, *FLAGS, *link, *flags, f"-I{headers}", *sources, "-o", str(fresh)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
        if ended.returncode:
            said = ended.stderr.strip().splitlines() or [f"status {ended.returncode}"]
            return f"{compiler[0]}: {next((one for one in said if 'error' in one), said[-1])}"
        fresh.replace(folder / NAME)
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"{compiler[0]}: {fault}"
    finally:
        fresh.unlink(missing_ok=True)
    return None


class ChunkKernelHook(BuildHookInterface[Any]):
    """Put the kernel into a wheel, or beside its source for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile it, and say in the wheel's name what the wheel is for."""
        if os.environ.get("CHUNK_KERNEL") == "off":
            return
        why_not = compile_kernel(FOLDER)
        if why_not is not None:
            self.app.display_warning(f"without the chunk kernel: {why_not}")
        elif version != "editable":
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"
            build_data["artifacts"].append(f"/wire/kernel/{NAME}")


def main() -> int:
    """Compile it into the checkout, or into another folder, which then has to succeed."""
    folder, *flags = sys.argv[1:] or [str(FOLDER)]
    Path(folder).mkdir(parents=True, exist_ok=True)
    why_not = compile_kernel(Path(folder), tuple(flags))
    if why_not is None:
        return 0
    sys.stderr.write(f"without the chunk kernel, chunks are walked in Python: {why_not}\n")
    return 0 if Path(folder) == FOLDER else 1


if __name__ == "__main__":
    sys.exit(main())
