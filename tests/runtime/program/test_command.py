"""Which word of a command line is what, and where the configuration comes from."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from runtime.program.command import Command, Word, WordsWrong, take_words

FLOW = Word(name="flow", metavar="FLOW", help="a flow")
TOPIC = Word(name="topic", metavar="TOPIC", help="a topic", is_optional=True)
GROUPS = Word(name="groups", metavar="GROUP", help="groups", is_repeated=True)
FILE, OTHER = Path("dc.yaml"), Path("other.yaml")


def command(*words: Word, reads_configuration: bool = True) -> Command:
    return Command(
        name="do",
        help="Do it.",
        load=lambda: lambda _: 0,
        examples=(),
        words=words,
        reads_configuration=reads_configuration,
    )


@pytest.mark.parametrize(
    ("words", "config", "taken"),
    [
        (["a"], None, ("a", None, None)),
        (["a", "dc.yaml"], None, ("a", None, FILE)),
        (["a", "orders", "dc.yaml"], None, ("a", "orders", FILE)),
        (["a"], FILE, ("a", None, FILE)),
        (["a", "orders"], FILE, ("a", "orders", FILE)),
        (["a", "orders", "dc.yaml"], FILE, ("a", "orders", FILE)),
    ],
)
def test_the_last_word_is_the_file_unless_an_option_gives_it(
    words: Sequence[str], config: Path | None, taken: tuple[str, str | None, Path | None]
) -> None:
    found = take_words(command(FLOW, TOPIC), words, config)
    assert (found["flow"], found["topic"], found["file"]) == taken


@pytest.mark.parametrize(
    ("words", "config", "groups", "file"),
    [
        (["a"], None, ["a"], None),
        (["a", "b", "dc.yaml"], None, ["a", "b"], FILE),
        (["a", "b", "c"], FILE, ["a", "b", "c"], FILE),
    ],
)
def test_of_any_number_of_words_the_last_is_the_file(
    words: Sequence[str], config: Path | None, groups: Sequence[str], file: Path | None
) -> None:
    found = take_words(command(GROUPS), words, config)
    assert (found["groups"], found["file"]) == (groups, file)


@pytest.mark.parametrize(
    ("of", "words", "config", "complaint"),
    [
        (command(FLOW), [], None, "the following arguments are required: FLOW"),
        (command(FLOW), [], FILE, "the following arguments are required: FLOW"),
        (command(GROUPS), [], None, "the following arguments are required: GROUP"),
        (command(FLOW), ["a", "dc.yaml", "b"], None, "unrecognized arguments: dc.yaml"),
        (
            command(FLOW),
            ["a", "other.yaml"],
            FILE,
            "--config dc.yaml and FILE other.yaml are two files: give one of them",
        ),
        (command(), ["a", "b"], None, "unrecognized arguments: a"),
        (command(reads_configuration=False), ["a"], None, "unrecognized arguments: a"),
    ],
)
def test_too_few_words_or_too_many_are_refused(
    of: Command, words: Sequence[str], config: Path | None, complaint: str
) -> None:
    with pytest.raises(WordsWrong) as refused:
        take_words(of, words, config)
    assert str(refused.value) == complaint


def test_the_same_file_given_twice_is_one_file() -> None:
    found = take_words(command(), [str(FILE)], FILE.absolute())
    assert found["file"] == FILE
