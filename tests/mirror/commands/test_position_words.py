"""What `mirror offsets` and `mirror translate` understand."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror.commands.position_words import (
    Export,
    GroupName,
    Import,
    Line,
    PartitionOffset,
    PositionsUnreadable,
    Show,
    parse_offsets,
    parse_what,
    read_lines,
    write_lines,
)


def test_one_word_is_a_group_and_export_and_import_are_commands() -> None:
    assert parse_offsets(["billing"]) == Show("billing")
    assert parse_offsets(["show", "export"]) == Show("export")
    assert parse_offsets(["export"]) == Export(())
    assert parse_offsets(["export", "a", "b"]) == Export(("a", "b"))
    assert parse_offsets(["import", "p.csv"]) == Import(Path("p.csv"))
    for words in ([], ["a", "b"], ["import"], ["import", "a", "b"]):
        with pytest.raises(PositionsUnreadable):
            parse_offsets(words)


def test_a_place_has_a_topic_a_partition_and_an_offset_and_all_else_is_a_group() -> None:
    assert parse_what("orders:3:120") == PartitionOffset("orders", 3, 120)
    for group in ("orders", "orders:3", "a:b:c", ":1:2", "orders:-1:2", "a:1:2:3", "", "o:³:1"):
        assert parse_what(group) == GroupName(group)
    with pytest.raises(PositionsUnreadable, match="no such partition"):
        parse_what(f"orders:0:{2**63}")


@given(
    st.lists(
        st.tuples(
            st.text(),
            st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True),
            st.integers(0, 2**31 - 1),
            st.integers(0, 2**63 - 1),
        ),
        unique_by=lambda each: each[:3],
    )
)
@example([("\r", "orders", 0, 1), (" a\r\n", "orders", 0, 1), ("a", "orders", 0, 1)])
@example([("", "orders", 0, 1), ('"', "orders", 0, 1), ("\t\x00,", "orders", 0, 1)])
def test_what_is_written_is_read_again(rows: list[tuple[str, str, int, int]]) -> None:
    found = read_lines("p.csv", write_lines(rows))
    assert [(one.group, one.topic, one.partition, one.offset) for one in found] == rows


def test_a_header_and_empty_lines_are_passed_over() -> None:
    text = 'group,topic,partition,offset\n\n"g, of all",orders,0,7\n'
    assert read_lines("p.csv", text) == [Line("g, of all", "orders", 0, 7, 3)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("g,orders,0", "p.csv:1: 3 columns, not 4"),
        ("g,orders,0,1\ng,orders,0,2", "p.csv:2: orders-0 of group g stands on line 1 already"),
        ("g,orders,x,1", "p.csv:1: partition: 'x' is not a number"),
        ("g,orders,0,-1", "p.csv:1: offset: '-1' is not a number"),
        (f"g,orders,0,{2**63}", "p.csv:1: offset: .* is not a number"),
        ("g,,0,1", "p.csv:1: topic: is empty"),
        ('g,"orders,0,1', "p.csv:1: "),
    ],
)
def test_a_line_that_makes_no_sense_is_named(text: str, told: str) -> None:
    with pytest.raises(PositionsUnreadable, match=told):
        read_lines("p.csv", text)
