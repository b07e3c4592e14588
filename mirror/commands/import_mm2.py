"""`mirror import-mm2`: a MirrorMaker 2 properties file as our YAML."""

import sys
from pathlib import Path

from mirror.mirrormaker.mm2_properties import import_properties
from runtime.configuration.properties import ConfigurationError, read_properties
from runtime.configuration.yaml_section import as_yaml
from runtime.process.output import escaped


def import_mm2(file: Path, *, zookeeper: str, write: bool) -> int:
    """Print the YAML, or write it beside the file as `<name>.yaml`; say what it cannot say.

    Return the exit status. Raises ConfigurationError, which names file and line.
    """
    imported = import_properties(read_properties(file), str(file), zookeeper)
    text = as_yaml(imported.document)
    for note in imported.notes:
        sys.stderr.write(f"{escaped(note)}\n")
    if not write:
        sys.stdout.write(text)
        return 0
    result = file.with_suffix(".yaml")
    try:
        with result.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as fault:
        raise ConfigurationError(f"{result}: {fault.strerror}") from fault
    sys.stdout.write(
        f"{result}: set coordination.zookeeper if need be; then stop MirrorMaker,"
        f" `mirror take-over --write {result}`, `mirror run {result}`\n"
    )
    return 0
