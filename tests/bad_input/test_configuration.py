"""A mistake in the YAML file ends every program that reads it, before it does anything."""

from itertools import cycle
from pathlib import Path

import pytest

from tests.bad_input.programs import complaint, start, write_configuration

PROGRAMS = [
    ("mirror", "run"),
    ("mirror", "status"),
    ("mirror", "check"),
    ("failover", "promote", "dc2"),
    ("failover", "plan", "dc2"),
    ("failover", "abort"),
    ("failover", "status"),
    ("failover", "serve"),
    ("spark_audit", "run"),
    ("spark_audit", "metrics"),
]
MISTAKES = {
    ("target: dc2", "targett: dc2"): "6: flows[0].targett: unknown key; did you mean 'target'?",
    ("mirror_port: 0", "mirror_port: x"): "8: metrics.mirror_port: must be a whole number",
    ("127.0.0.1:1", "127.0.0.1"): "2: clusters.dc1.bootstrap: '127.0.0.1' is not host:port",
}


@pytest.mark.parametrize(
    ("program", "mistake"), list(zip(PROGRAMS, cycle(MISTAKES), strict=False)), ids=str
)
def test_a_wrong_key_type_or_address_is_named(
    tmp_path: Path, program: tuple[str, ...], mistake: tuple[str, str]
) -> None:
    """Each program once: what the file's reader says is tested beside it, in `tests/runtime`."""
    file = write_configuration(tmp_path)
    file.write_text(file.read_text().replace(*mistake, 1))
    name, *arguments = program
    said = complaint(start(f"{name}.cli", *arguments, file), 2)
    assert said.startswith(f"{name.replace('_', '-')}: {file}:{MISTAKES[mistake]}")
