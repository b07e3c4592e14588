"""Self and cumulative shares out of a flame graph."""

from tests.bench.tops import Cost, costs, frames_of, table


def box(title: str, y: int, x: int, width: int) -> str:
    return (
        f"<g><title>{title} ({width:,} samples, 1.00%)</title>"
        f'<rect x="0.0%" y="{y}" width="1.0%" height="15" fill="rgb(1,2,3)" '
        f'fg:x="{x}" fg:w="{width}"/><text x="1%" y="{y}.50">t</text></g>'
    )


PICTURE = (
    '<svg><g><rect x="0" y="0" width="100%" height="522"/></g>'
    + box("read (net.py:7)", 68, 0, 20)
    + box("read (net.py:9)", 68, 20, 30)
    + box("take &lt;fast&gt; (buffers.py:1)", 84, 20, 10)
    + box("walk (tree.py:3)", 68, 50, 50)
    + box("walk (tree.py:3)", 84, 50, 40)
    + box("all", 36, 0, 100)
    + "</svg>"
)


def test_lines_of_a_function_are_one_and_what_calls_itself_counts_once() -> None:
    assert costs(frames_of(PICTURE)) == [
        Cost(function="walk (tree.py)", own=0.5, cumulative=0.5),
        Cost(function="read (net.py)", own=0.4, cumulative=0.5),
        Cost(function="take <fast> (buffers.py)", own=0.1, cumulative=0.1),
    ]


def test_the_table_has_the_most_expensive_ones() -> None:
    assert table(costs(frames_of(PICTURE)), most=2) == [
        "  self    cum.  function",
        " 50.0%   50.0%  walk (tree.py)",
        " 40.0%   50.0%  read (net.py)",
    ]


def test_a_picture_without_frames_has_no_costs() -> None:
    assert costs(frames_of("<svg></svg>")) == []
