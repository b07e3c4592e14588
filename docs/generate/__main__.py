"""Write the reference pages that are not as the code is now; say which."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from docs.generate.broker_settings import broker_settings_page
from docs.generate.commands import commands_page, statuses_page
from docs.generate.configuration import configuration_page
from docs.generate.map_format import map_format_page
from docs.generate.metrics import metrics_page
from docs.generate.output_page import output_schemas, outputs_page
from docs.generate.rights import rights_page
from docs.generate.states import states_page
from docs.generate.witness import witness_page

REFERENCE: Final = Path(__file__).parents[1] / "reference"

PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "broker-settings.md": broker_settings_page,
        "command-line.md": commands_page,
        "configuration.md": configuration_page,
        "exit-statuses.md": statuses_page,
        "map-format.md": map_format_page,
        "json-output.md": outputs_page,
        "metrics.md": metrics_page,
        "output-schemas.json": output_schemas,
        "partition-states.md": states_page,
        "rights.md": rights_page,
        "witness.md": witness_page,
    }
)


def main() -> None:
    """Write what has changed."""
    for name, make in PAGES.items():
        file, text = REFERENCE / name, make()
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            sys.stdout.write(f"{file.relative_to(REFERENCE.parents[1])}: written anew\n")


if __name__ == "__main__":
    main()
