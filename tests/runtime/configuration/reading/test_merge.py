"""Sections that take over what stands elsewhere in the file, and sections that nobody reads."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runtime.configuration.config import load
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.section import Section
from runtime.configuration.reading.yaml_file import read_file
from wire.net.security import Sasl

SITES = """\
x-site: &site
  security_protocol: SASL_PLAINTEXT
  sasl: {mechanism: PLAIN, username: kafka-dr, password: secret}
clusters:
  dc1: {<<: *site, bootstrap: "a:1"}
  dc2: {bootstrap: "b:1", <<: *site, sasl: {mechanism: PLAIN, username: other, password: p}}
flows: [{source: dc1, target: dc2}]
coordination: {zookeeper: "w:1"}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "dc.yaml"
    file.write_text(text)
    return file


def values(section: Section) -> dict[str, int]:
    """Return the number under each key."""
    return {key: section.integer(key, None, least=0) for key in section.values}


def test_clusters_take_over_what_they_have_alike_and_keep_their_own(tmp_path: Path) -> None:
    clusters = load(written(tmp_path, SITES)).clusters
    logins = {name: one.security.sasl for name, one in clusters.items()}
    users = {name: sasl.username for name, sasl in logins.items() if isinstance(sasl, Sasl)}
    assert users == {"dc1": "kafka-dr", "dc2": "other"}


def test_a_mistake_is_named_where_it_stands_and_by_the_section_that_takes_it_over(
    tmp_path: Path,
) -> None:
    text = SITES.replace("mechanism: PLAIN, username: kafka-dr", "mechanism: PLAINER, username: u")
    with pytest.raises(ConfigurationError, match=r"dc\.yaml:3: clusters\.dc1\.sasl\.mechanism: "):
        load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: {<<: 1}", r":1: a\.<<: must be a mapping or a list of them"),
        ("a: {<<: [{b: 1}, 2]}", r":1: a\.<<: must be a mapping or a list of them"),
        ("a: {b: 1, b: 2}", r":1: a\.b: stands here twice"),
        ("a: {<<: {b: 1}, <<: {c: 1}}", r":1: a\.<<: stands here twice"),
        ("a: {<<: {b: 1, b: 2}}", r":1: a\.b: stands here twice"),
        ("a: &a {<<: *a}", r":1: a\.<<: takes over more than 1000 keys"),
    ],
)
def test_what_cannot_be_taken_over_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        read_file(written(tmp_path, text)).section("a")


def test_aliases_of_aliases_end_at_a_limit(tmp_path: Path) -> None:
    lines = ["x-0: &x0 {k: 1}"]
    lines += [f"x-{n}: &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 10)}]}}" for n in range(1, 30)]
    top = read_file(written(tmp_path, "\n".join([*lines, "a: {<<: *x29}"])))
    with pytest.raises(ConfigurationError, match="takes over more than 1000 keys"):
        top.section("a")


def test_only_sections_of_the_file_itself_are_left_unread(tmp_path: Path) -> None:
    load(written(tmp_path, SITES + "x-: 1\nx-notes: [what, ever]\n"))
    for wrong in ("x: 1\n", "xx-notes: 1\n"):
        with pytest.raises(ConfigurationError, match="unknown key"):
            load(written(tmp_path, SITES + wrong))
    with pytest.raises(ConfigurationError, match=r"coordination\.x-a: unknown key"):
        load(written(tmp_path, SITES.replace('"w:1"', '"w:1", x-a: 1')))


KEYS = st.sampled_from("abcd")
PLAIN = st.dictionaries(KEYS, st.integers(0, 9), max_size=3)


@given(st.lists(PLAIN, min_size=1, max_size=3), PLAIN, st.booleans())
def test_merging_is_as_yaml_has_it(
    tmp_path_factory: pytest.TempPathFactory,
    given_ones: list[dict[str, int]],
    own: dict[str, int],
    is_nested: bool,
) -> None:
    lines = [f"x-{n}: &x{n} {one}" for n, one in enumerate(given_ones)]
    names = [f"*x{n}" for n in range(len(given_ones))]
    inner = f"{{<<: [{', '.join(names)}]}}" if is_nested else f"[{', '.join(names)}]"
    pairs = ", ".join([*(f"{key}: {value}" for key, value in own.items()), f"<<: {inner}"])
    text = "\n".join([*lines, f"m: {{{pairs}}}"]).replace("'", "")
    file = written(tmp_path_factory.mktemp("merge"), text)
    assert values(read_file(file).section("m")) == yaml.safe_load(text)["m"]
