"""`mirror import-mm2`: MirrorMaker's properties, or Strimzi's resource for it, as our YAML."""

import sys
from pathlib import Path
from typing import Final

from mirror.mirrormaker.mm2_properties import Imported, import_properties
from mirror.mirrormaker.strimzi import import_strimzi
from runtime.configuration.properties import read_properties
from runtime.configuration.reading.mistakes import ConfigurationError
from runtime.configuration.reading.yaml_file import as_yaml, read_documents
from runtime.process.output import escaped

YAML: Final = (".yaml", ".yml")


def import_mm2(file: Path, *, zookeeper: str, write: bool) -> int:
    """Print the YAML, or write it beside the file; say what it cannot say.

    Properties become `<name>.yaml`, Strimzi's resource `<name>.dc.yaml`. Return the exit status.
    Raises the errors of both imports, which name file and line.
    """
    imported = _imported(file, zookeeper)
    text = as_yaml(imported.document)
    for note in imported.notes:
        sys.stderr.write(f"{escaped(note)}\n")
    if not write:
        sys.stdout.write(text)
        return 0
    result = file.with_suffix(".dc.yaml" if file.suffix in YAML else ".yaml")
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


def _imported(file: Path, zookeeper: str) -> Imported:
    if file.suffix in YAML:
        return import_strimzi(read_documents(file), str(file), zookeeper)
    return import_properties(read_properties(file), str(file), zookeeper)
