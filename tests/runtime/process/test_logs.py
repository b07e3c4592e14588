"""Logs as lines that machines read: one object an event, whatever names hold."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror.cli import PROGRAM
from runtime.configuration.config import load
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.process.log_words import FORMS
from runtime.process.logs import LogFlags, LogFormat, LogSettings, configure
from tests.dc_yaml import dc_yaml, flow

CHECKOUT = Path(__file__).parents[3]
HOSTILE = "x\n\x1b[2J\u202e\x9b1A\u2028"
JSON = LogSettings(format=LogFormat.JSON)


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    """Take back the levels of single loggers; `tests.conftest` takes back those of all."""
    yield
    for name in ("mirror", "mirror.forward", "kazoo"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_an_event_is_one_object_with_its_traceback_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("mirror", JSON)
    logging.getLogger("mirror.flow").info("group %s", HOSTILE)
    try:
        int(HOSTILE)
    except ValueError:
        logging.getLogger("mirror.flow").exception("failed")
    told, failed = map(json.loads, capsys.readouterr().err.splitlines())
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "info",
        "program": "mirror",
        "logger": "mirror.flow",
        "message": "group x\\n\\x1b[2J\\u202e\\x9b1A\\u2028",
    }
    assert failed["traceback"].startswith("Traceback (most recent call last):\n")
    assert all(line.isprintable() for line in failed["traceback"].split("\n"))


def test_a_logger_has_a_level_of_its_own_and_those_below_it_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    levels = {"mirror.forward": "debug", "kazoo": "info"}
    configure("mirror", LogSettings(level="warning", levels=levels))
    for name in ("mirror.forward.source", "mirror.flow", "kazoo.client"):
        logging.getLogger(name).debug("debug %s", name)
        logging.getLogger(name).info("info %s", name)
    said = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "debug mirror.forward.source",
        "info mirror.forward.source",
        "info kazoo.client",
    ]


def test_what_is_typed_goes_before_what_the_file_says_and_children_are_told() -> None:
    of_file = LogSettings(format=LogFormat.JSON, level="error", levels={"a": "debug"})
    assert LogFlags().over(of_file) == of_file
    typed = LogFlags(format=LogFormat.TEXT, level="debug")
    assert typed.over(of_file) == LogSettings(level="debug", levels={"a": "debug"})
    assert typed.words() == ["--log-format", "text", "--log-level", "debug"]
    assert LogFlags().words() == []


def test_the_forms_that_can_be_typed_are_those_that_there_are() -> None:
    assert [one.value for one in LogFormat] == list(FORMS)


def test_the_file_says_how_all_programs_log(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(f"{dc_yaml(flow())}\nlog: {{format: json, levels: {{mirror.map: debug}}}}\n")
    assert load(file).log == LogSettings(format=LogFormat.JSON, levels={"mirror.map": "debug"})
    file.write_text(f'{dc_yaml(flow())}\nlog: {{level: all, levels: {{"a b": info}}}}\n')
    with pytest.raises(ConfigurationError) as wrong:
        load(file)
    assert "log.level" in str(wrong.value)
    assert "a b: is no name of a logger" in str(wrong.value)


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_error_that_nobody_has_foreseen_is_told_in_the_form_of_the_log(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: str) -> int:
        raise ZeroDivisionError("by zero")

    with monkeypatch.context() as patched:
        patched.setattr(sys.stdout, "write", fail)
        assert PROGRAM.main(["--log-format", form, "config", "example"]) == 1
    said = capsys.readouterr().err
    if form == "json":
        [line] = said.splitlines()
        assert "ZeroDivisionError: by zero" in json.loads(line)["traceback"]
    else:
        assert said.endswith("ZeroDivisionError: by zero\n")
