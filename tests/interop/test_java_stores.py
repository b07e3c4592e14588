"""Stores of the JDK's own keytool, in both forms: what is read is what keytool shows of them."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from runtime.keystores.forms import read_store
from runtime.process.java import java_command

pytestmark = pytest.mark.interop

PASSWORD: Final = "of the store"  # noqa: S105 - of a test
LIMIT_S: Final = 60
Keytool: TypeAlias = Callable[..., str]


@pytest.fixture
def keytool(tmp_path: Path) -> Keytool:
    """Run keytool in a folder; return what it prints."""
    program = java_command().with_name("keytool")
    if not program.exists():
        pytest.skip(f"{program}: this Java has no keytool")

    def run(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=tmp_path,
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def key_pair(keytool: Keytool, store: str, *how: str) -> None:
    own = ("-alias", store, "-dname", f"CN={store}", "-validity", "3650")
    file = ("-keystore", store, "-storetype", "JKS", "-storepass", PASSWORD, "-keypass", PASSWORD)
    keytool("-genkeypair", *own, *how, *file)


@pytest.mark.parametrize(
    "how",
    [("-keyalg", "RSA", "-keysize", "2048"), ("-keyalg", "EC", "-groupname", "secp256r1")],
    ids=["RSA", "EC"],
)
def test_a_signed_key_and_its_authority_are_read_as_keytool_shows_them(
    tmp_path: Path, keytool: Keytool, how: tuple[str, ...]
) -> None:
    key_pair(keytool, "root", *how, "-ext", "bc:c")
    key_pair(keytool, "client", *how)
    password = ("-storepass", PASSWORD)
    root = keytool("-exportcert", "-rfc", "-alias", "root", "-keystore", "root", *password)
    wish = keytool("-certreq", "-alias", "client", "-keystore", "client", *password)
    signed = keytool(
        *("-gencert", "-rfc", "-alias", "root", "-keystore", "root", *password), given=wish
    )
    for alias, certificate in (("authority", root), ("client", signed)):
        into = ("-alias", alias, "-keystore", "client", "-noprompt", *password)
        keytool("-importcert", *into, given=certificate)
    into = ("-alias", "authority", "-keystore", "trusted", "-storetype", "JKS", "-noprompt")
    keytool("-importcert", *into, *password, given=root)

    def read(name: str) -> bytes:
        return (tmp_path / name).read_bytes()

    found = read_store(read("client"), PASSWORD, tmp_path / "client").keystore()
    assert found.certificates == _pem(signed) + _pem(root)
    trusted = read_store(read("trusted"), PASSWORD, tmp_path / "trusted").truststore()
    assert trusted.certificates == _pem(root)

    source = ("-srckeystore", "client", "-srcstorepass", PASSWORD, "-srcalias", "client")
    target = ("-destkeystore", "other", "-deststoretype", "PKCS12", "-deststorepass", PASSWORD)
    keytool("-importkeystore", *source, *target, "-noprompt")
    converted = read_store(read("other"), PASSWORD, tmp_path / "other").keystore()
    assert converted == found, "keytool's own conversion says the same"


def _pem(printed: str) -> str:
    """Return the first certificate that keytool prints, without what it says around it."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    lines = printed.replace("\r\n", "\n")
    return lines[lines.index(begin) : lines.index(end) + len(end)] + "\n"
