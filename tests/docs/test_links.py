"""Links within the repository lead somewhere; the same is held of the site by Sphinx."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages, anchors, broken_links


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_the_pages_that_people_open_first_are_among_them() -> None:
    names = {str(page.relative_to(ROOT)) for page in all_pages()}
    assert names >= {"README.md", "ARCHITECTURE.md", "docs/index.md", "deploy/README.md"}


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("[gone](gone.md)", "there is no gone.md"),
        ("[gone](../gone.md#part)", "there is no ../gone.md"),
        ("[part](#parts)", "has no heading of that name"),
        ("[part](other.md#part-2)", "has no heading of that name"),
        ("![chart](chart.svg)", "there is no chart.svg"),
        ("[`mirror` [x]](gone.md)", "there is no gone.md"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, link: str, complaint: str) -> None:
    (tmp_path / "other.md").write_text("# Other\n\n## Part\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n## Part\n\n[fine](other.md#part) [fine](#part)\n{link}\n")
    [found] = broken_links(page)
    assert found.startswith(f"{page}:6: ")
    assert complaint in found


def test_what_only_looks_like_a_link_is_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\n[a](b.md)\n```\n`[a](b.md)` <https://example.org> [c](https://d.org)\n")
    assert list(broken_links(page)) == []


def test_headings_have_the_names_that_code_hosts_give_them() -> None:
    text = "# `flows[]`\n## What to do, in a stopped state?\n## Twice\n## Twice\n```\n# no\n```\n"
    expected = {"flows", "what-to-do-in-a-stopped-state", "twice", "twice-1"}
    assert anchors(text) == expected
