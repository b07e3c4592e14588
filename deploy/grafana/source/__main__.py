"""`python -m deploy.grafana.source`: write deploy/grafana/dashboards anew."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deploy.grafana.source.audits import AUDITS
from deploy.grafana.source.brokers import BROKERS
from deploy.grafana.source.failovers import FAILOVERS
from deploy.grafana.source.flows import FLOWS
from deploy.grafana.source.groups import GROUPS
from deploy.grafana.source.model import Dashboard
from deploy.grafana.source.overview import OVERVIEW

FOLDER: Final = Path(__file__).parents[1] / "dashboards"
ALL: Final = (OVERVIEW, FLOWS, GROUPS, FAILOVERS, AUDITS, BROKERS)


def files() -> Mapping[str, str]:
    """Return the text of each file by its name."""
    return {f"{one.uid}.json": text_of(one) for one in ALL}


def text_of(dashboard: Dashboard) -> str:
    """Return the file of one dashboard."""
    return json.dumps(dashboard.as_json(), indent=1) + "\n"


def main() -> None:
    """Write what has changed, and say so."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        file = FOLDER / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            sys.stdout.write(f"deploy/grafana/dashboards/{name}: written anew\n")


if __name__ == "__main__":
    main()
