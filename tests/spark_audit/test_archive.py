"""What workers import comes in one archive, and settings of a cluster go to Spark as they are."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_audit.archive import COMPILED, PACKAGES, write_archive
from spark_audit.cli import main
from spark_audit.commands import BadSetting, settings_of

ISOLATED = """
import sys
sys.path[:] = [sys.argv[1], *(one for one in sys.path if "site-packages" not in one)]
for name in {compiled!r} + ("numpy", "pyspark", "py4j"):
    sys.modules[name] = type(sys)(name)
import trio, yaml, attr, sortedcontainers
import wire.net.security, offset_translation, runtime.configuration.config
for module in (trio, yaml, wire, offset_translation, runtime):
    assert module.__file__.startswith(sys.argv[1]), module
"""


def test_the_archive_has_what_workers_import_and_nothing_compiled(tmp_path: Path) -> None:
    archive = tmp_path / "workers.zip"
    assert main(["package", str(archive)]) == 0
    names = zipfile.ZipFile(archive).namelist()
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert all(name.endswith(".py") for name in names)
    assert "spark_audit/compare/settling.py" in names


def test_plain_packages_are_imported_from_the_archive_alone(tmp_path: Path) -> None:
    archive = tmp_path / "workers.zip"
    write_archive(archive)
    program = ISOLATED.format(compiled=COMPILED)
    command = [sys.executable, "-I", "-c", program, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_equal_packages_give_an_equal_archive(tmp_path: Path) -> None:
    for name in ("one.zip", "other.zip"):
        write_archive(tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


def test_settings_are_given_as_spark_takes_them() -> None:
    given = ["spark.executor.memory=1g", "spark.x=a=b"]
    assert settings_of(given) == {"spark.executor.memory": "1g", "spark.x": "a=b"}
    for wrong in ("spark.x", "=1", ""):
        with pytest.raises(BadSetting, match="settings are given as"):
            settings_of([wrong])
