"""One archive with what Spark's workers import, for clusters on which nothing of ours is installed.

It holds packages of plain Python only. What is compiled must be installed where workers run, for
their machine: COMPILED, and the pyspark of the cluster itself.
"""

import importlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

PACKAGES: Final = (
    "spark_audit",
    "runtime",
    "offset_translation",
    "wire",
    "attr",
    "attrs",
    "h11",
    "idna",
    "outcome",
    "sniffio",
    "sortedcontainers",
    "trio",
    "yaml",
)
COMPILED: Final = ("anycrc", "cramjam", "fastcrc", "pyarrow", "xxhash")
_LEFT_OUT: Final = frozenset({"__pycache__", "_tests"})
_TIMES: Final = MappingProxyType({"date_time": (2020, 1, 1, 0, 0, 0)})
"""Equal files give an equal archive."""


def write_archive(path: Path) -> None:
    """Write the archive; raises OSError."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PACKAGES:
            for file, place in _modules(name):
                entry = zipfile.ZipInfo(place, **_TIMES)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())


def _modules(name: str) -> Iterator[tuple[Path, str]]:
    """Yield the modules of a package, each with its place in the archive, in order."""
    package = importlib.import_module(name)
    folder = Path(package.__path__[0])
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder.parent)
        if not _LEFT_OUT & set(place.parts):
            yield file, str(place)
