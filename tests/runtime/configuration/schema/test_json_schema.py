"""The schema takes whatever the reader takes, and refuses what the reader refuses of one value."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runtime.configuration.config import load
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.schema.every_key import EVERY_SECTION, EXAMPLE, WITH_SETS
from runtime.configuration.schema.json_schema import configuration_schema
from tests.properties import examples

SCHEMA: Final = configuration_schema()
VALIDATOR: Final = Draft202012Validator(SCHEMA)
FOLDER: Final = Path(__file__).parents[4] / "deploy" / "configuration"
START_FILES: Final = sorted(FOLDER.glob("*.yaml"))
OF_ONE_VALUE: Final = re.compile(
    r"must be (a text|a whole number|true or false|a list of texts|a mapping of keys|a list)"
    r"|must not be empty|is not between -?\d+ and|is not one of"
)
"""What is wrong with a value whatever the other keys say."""
OF_A_GRAMMAR: Final = "ssl.enabled.protocols"
"""Names that one text may hold between commas, which the schema does not tell apart."""

Path_ = tuple[str | int, ...]


def paths(schema: Mapping[str, Any], at: Path_ = ()) -> Iterator[Path_]:
    """Yield where each key stands, in the first section of its kind that EVERY_SECTION has."""
    for name, inner in schema.get("properties", {}).items():
        if inner.get("type") == "array":
            yield from paths(inner["items"], (*at, name, 0))
        elif inner.get("type") == "object":
            yield from paths(inner, (*at, name))
            others = inner["additionalProperties"]
            if isinstance(others, dict) and "properties" in others:
                yield from paths(others, (*at, name, "payments" if name == "sets" else "dc1"))
        else:
            yield (*at, name)


def put(document: Any, at: Path_, value: object) -> None:
    """Put a value where it belongs, in sections that are made for it."""
    *sections, key = at
    for section in sections:
        if isinstance(document, dict):
            document.setdefault(section, {})
        document = document[section]
    document[key] = value


VALUES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-10, max_value=1 << 48),
    st.sampled_from([0.5, "", "x", "12", "true", "none", "dc1", "PLAIN", "stop", "HTTPS", "h:1"]),
    st.lists(st.sampled_from(["a", "", 1, None]), max_size=2),
    st.just({"a": 1}),
)
KEYS: Final = sorted(paths(SCHEMA), key=str)


def document_for(at: Path_) -> Any:
    """Return the file whose sections a key can stand beside."""
    return yaml.safe_load(WITH_SETS if "sets" in at else EVERY_SECTION)


def complaints(file: Path, document: object) -> list[str]:
    """Return what the reader says of a document."""
    file.write_text(yaml.safe_dump(document))
    try:
        load(file)
    except ConfigurationError as wrong:
        return [str(one) for one in wrong.each()]
    return []


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schema") / "dc.yaml"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [EXAMPLE, EVERY_SECTION, WITH_SETS])
def test_it_takes_a_good_file(text: str) -> None:
    VALIDATOR.validate(yaml.safe_load(text))


@pytest.mark.parametrize("start", START_FILES, ids=lambda start: start.name)
def test_it_takes_the_files_to_start_from(start: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(start.read_text()))


@pytest.mark.parametrize("missing", ["clusters", "flows", "coordination"])
def test_it_misses_a_section_that_must_be_there(missing: str) -> None:
    document = yaml.safe_load(EXAMPLE)
    del document[missing]
    assert not VALIDATOR.is_valid(document)


def test_it_leaves_sections_for_people_alone() -> None:
    document = yaml.safe_load(EXAMPLE)
    VALIDATOR.validate({**document, "x-common": {"anything": 1}})
    assert not VALIDATOR.is_valid({**document, "common": {}})


@settings(max_examples=examples(40, 4_000))
@given(at=st.sampled_from(KEYS), value=VALUES)
def test_it_judges_a_value_as_the_reader_does(file: Path, at: Path_, value: object) -> None:
    document = document_for(at)
    put(document, at, value)
    found = complaints(file, document)
    is_valid = VALIDATOR.is_valid(document)
    if not found:
        assert is_valid, f"{at} = {value!r}: the schema refuses what the reader takes"
    if any(OF_ONE_VALUE.search(one) and OF_A_GRAMMAR not in one for one in found):
        assert not is_valid, f"{at} = {value!r}: the schema takes what the reader refuses: {found}"


@settings(max_examples=examples(15, 300))
@given(at=st.sampled_from(KEYS))
def test_it_knows_no_key_that_the_reader_does_not_know(file: Path, at: Path_) -> None:
    document = document_for(at)
    put(document, (*at[:-1], f"{at[-1]}x"), "dc1")
    assert not VALIDATOR.is_valid(document)
    assert any("unknown key" in one or "is of no use" in one for one in complaints(file, document))
