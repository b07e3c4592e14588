"""The parser made of a program's commands: argparse, with options anywhere among the words."""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NoReturn

from runtime.process.log_words import FORMS, LEVELS
from runtime.process.output import escaped
from runtime.process.package_version import version
from runtime.program.command import (
    Command,
    Completes,
    Option,
    Statuses,
    WordsWrong,
    take_words,
)

MAX_WIDTH: Final = 100


class CommandParser(argparse.ArgumentParser):
    """The parser of one command, or of a noun with several, which has no command of its own.

    argparse gives the words before an option and those behind it away separately, and an optional
    word is then lost. So it gets the options here, and `take_words` the words.

    What a command's help says is added when that is shown: to do so for every command would take a
    start tens of milliseconds.
    """

    command: Command | None = None
    _statuses: Statuses | None = None

    def take(self, command: Command, statuses: Statuses) -> None:
        """Take a command, whose options and words are added by `fill`; call once."""
        self.command = command
        self._statuses = statuses
        self.usage = f"{self.prog} {command.usage}"

    def fill(self) -> None:
        """Add the options and words of the command, and have its help say the rest."""
        command, statuses, self._statuses = self.command, self._statuses, None
        if command is None or statuses is None:
            return
        text = f"{command.help} {command.details}"
        self.description = textwrap.fill(text, _width() - 2)
        self.epilog = _epilog(command.examples, statuses)
        _add_options(self, command.all_options)
        for word in command.all_words:
            many = "+" if word.is_repeated else None
            action = self.add_argument(
                word.name,
                metavar=word.metavar,
                help=word.help,
                nargs="?" if word.is_optional else many,
                choices=word.choices or None,
            )
            _complete(action, word.completes)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the values of all that is given; ends the program with status 2 at bad input."""
        command = self.command
        if command is None:
            return super().parse_known_args(args, namespace)
        given = list(args or ())
        end = given.index("--") if "--" in given else len(given)
        parser = _OptionsOf(self)
        _add_options(parser, command.all_options)
        values, words = parser.parse_known_args(given[:end], namespace)
        unknown = [word for word in words if word.startswith("-") and word != "-"]
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        try:
            config = values.config if command.reads_configuration else None
            taken = take_words(command, [*words, *given[end + 1 :]], config)
        except (WordsWrong, argparse.ArgumentTypeError) as wrong:
            self.error(str(wrong))
        for name, value in taken.items():
            setattr(values, name, value)
        values.command = command
        return values, []

    def format_help(self) -> str:
        """Return the help, whole."""
        self.fill()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """End with status 2; what was typed may hold any character."""
        super().error(escaped(message))


class _OptionsOf(argparse.ArgumentParser):
    """Parses the options of a command, and has its help."""

    def __init__(self, whole: argparse.ArgumentParser) -> None:
        super().__init__(prog=whole.prog)
        self._whole = whole

    def format_help(self) -> str:
        return self._whole.format_help()

    def format_usage(self) -> str:
        return self._whole.format_usage()

    def error(self, message: str) -> NoReturn:
        self._whole.error(message)


def _add_options(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    groups: dict[str, Any] = {"": parser}
    for option in options:
        if option.group not in groups:
            groups[option.group] = parser.add_mutually_exclusive_group()
        shown = option.help
        if option.default is not None and not option.is_repeated:
            shown = f"{shown} (default: {option.default})"
        settings: dict[str, Any] = {"action": "store_true"}
        if option.metavar:
            settings = {"metavar": option.metavar, "type": option.convert}
            settings |= {"action": "append"} if option.is_repeated else {}
            settings["default"] = [] if option.is_repeated else option.default
        action = groups[option.group].add_argument(
            *option.names, help=argparse.SUPPRESS if option.is_hidden else _plain(shown), **settings
        )
        _complete(action, option.completes)


def _complete(action: argparse.Action, completes: Completes) -> None:
    """Tell shtab, which reads an attribute of argparse's own objects; imported, it costs time."""
    if completes is not Completes.NOTHING:
        action.__dict__["complete"] = _SHTAB[completes]


_SHTAB: Final = {
    Completes.FILE: {"bash": "_shtab_compgen_files", "zsh": "_files"},
    Completes.DIRECTORY: {"bash": "_shtab_compgen_dirs", "zsh": "_files -/"},
}


def _plain(text: str) -> str:
    """Return a text as argparse's help wants it: it would replace `%(default)s`."""
    return text.replace("%", "%%")


def _examples(examples: Iterable[str]) -> list[str]:
    return ["examples:", *(f"  {example}" for example in examples)]


def _epilog(examples: Sequence[str], statuses: Statuses) -> str:
    lines = [*_examples(examples), "", "exit status:"]
    for status, meaning in statuses.items():
        lines += textwrap.wrap(
            meaning, _width() - 2, initial_indent=f"  {status:<5}", subsequent_indent=" " * 7
        )
    return "\n".join(lines)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, MAX_WIDTH)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Leaves examples as they are; descriptions come wrapped."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=16, width=_width() - 2)


class _Version(argparse.Action):
    """Prints the version; only then it is looked up."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"{parser.prog} {version()}\n")
        parser.exit()


def build_parser(
    name: str,
    description: str,
    commands: Sequence[tuple[Command, Statuses]],
    examples: Sequence[str],
    statuses: Statuses,
    nouns: Mapping[str, str] = MappingProxyType({}),
) -> "ProgramParser":
    """Return the parser of a program; each command comes with its exit statuses.

    A command of two words, `topics list`, stands below its noun, of which `nouns` has the help.
    """
    parser = ProgramParser(
        prog=name,
        description=textwrap.fill(description, _width() - 2),
        epilog=_epilog(examples, statuses),
        formatter_class=_Help,
    )
    parser.add_argument("--version", action=_Version, help="show the version and end")
    parser.add_argument(
        "--verbose", action="store_true", help="log more, as --log-level debug does"
    )
    parser.add_argument(
        "--log-format", choices=FORMS, help="the lines of the log (default: log.format of FILE)"
    )
    parser.add_argument(
        "--log-level",
        choices=LEVELS,
        help="the least level that is logged (default: log.level of FILE)",
    )
    chosen = parser.add_subparsers(
        required=True, metavar="COMMAND", title="commands", parser_class=CommandParser
    )
    below: dict[str, Any] = {"": chosen}
    for command, of_command in commands:
        noun, _, verb = command.name.rpartition(" ")
        if noun not in below:
            of_noun = [one for one, _ in commands if one.name.startswith(f"{noun} ")]
            below[noun] = _add_noun(chosen, noun, nouns[noun], of_noun)
        sub = below[noun].add_parser(verb, help=_plain(command.help), formatter_class=_Help)
        sub.take(command, of_command)
        parser.commands.append(sub)
    return parser


def _add_noun(chosen: Any, noun: str, help_text: str, commands: Sequence[Command]) -> Any:  # noqa: ANN401 - argparse's own
    """Return where the commands of a noun are added; its help has an example of each."""
    sub = chosen.add_parser(
        noun,
        help=_plain(help_text),
        description=help_text,
        epilog="\n".join(_examples(example for one in commands for example in one.examples[:1])),
        formatter_class=_Help,
    )
    return sub.add_subparsers(
        required=True, metavar="COMMAND", title="commands", parser_class=CommandParser
    )


class ProgramParser(argparse.ArgumentParser):
    """Complains of what was typed in one line, whatever characters it has."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**settings)
        self.commands: list[CommandParser] = []

    def fill(self) -> None:
        """Add the options and words of every command, for who reads them off the parser."""
        for one in self.commands:
            one.fill()

    def error(self, message: str) -> NoReturn:
        super().error(escaped(message))
