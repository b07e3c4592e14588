"""The files of a listener's keys: locked, renewed, half copied."""

import os
import shutil
import ssl
from pathlib import Path

import pytest

from broker.security.settings import ServerTls
from broker.security.tls import make_context
from tests.broker.security.listening import (
    METADATA,
    complaints,
    connected,
    keystore,
    refused,
    secured,
)
from tests.doubles.certificates import KEY_PASSWORD, Certificates
from wire.net.security import Security, Tls


async def test_renewed_certificates_are_used_without_a_restart(
    tmp_path: Path, certificates: Certificates
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    renewed = Certificates(other)
    async with secured(tmp_path, certificates, ssl_client_auth="none") as rig:
        old = Security(tls=Tls(ca=certificates.ca))
        new = Security(tls=Tls(ca=renewed.ca))
        async with connected(rig, "SSL", old) as connection:
            made = keystore(renewed, other)
            shutil.copyfile(made, tmp_path / "broker-keystore.pem")
            os.utime(tmp_path / "broker-keystore.pem", ns=(1, 1))
            await connection.request(METADATA)
            async with connected(rig, "SSL", new) as another:
                await another.request(METADATA)
        assert "not trusted" in await refused(rig, "SSL", old)


async def test_keys_that_cannot_be_read_leave_the_last_good_ones(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """As while somebody copies them there."""
    trusted = Security(tls=Tls(ca=certificates.ca))
    async with secured(tmp_path, certificates, ssl_client_auth="none") as rig:
        path = tmp_path / "broker-keystore.pem"
        whole = path.read_text()
        path.write_text(whole[:300])
        os.utime(path, ns=(1, 1))
        for _ in range(2):
            async with connected(rig, "SSL", trusted) as connection:
                await connection.request(METADATA)
        path.unlink()
        async with connected(rig, "SSL", trusted) as connection:
            await connection.request(METADATA)
    said = complaints(caplog.records, "wire.net.tls_context")
    assert len(said) == 2  # once for each change
    assert all(line.startswith("not used, the last one still is") for line in said)


async def test_a_locked_key_is_opened_with_its_password(
    tmp_path: Path, certificates: Certificates
) -> None:
    # The locked key is the client's: a keystore of the client's certificate then.
    path = tmp_path / "locked.pem"
    path.write_text(certificates.locked_key.read_text() + certificates.client.read_text())
    make_context(ServerTls(keystore=path, key_password=KEY_PASSWORD))
    with pytest.raises(ssl.SSLError):
        make_context(ServerTls(keystore=path))
