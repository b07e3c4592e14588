"""Commands about the file that configures all programs; they ask nobody."""

import sys
from typing import Final

from mirror.command_lines.shared import JSON
from runtime.process.output import print_line
from runtime.program.command import Act, Command, Options
from runtime.program.program import ExitStatus


def _schema() -> Act:
    import json

    from runtime.configuration.schema.json_schema import configuration_schema

    def show(_: Options) -> int:
        text = json.dumps(configuration_schema(), indent=2, ensure_ascii=False)
        sys.stdout.write(f"{text}\n")
        return ExitStatus.DONE

    return show


def _example() -> Act:
    from runtime.configuration.schema.every_key import EXAMPLE

    def show(_: Options) -> int:
        sys.stdout.write(f"{EXAMPLE}\n")
        return ExitStatus.DONE

    return show


def _validate() -> Act:
    import json

    def show(options: Options) -> int:
        configuration = options.configuration
        if options.json:
            document = {
                "file": str(configuration.file),
                "clusters": list(configuration.clusters),
                "flows": [flow.name for flow in configuration.flows],
            }
            print_line(json.dumps(document))
            return ExitStatus.DONE
        sites = ", ".join(configuration.clusters)
        flows = ", ".join(flow.name for flow in configuration.flows)
        print_line(f"{configuration.file}: valid; clusters {sites}; flows {flows}")
        return ExitStatus.DONE

    return show


CONFIG_FILE: Final = (
    Command(
        name="config validate",
        help="Read the configuration as every program does, and name all mistakes in it. Files "
        "that it names are read too; nobody is connected to.",
        load=_validate,
        examples=("mirror config validate dc.yaml",),
        reads_configuration=True,
        options=(JSON,),
        statuses={ExitStatus.BAD_INPUT: "There is a line for each mistake."},
    ),
    Command(
        name="config example",
        help="Print a configuration to begin with.",
        load=_example,
        has_json=False,
        examples=("mirror config example",),
    ),
    Command(
        name="config schema",
        help="Print what the configuration may hold as JSON Schema, by which editors complete and "
        "check it.",
        load=_schema,
        has_json=False,
        examples=("mirror config schema",),
    ),
)
