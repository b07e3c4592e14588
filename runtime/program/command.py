"""A command as a value: its words and options, of which parser, help and docs are made."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wire.values import frozen

if TYPE_CHECKING:  # it takes as long as all of a `--help`
    from runtime.configuration.config import Configuration
    from runtime.process.logs import LogFlags

Statuses: TypeAlias = Mapping[int, str]
"""Exit statuses and what each says."""


class Options(argparse.Namespace):
    """The values of a command line; the words and options of its command are attributes, too."""

    command: "Command"
    verbose: bool
    log_format: str | None
    log_level: str | None
    file: Path | None
    """The configuration's, if one was given, by --config or as a word."""
    configuration: "Configuration"
    """Only of a command that reads it."""
    is_asking: bool = False
    """Somebody is asked whether to begin; nothing was begun."""

    @property
    def log_flags(self) -> "LogFlags":
        """Return what was typed about the log."""
        from runtime.process.logs import LogFlags, LogFormat

        form = None if self.log_format is None else LogFormat(self.log_format)
        return LogFlags(format=form, level=self.log_level or ("debug" if self.verbose else None))


Act: TypeAlias = Callable[[Options], int | Awaitable[int]]
"""Does what a command is for and returns the exit status; what it awaits runs under trio."""


class Completes(Enum):
    """What a shell offers where a value is typed."""

    NOTHING = ""
    FILE = "file"
    DIRECTORY = "directory"


@frozen
class Word:
    """A value that a command takes by its place, as FLOW; `name` is its name in the namespace.

    A repeated word takes one value or more. At most the last word of a command is optional or
    repeated.
    """

    name: str
    metavar: str
    help: str
    is_optional: bool = False
    is_repeated: bool = False
    convert: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    completes: Completes = Completes.NOTHING

    @property
    def usage(self) -> str:
        """Return the word as a usage line shows it."""
        shown = f"{self.metavar} ..." if self.is_repeated else self.metavar
        return f"[{shown}]" if self.is_optional else shown


@frozen
class Option:
    """`--name VALUE`; without a metavar it is a flag, True where it is given.

    At most one option of a `group` may be given. A hidden option is for our own programs.
    """

    names: tuple[str, ...]
    help: str
    metavar: str = ""
    default: Any = None
    convert: Callable[[str], Any] = str
    is_repeated: bool = False
    is_hidden: bool = False
    group: str = ""
    completes: Completes = Completes.NOTHING

    @property
    def usage(self) -> str:
        """Return the option as a usage line shows it."""
        return f"[{self.names[0]} {self.metavar}]" if self.metavar else f"[{self.names[0]}]"


CONFIG_OPTION: Final = Option(
    names=("-f", "--config"),
    metavar="FILE",
    help="the YAML configuration (default: ./dc.yaml, then the file that $KAFKA_DR_CONFIG names)",
    convert=Path,
    completes=Completes.FILE,
)
FILE_WORD: Final = Word(
    name="file",
    metavar="FILE",
    help="the same as --config FILE",
    is_optional=True,
    convert=Path,
    completes=Completes.FILE,
)


SET_OPTION: Final = Option(
    names=("--set",),
    metavar="NAME",
    help="the set of topics that is meant; needed where the file has `failover.sets`",
)


JSON_OF_LINES: Final = Option(
    names=("--json",), help="print what is said as one JSON document, with a list of lines"
)


@frozen
class Command:
    """One command of a program; `topics list` is the command `list` of the noun `topics`.

    `help` is a sentence, `details` what else the command's own help says. `load` imports what the
    command needs and returns what it does: the program's help and its other commands do without
    these imports. `statuses` are the exit statuses that mean something else here than in the
    program's other commands.
    """

    name: str
    help: str
    load: Callable[[], Act]
    examples: tuple[str, ...]
    details: str = ""
    words: tuple[Word, ...] = ()
    options: tuple[Option, ...] = ()
    statuses: Statuses = field(default_factory=dict)
    reads_configuration: bool = False
    takes_set: bool = False
    """Whether the configuration that it reads is that of one set of topics, of a file with sets."""
    has_json: bool = True
    """Whether it takes --json: not where it runs until a signal, or prints a file of its own."""

    @property
    def says_lines(self) -> bool:
        """Return whether --json makes a document of the lines that it prints."""
        return self.has_json and not any("--json" in one.names for one in self.options)

    @property
    def all_words(self) -> tuple[Word, ...]:
        """Return the words, the configuration's among them."""
        return (*self.words, FILE_WORD) if self.reads_configuration else self.words

    @property
    def all_options(self) -> tuple[Option, ...]:
        """Return the options, the configuration's among them."""
        of_set = (SET_OPTION,) if self.takes_set else ()
        reading = (CONFIG_OPTION,) if self.reads_configuration else ()
        of_lines = (JSON_OF_LINES,) if self.says_lines else ()
        return (*reading, *of_set, *self.options, *of_lines)

    @property
    def usage(self) -> str:
        """Return what stands behind the command's name, in one line."""
        shown = [option.usage for option in self.all_options if not option.is_hidden]
        return " ".join(["[-h]", *shown, *(word.usage for word in self.all_words)])

    @property
    def fewest_words(self) -> int:
        """Return how many words there are at least, FILE not counted."""
        return sum(not word.is_optional for word in self.words)

    @property
    def most_words(self) -> int:
        """Return how many words there are at most, FILE not counted."""
        return sys.maxsize if any(word.is_repeated for word in self.words) else len(self.words)


class WordsWrong(Exception):
    """The words of a command line are too few, too many, or one of them is none of its choices."""


def take_words(command: Command, words: Sequence[str], config: Path | None) -> dict[str, Any]:
    """Return the values of a command's words by name.

        pause FLOW [TOPIC] [FILE]     dc1-dc2                   no FILE
                                      dc1-dc2 dc.yaml           the last word is FILE
                                      -f dc.yaml dc1-dc2 orders the last word is TOPIC

    The last word is FILE as soon as there are more words than the command needs, as it always was;
    with --config it is FILE only where no other word is left to be.

    Raises WordsWrong, argparse.ArgumentTypeError.
    """
    values = list(words)
    taken: dict[str, Any] = {}
    if command.reads_configuration:
        limit = command.fewest_words if config is None else command.most_words
        taken["file"] = _file_of(config, values.pop() if len(values) > limit else None)
    if len(values) < command.fewest_words:
        missing = (word.metavar for word in command.words[len(values) :] if not word.is_optional)
        raise WordsWrong(f"the following arguments are required: {', '.join(missing)}")
    if len(values) > command.most_words:
        raise WordsWrong(f"unrecognized arguments: {' '.join(values[command.most_words :])}")
    for place, word in enumerate(command.words):
        if word.is_repeated:
            taken[word.name] = [_value(word, value) for value in values[place:]]
        else:
            taken[word.name] = _value(word, values[place]) if place < len(values) else None
    return taken


def _file_of(config: Path | None, word: str | None) -> Path | None:
    if config is not None and word is not None and config.absolute() != Path(word).absolute():
        raise WordsWrong(f"--config {config} and FILE {word} are two files: give one of them")
    return Path(word) if word is not None else config


def _value(word: Word, text: str) -> Any:  # noqa: ANN401 - what the word converts to
    if word.choices and text not in word.choices:
        raise WordsWrong(f"argument {word.metavar}: {text!r} is not {' or '.join(word.choices)}")
    return word.convert(text)


def arguments_of(command: Command) -> Iterator[tuple[str, str]]:
    """Yield the words and options of a command as they are typed, with what each means."""
    for word in command.all_words:
        yield word.usage, word.help
    for option in command.all_options:
        if not option.is_hidden:
            value = f" {option.metavar}" if option.metavar else ""
            yield f"{', '.join(option.names)}{value}", option.help
