"""The shape of every program: commands in, an exit status out, and one line for each thing wrong.

    parse -> load what the command needs -> find the configuration -> run -> exit status

A program is declared as a `Program` in its `cli` module, which imports nothing that takes time.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.process.extras import lack_of_extra
from runtime.process.output import (
    OutputFailed,
    complain,
    lines_as_json,
    open_missing_streams,
    output_that_names_its_faults,
    print_nowhere,
)
from runtime.program.command import Act, Command, Options, Statuses, Word, arguments_of
from runtime.program.command_parser import ProgramParser, build_parser
from runtime.program.starting import interrupts_just_end, nothing_is_garbage
from wire.values import frozen

if TYPE_CHECKING:  # it takes as long as all of a `--help`
    from runtime.configuration.config import Configuration

CONFIGURATION: Final = Path("dc.yaml")
VARIABLE: Final = "KAFKA_DR_CONFIG"


class ExitStatus(IntEnum):
    """The exit statuses that programs share; what 1 and 2 mean, each says for itself."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    INTERRUPTED = 130
    PIPE_CLOSED = 141


OF_EVERY_PROGRAM: Final[Statuses] = {
    ExitStatus.INTERRUPTED: "Ctrl-C ended the program before it could stop by itself.",
    ExitStatus.PIPE_CLOSED: "The reader of the standard output went away.",
}

UNSAID: Final[Mapping[type[BaseException], int]] = {
    KeyboardInterrupt: ExitStatus.INTERRUPTED,
    BrokenPipeError: ExitStatus.PIPE_CLOSED,
}
Faults = Mapping[type[Exception], int]
"""The exceptions that end a program with one line, and the exit status of each."""


class BadInput(Exception):
    """What was typed cannot be carried out; one line that says why."""


@frozen
class CommandReference:
    """A command as documentation shows it; `arguments` are (as it is typed, what it means)."""

    name: str
    help: str
    usage: str
    arguments: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    statuses: Statuses


@frozen
class Program:
    """One of our programs.

    `nouns` says of each noun that has commands (`topics list`) what they are for. `faults` imports
    and returns the exceptions that are told in one line. Any other is a mistake of ours: it is
    shown with its traceback, and the exit status is `broken`. `extra` is what the project has to be
    installed with for its commands.
    """

    name: str
    description: str
    commands: tuple[Command, ...]
    examples: tuple[str, ...]
    statuses: Statuses
    faults: Callable[[], Faults]
    broken: ExitStatus = ExitStatus.FAILED
    nouns: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the program and return its exit status."""
        open_missing_streams()
        try:
            with output_that_names_its_faults():
                status = self._run(sys.argv[1:] if arguments is None else arguments)
                sys.stdout.flush()
        except (KeyboardInterrupt, Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - all are told
            status = self._tell(error)
        return status

    def parse(self, arguments: Sequence[str]) -> Options:
        """Return the values of a command line; argparse ends the program at bad ones, status 2."""
        return self._parser().parse_args(arguments, Options())

    def reference(self) -> Iterator[CommandReference]:
        """Yield every command as documentation shows it."""
        for command, statuses in self._commands():
            yield CommandReference(
                name=command.name,
                help=command.help,
                usage=f"{self.name} {command.name} {command.usage}",
                arguments=tuple(arguments_of(command)),
                examples=command.examples,
                statuses=statuses,
            )

    @property
    def all_statuses(self) -> Statuses:
        """Return every exit status that the program has, with its meaning."""
        return {**self.statuses, **OF_EVERY_PROGRAM}

    def _commands(self) -> Iterator[tuple[Command, Statuses]]:
        for command in (*self.commands, self._completion()):
            yield command, {**self.all_statuses, **command.statuses}

    def parser(self) -> ArgumentParser:
        """Return the parser with all of every command, of which completion is made."""
        parser = self._parser()
        parser.fill()
        return parser

    def _parser(self) -> ProgramParser:
        return build_parser(
            self.name,
            self.description,
            list(self._commands()),
            self.examples,
            self.all_statuses,
            self.nouns,
        )

    def _run(self, arguments: Sequence[str]) -> int:
        try:
            options = self.parse(arguments)
            from runtime.process.logs import LogSettings, configure

            with interrupts_just_end(), nothing_is_garbage():
                configure(self.name, options.log_flags.over(LogSettings()))
                act = options.command.load()
                read = _reader() if options.command.reads_configuration else None
            if read is not None:
                options.configuration = _of_set(read(find_configuration(options)), options)
                configure(self.name, options.log_flags.over(options.configuration.log))
            if options.command.says_lines and options.json:
                with lines_as_json(f"{self.name} {options.command.name}"):
                    return _wait_for(act(options))
            return _wait_for(act(options))
        except SystemExit as ended:
            return _status_of_exit(ended)

    def _tell(self, error: BaseException) -> int:
        """Say what went wrong, each thing in a line, and return the exit status."""
        told: dict[str, int] = {}
        for leaf in leaves(error):
            line, status = self._ending(leaf)
            if status is None:
                from runtime.process.logs import tell_unforeseen

                tell_unforeseen(self.name, error)
                return self.broken
            told[line] = max(status, told.get(line, 0))
        for line in sorted(filter(None, told), key=lambda line: -told[line]):
            complain(self.name, line)
        return max(told.values())

    def _ending(self, leaf: BaseException) -> tuple[str, int | None]:
        """Return what to say ("": nothing) and the exit status, None of what was not foreseen."""
        if isinstance(leaf, SystemExit):
            return "", _status_of_exit(leaf)
        if isinstance(leaf, OutputFailed | BrokenPipeError):
            print_nowhere()
        if isinstance(leaf, OutputFailed):
            return f"standard output: {leaf.strerror}", self.broken
        if isinstance(leaf, BadInput):
            return str(leaf), ExitStatus.BAD_INPUT
        if isinstance(leaf, ModuleNotFoundError):
            lack = lack_of_extra(leaf, self.extra)
            return lack or "", None if lack is None else self.broken
        for kind, status in chain(UNSAID.items(), self.faults().items()):
            if isinstance(leaf, kind):
                return "" if kind in UNSAID else str(leaf), status
        return "", None

    def _completion(self) -> Command:
        def load() -> Act:
            import shtab

            def show(options: Options) -> int:
                sys.stdout.write(f"{shtab.complete(self.parser(), options.shell)}\n")
                return ExitStatus.DONE

            return show

        return Command(
            name="completion",
            help="Print a script that makes a shell complete this program's command lines.",
            details=f"bash takes the script by `source <({self.name} completion bash)`. zsh takes "
            f"it as the file _{self.name} in a folder that its $fpath names.",
            load=load,
            has_json=False,
            words=(
                Word(name="shell", metavar="SHELL", help="bash or zsh", choices=("bash", "zsh")),
            ),
            examples=(f"{self.name} completion bash", f"{self.name} completion zsh"),
        )


def _reader() -> "Callable[[Path], Configuration]":
    from runtime.configuration.config import load

    return load


def _of_set(configuration: "Configuration", options: Options) -> "Configuration":
    """Return what the chosen set of topics has of the file; raises BadInput."""
    if not options.command.takes_set:
        return configuration
    name, names = options.set, configuration.sets.names
    of_applications = configuration.sets.of_applications
    if name is None and len(of_applications) == 1:
        return configuration.of_set(of_applications[0])
    there = ", ".join(names)
    if name is None:
        raise BadInput(f"the file has sets of topics: say which with --set NAME (of {there})")
    if name not in names:
        raise BadInput(f"the file has no set of topics {name!r}; there are {there}")
    return configuration.of_set(name)


def find_configuration(options: Options) -> Path:
    """Return the configuration's file: what was given, or ./dc.yaml, or what the variable names.

    Raises BadInput where there is none.
    """
    command, given = options.command, options.file
    if given is None:
        if CONFIGURATION.exists():
            return CONFIGURATION
        if os.environ.get(VARIABLE):
            return Path(os.environ[VARIABLE])
        raise BadInput(
            f"no configuration was given, there is no ./{CONFIGURATION}, and ${VARIABLE} is not "
            "set: give the file with --config FILE"
        )
    is_last_of_many = options.config is None and command.most_words > command.fewest_words
    if is_last_of_many and not given.exists():
        raise BadInput(
            f"{given}: No such file or directory; `{command.name}` takes its last word for FILE "
            "where --config FILE is not given"
        )
    return given


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that a group is made of, or the one that is none.

    A file with several mistakes is one exception for each.
    """
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    elif isinstance(error, ConfigurationError):
        yield from error.each()
    else:
        yield error


def _wait_for(outcome: int | Awaitable[int]) -> int:
    """Return the exit status, run under trio where it has to be awaited."""
    if isinstance(outcome, int):
        return outcome
    import trio

    async def status() -> int:
        return await outcome

    return trio.run(status, strict_exception_groups=True)


def _status_of_exit(ended: SystemExit) -> int:
    return ended.code if isinstance(ended.code, int) else ExitStatus.DONE
