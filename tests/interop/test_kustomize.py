"""The example with Strimzi as Kustomize builds it: objects that are taken, and names that fit.

Strimzi's own kinds have no schema here; what is held is what our file takes of them.
"""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.deploy.strimzi import EXAMPLE
from tests.interop.peers.kubernetes import VERSION, helm, kustomize, schemas

pytestmark = pytest.mark.matrix(
    subject="Example with Strimzi", against="Kustomize 5.7, Kubernetes 1.33"
)
OPERATOR: Final = "kafka.strimzi.io/"


@pytest.fixture(scope="module")
def built() -> list[dict[str, Any]]:
    """All objects of the example."""
    helms = f"--helm-command={helm().path}"
    return list(yaml.safe_load_all(kustomize().run("build", "--enable-helm", helms, EXAMPLE)))


def of_kind(built: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in built if one["kind"] == kind}


def configuration(built: list[dict[str, Any]]) -> dict[str, Any]:
    [secret] = of_kind(built, "Secret").values()
    return dict(yaml.safe_load(secret["stringData"]["dc.yaml"]))


def test_kubernetes_knows_every_field_of_its_own_objects(
    built: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = [one for one in built if not one["apiVersion"].startswith(OPERATOR)]
    file = tmp_path_factory.mktemp("built") / "objects.yaml"
    file.write_text(yaml.safe_dump_all(own))
    said = schemas().run("--strict", "--kubernetes-version", VERSION.rpartition(".")[0], file)
    assert said.count(" passed for resource ") == len(own)


def test_each_site_is_a_cluster_whose_user_is_a_super_user(built: list[dict[str, Any]]) -> None:
    clusters = of_kind(built, "Kafka")
    assert len(clusters) == len(of_kind(built, "KafkaNodePool")) == 2
    for kind in ("KafkaNodePool", "KafkaUser"):
        belongs = {
            one["metadata"]["labels"]["strimzi.io/cluster"] for one in of_kind(built, kind).values()
        }
        assert belongs == clusters.keys()
    users = of_kind(built, "KafkaUser")
    for name, cluster in clusters.items():
        [user] = cluster["spec"]["kafka"]["authorization"]["superUsers"]
        assert users[user]["metadata"]["labels"]["strimzi.io/cluster"] == name


def test_the_file_names_what_the_operator_makes(built: list[dict[str, Any]]) -> None:
    users, made = of_kind(built, "KafkaUser"), set()
    for name in of_kind(built, "Kafka"):
        made |= {f"{name}-kafka-bootstrap:9093", f"{name}-cluster-ca-cert"}
    for site in configuration(built)["clusters"].values():
        assert site["bootstrap"] in made
        assert Path(site["ssl"]["ca"]).parent.name in made
        assert site["sasl"]["username"] in users
        assert site["sasl"]["password_file"].endswith(f"/{site['sasl']['username']}/password")


def test_the_witness_that_the_file_names_is_there(built: list[dict[str, Any]]) -> None:
    host, port = configuration(built)["coordination"]["zookeeper"].split(":")
    [listens] = of_kind(built, "Service")[host]["spec"]["ports"]
    assert listens["port"] == int(port)
