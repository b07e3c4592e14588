"""What `mirror check` says of the way to a cluster."""

from pathlib import Path

import pytest

from mirror.commands.checks.encryption import told_encryption
from tests.runtime.cluster_section import cluster

SSL = "security_protocol: SSL"


@pytest.mark.parametrize(
    "line",
    [
        "ssl: {check_hostname: false}",
        'client: {ssl.endpoint.identification.algorithm: ""}',
    ],
)
def test_brokers_whose_names_are_not_checked_are_a_warning(tmp_path: Path, line: str) -> None:
    (warning,) = told_encryption(cluster(tmp_path, SSL, line))
    assert warning.startswith("warning: cluster dc1: the names of its brokers are not held against")


def test_what_librdkafka_cannot_be_told_is_a_warning(tmp_path: Path) -> None:
    (warning,) = told_encryption(cluster(tmp_path, SSL, "client: {ssl.enabled.protocols: TLSv1.2}"))
    assert warning.startswith("warning: cluster dc1: failover.client speaks TLSv1.3, too")


@pytest.mark.parametrize("lines", [(), (SSL,), (SSL, "client: {ssl.enabled.protocols: TLSv1.3}")])
def test_a_safe_way_and_one_without_tls_are_no_warning(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    assert list(told_encryption(cluster(tmp_path, *lines))) == []
