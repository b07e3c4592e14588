"""What chart and image say of the project is so; Helm itself reads the chart in `make interop`."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import yaml

from runtime.configuration.config import load
from tests.deploy.chart import CHART, TRIED

ROOT: Final = Path(__file__).parents[2]
IMAGE: Final = ROOT / "deploy" / "image"


def read(file: str) -> dict[str, Any]:
    return dict(yaml.safe_load((CHART / file).read_text()))


def containerfile() -> str:
    return (IMAGE / "Containerfile").read_text()


def test_the_chart_has_the_projects_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = read("Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (project["version"], project["version"])


def test_the_chart_brings_the_alerts_that_are_tried() -> None:
    assert (CHART / "files" / "alerts.yml").samefile(ROOT / "deploy" / "prometheus" / "alerts.yml")


def test_the_ports_are_those_of_a_configuration_that_names_none(tmp_path: Path) -> None:
    [least] = [file for file in TRIED if file.name == "least.yaml"]
    file = tmp_path / "dc.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(least.read_text())["configuration"]))
    metrics = load(file).metrics
    assert read("values.yaml")["ports"] == {
        "mirror": metrics.mirror_port,
        "failover": metrics.failover_port,
        "bootstrap": metrics.bootstrap_port,
    }


def test_the_image_runs_as_the_user_that_pods_run_as_without_any_right_of_root() -> None:
    [user] = re.findall(r"^USER (\d+):\d+$", containerfile(), re.MULTILINE)
    context = read("values.yaml")["podSecurityContext"]
    assert context["runAsUser"] == int(user) != 0
    assert context["runAsNonRoot"] is True


def test_the_image_takes_no_more_of_the_checkout_than_it_copies() -> None:
    everything, *kept = (IMAGE / "ignored").read_text().split()
    assert everything == "*"
    copied = re.findall(r"^COPY (?!--from)(.+) \./$", containerfile(), re.MULTILINE)
    assert {one.removeprefix("!") for one in kept} == {
        one for line in copied for one in line.split()
    }


def test_the_image_installs_an_extra_that_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [default] = re.findall(r"^ARG EXTRAS=(\w+)$", containerfile(), re.MULTILINE)
    assert default in extras["optional-dependencies"]
