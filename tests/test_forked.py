"""Programs that are forks of the stem behave as processes of their own."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen, TimeoutExpired

import pytest

from tests.broker.integration.cluster_steps import until
from tests.clusters import is_alive, run_cluster
from tests.forked import _STEM, ForkedProgram, call_program, start_program


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


def test_a_command_says_what_it_says_on_either_output() -> None:
    shown = call_program("failover.cli", "completion", "bash").finish(60)
    refused = call_program("failover.cli", "plan", niceness=5).finish(60)
    assert (shown.returncode, shown.stderr, "failover" in shown.stdout) == (0, "", True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "plan" in refused.stderr


@pytest.mark.integration
def test_brokers_of_a_forked_cluster_are_forks_in_sessions_of_their_own(tmp_path: Path) -> None:
    with run_cluster(tmp_path, brokers=2) as cluster:
        assert isinstance(cluster._up, ForkedProgram)
        pids = [*cluster.pids.values()]
        assert [os.getsid(pid) for pid in pids] == pids
        assert {parent_of(pid) for pid in pids} == {_STEM._process.pid if _STEM._process else 0}
        cluster.kill_broker(1)
        dead = f"broker 1 (process {pids[1]}) ended with status -9"
        until(lambda: dead in cluster.log)
        cluster.kill_parent_only()
        until(lambda: not is_alive(pids[0]))


def parent_of(pid: int) -> int:
    """Return the id of a process's parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_what_steers_the_interpreter_gets_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(7)")
    with (tmp_path / "said").open("wb") as output:
        program = start_program("broker.cli", "run", output=output)
        assert isinstance(program, Popen)
        assert program.wait(60) != 2
