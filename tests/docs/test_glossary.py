"""GLOSSARY.md: each term once, in order, in one sentence, with a module that exists."""

import re
from typing import Final

from tests.docs.pages import ROOT

PAGE: Final = (ROOT / "GLOSSARY.md").read_text()
ENTRY: Final = re.compile(r"^- (\*\*.+?(?=^- |\Z))", re.MULTILINE | re.DOTALL)
TERM: Final = re.compile(r"\*\*([^*]+)\*\*")
MODULE: Final = re.compile(r"`(\w+(?:/\w+)*\.py)`")
ENTRIES: Final = [" ".join(entry.split()) for entry in ENTRY.findall(PAGE)]
TERMS: Final = [term for entry in ENTRIES for term in TERM.findall(entry.partition(":")[0])]


def test_the_terms_are_in_order_and_each_is_there_once() -> None:
    firsts = [TERM.findall(entry)[0] for entry in ENTRIES]
    assert len(firsts) > 30, "the page has entries"
    assert firsts == sorted(firsts)
    assert len(TERMS) == len(set(TERMS))


def test_each_term_has_a_module_that_exists() -> None:
    modules = {TERM.findall(entry)[0]: MODULE.findall(entry) for entry in ENTRIES}
    assert [term for term, named in modules.items() if not named] == []
    missing = {name for named in modules.values() for name in named if not (ROOT / name).exists()}
    assert missing == set()


def test_each_term_has_one_sentence() -> None:
    for entry in ENTRIES:
        explained = MODULE.sub("", entry).rstrip(" ,")
        assert explained.endswith("."), entry
        assert len(re.findall(r"\.(?: |$)", explained)) == 1, entry
