"""The page about JSON that commands print, and the schemas of it."""

import json
from collections.abc import Iterator
from typing import Final

from docs.generate.commands import PROGRAMS
from docs.generate.markdown import code, literal, page, section
from docs.generate.output_shapes import DRAFT, Shape, schema_of
from docs.generate.outputs import LINES, SHAPES

OUTPUTS_ARE: Final = """
Every command but those that run until a signal, and those that print a file, takes `--json`. It
then prints one JSON document on standard output, in one or several lines; `mirror status --watch`
and `failover divergence` print a document a line. [The schemas](output-schemas.json) are JSON
Schema (draft 2020-12), one for each command under `$defs`.

- The exit status is the same with and without `--json`. What goes wrong is said on standard error,
  as text: look at the status first. A command that was refused prints no document, or one whose
  `lines` are what it came to say.
- `null` is what is not known, or is not there; it is never zero. Names are escaped as JSON has it,
  and are whole.
- Fields are added to documents of later versions. None is taken away or changes its meaning without
  a line in the changelog.
- Commands that say in sentences what they have done print those as `lines`. The sentences are for
  people and may change.
- `failover promote --json` tells the steps on standard error as they end, and prints the report
  behind the last.
"""


def outputs_page() -> str:
    """Return the page about JSON that commands print."""
    return page("JSON output", OUTPUTS_ARE, *map(_of_program, SHAPES))


def output_schemas() -> str:
    """Return the schemas of all commands as one JSON document."""
    found = {f"{program} {command}": schema_of(shape) for program, command, shape in shapes()}
    document = {"$schema": DRAFT, "title": "What commands print with --json", "$defs": found}
    return json.dumps(document, indent=1) + "\n"


def shapes() -> Iterator[tuple[str, str, Shape]]:
    """Yield program, command and shape of each command that takes --json."""
    for program in PROGRAMS:
        for command in program.commands:
            if command.has_json:
                yield program.name, command.name, SHAPES[program.name].get(command.name, LINES)


def _of_program(name: str) -> str:
    of_program = [(command, shape) for program, command, shape in shapes() if program == name]
    lines = [literal(f"{name} {command}") for command, shape in of_program if shape is LINES]
    parts = [
        f"### {literal(f'{name} {command}')}\n\n{code(_shown(shape), 'text')}"
        for command, shape in of_program
        if shape is not LINES
    ]
    told = f"With `lines`: {', '.join(lines)}." if lines else ""
    return section(literal(name), *filter(None, [told]), *parts)


def _shown(shape: Shape, indent: str = "") -> str:
    """Return a shape for people; `?` behind a type: or null, behind a key: not always there."""
    deeper = f"{indent}  "
    match shape:
        case str():
            return shape
        case list():
            return f"[{_shown(shape[0], indent)}, ...]"
        case tuple():
            return f"\n{indent}or ".join(_shown(one, indent) for one in shape)
        case _:
            rows = [f"{deeper}{key}: {_shown(one, deeper)}\n" for key, one in shape.items()]
            return f"{{\n{''.join(rows)}{indent}}}"
