"""The shape of every program, shown on a small one: statuses, messages, signals, streams."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
import trio

from runtime.program.command import Act, Command, Option, Options, Word
from runtime.program.program import BadInput, ExitStatus, Program
from tests.commands import logging_is_its_own

CHECKOUT = Path(__file__).parents[2]
FILE = """\
clusters: {dc1: {bootstrap: "a:1"}, dc2: {bootstrap: "b:1"}}
flows: [{source: dc1, target: dc2}]
coordination: {zookeeper: "c:1"}
"""
SETS = "failover: {sets: {pay: {topics: [pay.*]}}}\n"


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Programs that run in this process set up logging, on streams that end with the test."""
    with logging_is_its_own():
        yield


class Rejected(Exception):
    """What the small program calls bad input."""


class Broken(Exception):
    """What it calls a failure."""


class Late(OSError):
    """A failure that is an error of the system, too."""


def program(
    act: Act,
    *,
    reads_configuration: bool = False,
    takes_set: bool = False,
    broken: ExitStatus = ExitStatus.FAILED,
    name: str = "small",
) -> Program:
    """Return a program whose one command does this."""
    return Program(
        name=name,
        description="A small program.",
        commands=(
            Command(
                name="do",
                help="Do it.",
                load=lambda: act,
                examples=("small do",),
                words=(Word(name="what", metavar="WHAT", help="what", is_optional=True),),
                options=(
                    Option(names=("--count",), metavar="N", help="how many", convert=int),
                    Option(names=("--fast",), help="at once"),
                ),
                reads_configuration=reads_configuration,
                takes_set=takes_set,
            ),
        ),
        examples=("small do",),
        statuses={0: "It is done.", 1: "It failed.", 2: "Bad input."},
        faults=lambda: {Rejected: ExitStatus.BAD_INPUT, Broken: 1, Late: 1},
        broken=broken,
    )


def raising(*errors: BaseException) -> Callable[[Options], Awaitable[int]]:
    """Return what raises these errors in tasks of their own, all at once."""

    async def fail(error: BaseException) -> None:
        try:
            await trio.sleep(0.01 if error is errors[0] else 1)
        finally:
            raise error

    async def run(_: Options) -> int:
        async with trio.open_nursery() as nursery:
            for error in errors:
                nursery.start_soon(fail, error)
        raise AssertionError("a task has failed")

    return run


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_status_is_what_the_command_returns(status: int) -> None:
    async def wait(_: Options) -> int:
        await trio.lowlevel.checkpoint()
        return status

    assert program(wait).main(["do"]) == status
    assert program(lambda _: status).main(["do"]) == status


@pytest.mark.parametrize(
    ("errors", "status", "told"),
    [
        ([Rejected("no")], 2, "small: no\n"),
        ([BadInput("not so")], 2, "small: not so\n"),
        ([Broken("oh")], 1, "small: oh\n"),
        ([Late("late")], 1, "small: late\n"),
        ([Broken("oh"), Rejected("no")], 2, "small: no\nsmall: oh\n"),
        ([Broken("oh"), Broken("oh")], 1, "small: oh\n"),
        ([KeyboardInterrupt()], 130, ""),
        ([KeyboardInterrupt(), Broken("oh")], 130, "small: oh\n"),
        ([SystemExit(143)], 143, ""),
    ],
)
def test_what_is_foreseen_ends_with_a_line_and_its_status(
    capsys: pytest.CaptureFixture[str], errors: Sequence[BaseException], status: int, told: str
) -> None:
    assert program(raising(*errors)).main(["do"]) == status
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("broken", [ExitStatus.FAILED, ExitStatus.BAD_INPUT])
def test_what_nobody_foresaw_is_shown_with_its_traceback(
    capsys: pytest.CaptureFixture[str], broken: ExitStatus
) -> None:
    act = raising(ValueError("our mistake"), Rejected("no"))
    assert program(act, broken=broken).main(["do"]) == broken
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "ValueError: our mistake" in told


def test_a_name_from_outside_cannot_write_on_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program(raising(Rejected("topic \x1b[2J\nsmall: all is well é"))).main(["do"])
    assert capsys.readouterr().err == "small: topic \\x1b[2J\\nsmall: all is well é\n"


def test_what_was_typed_cannot_write_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert program(lambda _: 0).main(["do", "--\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["--fast --count 3 it", "it --count=3 --fast", "--count 3 it --fast", "--fast --coun 3 -- it"],
)
def test_an_option_may_stand_anywhere(words: str) -> None:
    options = program(lambda _: 0).parse(["do", *words.split()])
    assert (options.what, options.count, options.fast) == ("it", 3, True)


def test_a_word_behind_two_dashes_may_begin_with_a_dash() -> None:
    assert program(lambda _: 0).parse(["do", "--", "--fast"]).what == "--fast"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "usage: small [-h]"),
        ("redo", "invalid choice: 'redo'"),
        ("do --slow", "unrecognized arguments: --slow"),
        ("do a b", "unrecognized arguments: b"),
        ("do --count many", "argument --count: invalid int value: 'many'"),
        ("do --count", "argument --count: expected one argument"),
    ],
)
def test_a_wrong_command_line_is_bad_input(
    capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    assert program(lambda _: 0).main(words.split()) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""


def test_help_has_examples_and_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["do", "--help"], ["do", "-h", "--fast"]):
        assert program(lambda _: 0).main(words) == 0
        said = capsys.readouterr().out
        assert "\nexamples:\n  small do\n" in said
        assert "\nexit status:\n  0    It is done.\n" in said


class TestTheConfiguration:
    """Given, or ./dc.yaml, or what the variable names."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Start in an empty folder without the variable."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("KAFKA_DR_CONFIG", raising=False)
        return tmp_path

    @staticmethod
    def read(*words: str) -> Path:
        read: list[Path] = []

        def act(options: Options) -> int:
            read.append(options.configuration.file)
            return 0

        assert program(act, reads_configuration=True).main(["do", *words]) == 0
        return read[0]

    def test_the_one_that_is_given_goes_before_all_others(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("dc.yaml", "given.yaml", "named.yaml"):
            (folder / name).write_text(FILE)
        monkeypatch.setenv("KAFKA_DR_CONFIG", str(folder / "named.yaml"))
        given = folder / "given.yaml"
        for words in (
            ["-f", "given.yaml"],
            ["--config", "given.yaml"],
            ["--config=given.yaml"],
            ["given.yaml"],
            ["it", "given.yaml"],
            ["given.yaml", "-f", "given.yaml"],
        ):
            assert self.read(*words) == given

    def test_the_one_of_the_folder_goes_before_the_one_of_the_environment(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("dc.yaml", "named.yaml"):
            (folder / name).write_text(FILE)
        monkeypatch.setenv("KAFKA_DR_CONFIG", str(folder / "named.yaml"))
        assert self.read() == folder / "dc.yaml"
        (folder / "dc.yaml").unlink()
        assert self.read() == folder / "named.yaml"

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (
                "do",
                (
                    "no configuration was given, there is no ./dc.yaml, and $KAFKA_DR_CONFIG is "
                    "not set: give the file with --config FILE"
                ),
            ),
            (
                "do orders",
                (
                    "orders: No such file or directory; `do` takes its last word for FILE where "
                    "--config FILE is not given"
                ),
            ),
            ("do -f none.yaml orders", "none.yaml: No such file or directory"),
        ],
    )
    def test_what_was_looked_for_and_not_there_is_said(
        self, capsys: pytest.CaptureFixture[str], words: str, told: str
    ) -> None:
        def act(_: Options) -> int:
            raise AssertionError("the command must not run")

        shape = program(act, reads_configuration=True)
        with_its_own = Program(
            name="small",
            description="",
            commands=shape.commands,
            examples=(),
            statuses={},
            faults=_configuration_faults,
        )
        assert with_its_own.main(words.split()) == 2
        assert capsys.readouterr().err == f"small: {told}\n"

    def test_two_different_files_are_refused_by_name(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("a.yaml", "b.yaml"):
            (folder / name).write_text(FILE)
        shape = program(lambda _: 0, reads_configuration=True)
        assert shape.main(["do", "it", "a.yaml", "-f", "b.yaml"]) == 2
        assert "--config b.yaml and FILE a.yaml are two files" in capsys.readouterr().err


def _configuration_faults() -> dict[type[Exception], int]:
    from runtime.configuration.config import ConfigurationError  # noqa: PLC0415 - as programs do

    return {ConfigurationError: 2}


PRINTER = """
    import sys
    from runtime.program.command import Command
    from runtime.program.program import Program

    def load():
        def act(options):
            sys.stdout.write("x" * {size})
            return 0
        return act

    program = Program(
        name="small", description="", examples=(), statuses={{0: "", 2: ""}}, faults=dict,
        commands=(Command(name="do", help="", load=load, examples=()),), broken=2,
    )
    sys.exit(program.main({arguments}))
"""


def printer(size: int, arguments: Sequence[str] = ("do",)) -> list[str]:
    """Return the command line of a program that prints so much."""
    text = textwrap.dedent(PRINTER.format(size=size, arguments=list(arguments)))
    return [sys.executable, "-c", text]


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_reader_that_has_gone_ends_the_program_quietly(size: int) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as output:
        ended = subprocess.run(
            printer(size), cwd=CHECKOUT, stdout=output, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_reader_that_has_gone_may_miss_the_help() -> None:
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # else argparse passes the error over
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as output:
        ended = subprocess.run(
            printer(0, ["--help"]),
            cwd=CHECKOUT,
            env=buffered,
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_full_disk_under_the_output_is_said(size: int, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as output:
        ended = subprocess.run(
            printer(size),
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.stderr == b"small: standard output: No space left on device\n"
    assert ended.returncode == 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_program_without_standard_streams_runs(closed: str) -> None:
    script = f'exec "$@" {closed}'
    ended = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *printer(10)],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_ctrl_c_while_a_command_is_loaded_just_ends_the_process() -> None:
    """A KeyboardInterrupt may be raised where Python ignores it: none is raised here."""
    text = PRINTER.format(size=0, arguments=["do"]).replace(
        "def load():\n", "def load():\n        import os; os.kill(os.getpid(), 2)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


def test_documentation_gets_every_command_as_data() -> None:
    do, completion = program(lambda _: 0, reads_configuration=True).reference()
    assert do.usage == "small do [-h] [-f FILE] [--count N] [--fast] [--json] [WHAT] [FILE]"
    assert [typed for typed, _ in do.arguments] == [
        "[WHAT]",
        "[FILE]",
        "-f, --config FILE",
        "--count N",
        "--fast",
        "--json",
    ]
    assert do.examples == ("small do",)
    assert do.statuses[130] == "Ctrl-C ended the program before it could stop by itself."
    assert completion.name == "completion"


def with_nouns(did: list[str]) -> Program:
    """Return a program with two commands of a noun, and one of none."""

    def command(name: str) -> Command:
        def act(options: Options) -> int:
            did.append(f"{options.command.name} {getattr(options, 'what', None)}")
            return ExitStatus.DONE

        word = Word(name="what", metavar="WHAT", help="what")
        return Command(
            name=name,
            help=f"Do {name}.",
            load=lambda: act,
            examples=(f"small {name} x", f"small {name} y"),
            words=(word,),
        )

    return Program(
        name="small",
        description="A small program.",
        commands=(command("do"), command("things list"), command("things drop")),
        examples=(),
        statuses={},
        faults=dict,
        nouns={"things": "All about 100 % of the things."},
    )


def test_a_command_of_a_noun_is_typed_in_two_words(capsys: pytest.CaptureFixture[str]) -> None:
    did: list[str] = []
    small = with_nouns(did)
    assert [small.main(["things", "drop", "x"]), small.main(["do", "y"])] == [0, 0]
    assert did == ["things drop x", "do y"]
    assert [one.usage for one in small.reference()][:2] == [
        "small do [-h] [--json] WHAT",
        "small things list [-h] [--json] WHAT",
    ]
    assert small.main(["things", "--help"]) == 0
    said = capsys.readouterr().out
    assert "All about 100 % of the things." in said
    assert "Do things list." in said
    assert said.endswith("\nexamples:\n  small things list x\n  small things drop x\n")
    assert small.main(["things", "list", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: small things list [-h] [--json] WHAT")


@pytest.mark.parametrize("typed", [["things"], ["things", "lost", "x"], ["things", "list"]])
def test_a_noun_without_a_command_of_its_own_is_bad_input(
    capsys: pytest.CaptureFixture[str], typed: list[str]
) -> None:
    assert with_nouns([]).main(typed) == 2
    assert "small things" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "words", "found"),
    [
        (FILE, [], "c:1 /kafka-dr"),
        (FILE, ["--set", "default"], "c:1 /kafka-dr"),
        (FILE, ["--set", "pay"], "the file has no set of topics 'pay'; there are default"),
        (f"{FILE}{SETS}", ["--set", "pay"], "c:1 /kafka-dr/sets/pay"),
        (f"{FILE}{SETS}", ["--set", "default"], "c:1 /kafka-dr"),
        (
            f"{FILE}{SETS}",
            [],
            "the file has sets of topics: say which with --set NAME",
        ),
    ],
)
def test_a_command_of_one_set_gets_what_the_set_has_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, words: list[str], found: str
) -> None:
    def show(options: Options) -> int:
        coordination = options.configuration.coordination
        sys.stdout.write(f"{coordination.zookeeper} {coordination.path}\n")
        return ExitStatus.DONE

    (tmp_path / "dc.yaml").write_text(file)
    status = program(show, reads_configuration=True, takes_set=True).main(
        ["do", *words, "--config", str(tmp_path / "dc.yaml")]
    )
    told = capsys.readouterr()
    assert found in told.out + told.err
    assert status == (ExitStatus.DONE if told.out else ExitStatus.BAD_INPUT)
