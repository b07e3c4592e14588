"""The chart as Helm renders it: objects that Kubernetes takes, and a file that programs take."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import failover.cli
import mirror.cli
import spark_audit.cli
from runtime.configuration.config import Configuration, load
from runtime.pages.page_door import is_loopback
from tests.deploy.chart import CHART, TRIED
from tests.doubles.key_stores import Family
from tests.interop.peers.kubernetes import VERSION, Tool, ToolComplains, helm, schemas

PROGRAMS: Final = {
    one.name: one for one in (failover.cli.PROGRAM, mirror.cli.PROGRAM, spark_audit.cli.PROGRAM)
}
OPERATORS: Final = {"PodMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator, of which Kubernetes itself has no schema."""
SECRETS: Final = "/etc/kafka-dr/"

pytestmark = pytest.mark.matrix(subject="Chart for Helm", against="Helm 3.22, Kubernetes 1.33")
each_values = pytest.mark.parametrize("values", [file.stem for file in TRIED])


@pytest.fixture(scope="module")
def charts() -> Tool:
    return helm()


def render(charts: Tool, *options: str | Path) -> str:
    return charts.run("template", "dr", CHART, f"--kube-version={VERSION}", *options)


def objects(text: str) -> list[dict[str, Any]]:
    return [dict(one) for one in yaml.safe_load_all(text) if one]


def rendered(charts: Tool, values: str) -> list[dict[str, Any]]:
    return objects(render(charts, "--values", CHART / "ci" / f"{values}.yaml"))


def pods(found: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in found:
        if one["kind"] == "Deployment":
            yield one["metadata"]["name"], one["spec"]["template"]
        elif one["kind"] == "CronJob":
            yield one["metadata"]["name"], one["spec"]["jobTemplate"]["spec"]["template"]


def configuration(found: list[dict[str, Any]], folder: Path) -> Configuration:
    """Return the file that the pods read, with its secrets in a folder of the test."""
    [secret] = [one for one in found if one["kind"] == "Secret"]
    text = secret["stringData"]["dc.yaml"].replace(SECRETS, f"{folder}/")
    mounted = {
        "secrets/user/password": "secret\n",
        "secrets/authorities/ca.crt": Family().root.pem(),
        "pages/token": "secret\n",
    }
    for name, content in mounted.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    file = folder / "dc.yaml"
    file.write_text(text)
    return load(file)


@each_values
def test_helm_finds_nothing_to_say_of_the_chart(charts: Tool, values: str) -> None:
    file = CHART / "ci" / f"{values}.yaml"
    charts.run("lint", "--strict", f"--kube-version={VERSION}", "--values", file, CHART)


@each_values
def test_kubernetes_knows_every_field_of_every_object(
    charts: Tool, values: str, tmp_path: Path
) -> None:
    found = [one for one in rendered(charts, values) if one["kind"] not in OPERATORS]
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(found))
    major_minor = VERSION.rpartition(".")[0]
    said = schemas().run("--strict", "--kubernetes-version", major_minor, file)
    assert said.count(" passed for resource ") == len(found)


@each_values
def test_every_pod_runs_a_command_that_exists_on_the_file_that_is_mounted(
    charts: Tool, values: str
) -> None:
    for _, pod in pods(rendered(charts, values)):
        [container] = pod["spec"]["containers"]
        program, *words = container["args"]
        assert str(PROGRAMS[program].parse(words).file) == "/etc/kafka-dr/dc.yaml"
        assert {"name": "configuration", "subPath": "dc.yaml"}.items() <= next(
            mount.items()
            for mount in container["volumeMounts"]
            if mount["mountPath"] == "/etc/kafka-dr/dc.yaml"
        )
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}


@each_values
def test_every_program_takes_the_file_and_its_pages_are_where_probes_ask(
    charts: Tool, values: str, tmp_path: Path
) -> None:
    found = rendered(charts, values)
    metrics = configuration(found, tmp_path).metrics
    assert not is_loopback(metrics.host)
    ports = {
        "mirror": metrics.mirror_port,
        "failover": metrics.failover_port,
        "bootstrap": metrics.bootstrap_port,
    }
    for name, pod in pods(found):
        [container] = pod["spec"]["containers"]
        if name.endswith("-audit"):
            continue
        [pages] = [one for one in container["ports"] if one["name"] == "pages"]
        assert pages["containerPort"] == ports[container["name"]]
        assert container["readinessProbe"]["httpGet"]["port"] == "pages"


@each_values
def test_no_pod_has_rights_or_a_disk_that_it_can_write_to_but_its_own(
    charts: Tool, values: str
) -> None:
    for _, pod in pods(rendered(charts, values)):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        [container] = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in container["resources"]["limits"]


def test_a_voter_votes_under_the_name_that_its_release_has(charts: Tool) -> None:
    commands = {
        name: pod["spec"]["containers"][0]["args"] for name, pod in pods(rendered(charts, "all"))
    }
    assert commands["dr-dr-failover"][:-1] == ["failover", "serve", "--voter", "b"]
    bare = objects(render(charts, "--set", "image.repository=a,existingSecret=mine"))
    assert dict(pods(bare))["dr-dr-failover"]["spec"]["containers"][0]["args"][:-1] == [
        "failover",
        "serve",
    ]


def test_what_selects_pods_selects_those_of_one_program(charts: Tool) -> None:
    found = rendered(charts, "all")
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(found)}
    for one in found:
        selector = _selector(one)
        if selector is None:
            continue
        chosen = [name for name, has in labels.items() if selector.items() <= has.items()]
        assert chosen == [one["metadata"]["name"]], f"{one['kind']} selects {chosen}"


def _selector(one: dict[str, Any]) -> dict[str, str] | None:
    spec = one.get("spec", {})
    if one["kind"] == "Service":
        return dict(spec["selector"])
    if one["kind"] == "NetworkPolicy":
        return dict(spec["podSelector"]["matchLabels"])
    if one["kind"] in {"PodDisruptionBudget", "PodMonitor", "Deployment"}:
        return dict(spec["selector"]["matchLabels"])
    return None


def test_the_rule_has_the_alerts_as_they_are_tried(charts: Tool) -> None:
    [rule] = [one for one in rendered(charts, "all") if one["kind"] == "PrometheusRule"]
    assert rule["spec"] == yaml.safe_load((CHART / "files" / "alerts.yml").read_text())


@pytest.mark.parametrize("docs", ["https://docs.example/dr", "https://docs.example/dr/"])
def test_the_rules_alerts_lead_to_the_runbooks_where_they_are_served(
    charts: Tool, docs: str
) -> None:
    values = CHART / "ci" / "all.yaml"
    chosen = ("--values", values, "--set", f"monitoring.docs={docs}")
    charts.run("lint", "--strict", f"--kube-version={VERSION}", *chosen, CHART)
    [rule] = [one for one in objects(render(charts, *chosen)) if one["kind"] == "PrometheusRule"]
    alerts = [
        alert for group in rule["spec"]["groups"] for alert in group["rules"] if "alert" in alert
    ]
    told = yaml.safe_load((CHART / "files" / "alerts.yml").read_text())
    links = [
        alert["annotations"]["runbook_url"]
        for group in told["groups"]
        for alert in group["rules"]
        if "alert" in alert
    ]
    assert [one["annotations"]["runbook_url"] for one in alerts] == [
        f"https://docs.example/dr/{link.removeprefix('docs/').replace('.md#', '.html#')}"
        for link in links
    ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--set configuration.x=1", "repository"),
        ("--set image.repository=a", "configuration is missing"),
        ("--set image.repository=a --set mirror.replicas=0", "replicas"),
        ("--set image.repository=a --set mirrors.replicas=3", "mirrors"),
        (
            "--set image.repository=a --set configuration.x=1 --set failover.voter=d",
            "configuration.failover.automatic.voters has no d",
        ),
    ],
)
def test_a_value_that_is_missing_or_wrong_is_named(
    charts: Tool, options: str, complaint: str
) -> None:
    with pytest.raises(ToolComplains, match=complaint):
        render(charts, *shlex.split(options))


def test_a_secret_of_ones_own_takes_the_place_of_the_charts(charts: Tool) -> None:
    found = objects(render(charts, "--set", "image.repository=a,existingSecret=mine"))
    assert "Secret" not in {one["kind"] for one in found}
    for _, pod in pods(found):
        [volume] = [one for one in pod["spec"]["volumes"] if one["name"] == "configuration"]
        assert volume["secret"]["secretName"] == "mine"
