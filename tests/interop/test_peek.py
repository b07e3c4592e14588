"""Records in the console that the cluster does not let us read."""

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio
from confluent_kafka.admin import AclOperation, ResourceType

from failover.serve.peek.peeker import Peeker
from runtime.configuration.config import load
from runtime.configuration.console_section import ConsoleConfig, PeekedTopics
from runtime.pages.browsing import PageRequest
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml
from tests.failover.by_rights import BY_RIGHTS, SiteByRights
from tests.failover.two_sites import create_topic, produce
from tests.secured_cluster import RIGHT, USER, run_secured_cluster

pytestmark = pytest.mark.matrix(subject="The console", against="an authorizer")


def test_a_refused_peek_names_who_lacks_which_right_to_what(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with run_secured_cluster(tmp_path, more=BY_RIGHTS) as running:
        site = SiteByRights(running, "orders")
        create_topic(cast("RunningCluster", running), "orders")
        produce(cast("RunningCluster", running), "orders", [7])
        login = {"mechanism": "PLAIN", "username": USER, "password": RIGHT}
        address = f"127.0.0.1:{running.ports_of('SASL_PLAINTEXT')[0]}"
        dc1 = {"bootstrap": address, "security_protocol": "SASL_PLAINTEXT", "sasl": login}
        file = tmp_path / "dc.yaml"
        file.write_text(dc_yaml(dc1=dc1))
        console = ConsoleConfig(peek=PeekedTopics(patterns=(re.compile("orders"),)))
        peeker = Peeker(replace(load(file), console=console))
        request = PageRequest("/console/peek", {"site": "dc1", "topic": "orders"})

        def shown() -> str:
            return "".join(part.html for part in trio.run(peeker.page, request).parts)

        needs = f"kafka-acls --add --allow-principal User:{USER} --operation Read --topic orders"
        for lacks in ("to describe it", "to read it"):
            page = shown()
            assert "TOPIC_AUTHORIZATION_FAILED" in page, lacks
            assert f"<code>User:{USER}</code>" in page, lacks
            assert needs in page, lacks
            site.give(ResourceType.TOPIC, "orders", AclOperation.DESCRIBE)
        site.give(ResourceType.TOPIC, "orders", AclOperation.READ)
        assert "Offset 0" in shown()
