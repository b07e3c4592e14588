"""Programs that are forks of the stem behave as processes of their own."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen, TimeoutExpired

import pytest

from tests.forked import _STEM, ForkedProgram, start_program


def test_a_program_ends_with_its_own_status_and_words(tmp_path: Path) -> None:
    with (tmp_path / "said").open("wb") as output:
        wrong = start_program("broker.cli", "run", "/no/such/file", output=output)
        unused = start_program("mirror.cli", "no-such-command", output=output)
        assert isinstance(wrong, ForkedProgram)
        assert (wrong.wait(60), unused.wait(60)) == (2, 2)
    said = (tmp_path / "said").read_text()
    assert "/no/such/file" in said
    assert "no-such-command" in said


def test_a_program_has_the_files_it_was_given_and_no_others(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        output = stack.enter_context((tmp_path / "said").open("wb"))
        properties = tmp_path / "server.properties"
        os.mkfifo(properties)  # it waits there
        programs = [
            start_program("broker.cli", "run", str(properties), output=output, has_stdin=True)
            for _ in range(2)
        ]
        for program in programs:
            assert program.stdin is not None
            stack.callback(program.wait)
            stack.callback(program.kill)
            stack.enter_context(program.stdin)
            process = Path(f"/proc/{program.pid}")
            with pytest.raises(TimeoutExpired):
                program.wait(0.5)
            assert program.poll() is None
            files = {one.name: str(one.readlink()) for one in (process / "fd").iterdir()}
            assert files.pop("1") == files.pop("2") == str(tmp_path / "said")
            assert files.pop("0").startswith("pipe:")
            assert sockets_of_the_stem()
            assert not sockets_of_the_stem() & set(files.values())
        programs[0].kill()
        programs[1].terminate()
        assert [program.wait(60) for program in programs] == [-signal.SIGKILL, -signal.SIGTERM]


def sockets_of_the_stem() -> set[str]:
    """Return the sockets by which the stem hears requests and tells how programs ended."""
    assert _STEM._process is not None
    opened = Path(f"/proc/{_STEM._process.pid}/fd").iterdir()
    found = {str(one.readlink()) for one in opened}
    return {name for name in found if name.startswith("socket:")}


def test_what_steers_the_interpreter_gets_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(7)")
    with (tmp_path / "said").open("wb") as output:
        program = start_program("broker.cli", "run", output=output)
        assert isinstance(program, Popen)
        assert program.wait(60) != 2
