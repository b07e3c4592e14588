"""The examples for Kubernetes: what they start exists, and what they name is there."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

import failover.cli
from spark_audit.cli import PROGRAM
from spark_audit.commands import settings_of

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
JARS = Path(pyspark.__file__).parent / "jars"
NAMED = re.compile(r"(?<=\.secrets\.).+")
"""The part of a setting that its user chooses."""
MADE_BY_HAND = {("Secret", "kafka-dr")}
"""As the files' comments say."""


@cache
def objects(file: Path) -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load_all(file.read_text()))


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in FILES:
        for one in objects(file):
            if one["kind"] == "CronJob":
                yield file.name, one["spec"]["jobTemplate"]["spec"]


JOBS = dict(jobs())


def container(job: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = job["template"]["spec"]["containers"]
    return dict(found)


def test_there_is_an_example_in_one_pod_and_one_on_executors() -> None:
    audits = [args for job in JOBS.values() if (args := container(job)["args"])[0] == PROGRAM.name]
    assert [("--master" in str(one)) for one in audits] == [True, False]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_runs_a_command_that_exists_on_the_file_that_is_mounted(name: str) -> None:
    pod = container(JOBS[name])
    program, *arguments = pod["args"]
    [started] = (one for one in (PROGRAM, failover.cli.PROGRAM) if one.name == program)
    given = started.parse(arguments)
    mounted = {one["mountPath"] for one in pod["volumeMounts"]}
    written = {str(given.output)} if started is PROGRAM else set()
    assert {*written, "/etc/kafka-dr"} < mounted
    assert "/etc/kafka-dr/dc.yaml" in arguments


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_found_something_is_not_run_again_and_none_overlaps(name: str) -> None:
    job = JOBS[name]
    assert job["backoffLimit"] == 0
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    [cron] = [one for one in objects(FOLDER / name) if one["kind"] == "CronJob"]
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"


@pytest.mark.parametrize("name", JOBS)
def test_what_a_pod_mounts_and_is_called_by_is_defined(name: str) -> None:
    pod = JOBS[name]["template"]["spec"]
    defined = {(one["kind"], one["metadata"]["name"]) for file in FILES for one in objects(file)}
    wanted = (
        {("ServiceAccount", pod["serviceAccountName"])} if "serviceAccountName" in pod else set()
    )
    for volume in pod["volumes"]:
        if "secret" in volume:
            wanted.add(("Secret", volume["secret"]["secretName"]))
        if "persistentVolumeClaim" in volume:
            wanted.add(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    assert wanted <= defined | MADE_BY_HAND
    volumes = {one["name"] for one in pod["volumes"]}
    assert {one["name"] for one in container(JOBS[name])["volumeMounts"]} == volumes


def test_executors_reach_the_driver_by_its_service_and_read_the_same_file() -> None:
    file = FOLDER / "spark-audit-on-executors.yaml"
    pod = container(JOBS[file.name])
    settings = settings_of(PROGRAM.parse(pod["args"][1:]).conf)
    by_kind = {one["kind"]: one for one in objects(file)}
    service = by_kind["Service"]
    assert settings["spark.driver.host"] == f"{service['metadata']['name']}.$(NAMESPACE).svc"
    ports = {one["name"]: str(one["port"]) for one in service["spec"]["ports"]}
    assert ports == {
        "driver": settings["spark.driver.port"],
        "blocks": settings["spark.driver.blockManager.port"],
    }
    labels = JOBS[file.name]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert settings["spark.kubernetes.container.image"] == pod["image"]
    assert settings["spark.kubernetes.executor.secrets.kafka-dr"] == "/etc/kafka-dr"
    assert {one["name"] for one in pod["env"]} == set(re.findall(r"\$\((\w+)\)", str(pod["args"])))


def test_the_settings_are_those_of_the_spark_that_is_installed() -> None:
    pod = container(JOBS["spark-audit-on-executors.yaml"])
    settings = settings_of(PROGRAM.parse(pod["args"][1:]).conf)
    [jar] = JARS.glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(jar) as packed:
        known = packed.read("org/apache/spark/deploy/k8s/Config$.class")
        known += packed.read("org/apache/spark/deploy/k8s/Constants$.class")
    for setting in settings:
        if setting.startswith("spark.kubernetes."):
            assert NAMED.sub("", setting).encode() in known, setting
