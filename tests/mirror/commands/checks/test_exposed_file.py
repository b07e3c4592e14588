"""Whether `mirror check` warns of a configuration with secrets in it that others may read."""

from pathlib import Path

import pytest

from mirror.commands.checks.exposed_file import told_exposed_file
from runtime.configuration.config import load
from tests.dc_yaml import dc_yaml

SASL = {"mechanism": "PLAIN", "username": "mirror", "password": "s3cret"}
CLOSED = {"auth": {"username": "dr", "password": "${WITNESS_PASSWORD}"}}


def told(file: Path, mode: int, **sections: object) -> list[str]:
    file.write_text(dc_yaml(coordination=CLOSED, **sections))  # type: ignore[arg-type]
    file.chmod(mode)
    return list(told_exposed_file(load(file)))


def test_a_file_with_secrets_that_everybody_may_read_is_named_with_their_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dc.yaml"
    monkeypatch.setenv("WITNESS_PASSWORD", "w")
    dc1 = {"bootstrap": "a:1", "security_protocol": "SASL_PLAINTEXT", "sasl": SASL}
    [line] = told(file, 0o644, dc1=dc1)
    assert line.startswith(f"warning: {file}: holds clusters.dc1.sasl.password, and every user")
    assert line.endswith(f"`chmod o= {file}`")
    assert "s3cret" not in line
    assert told(file, 0o640, dc1=dc1) == []
    assert told(file, 0o644) == [], "a variable of the environment is no secret in the file"
