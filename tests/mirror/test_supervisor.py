"""What each of several workers of one machine is started with, and when again."""

from pathlib import Path

import pytest

from mirror.cli import main
from mirror.supervisor import Backoff, as_worker
from runtime.config import load

FILE = """\
clusters: {dc1: {bootstrap: "a:1"}, dc2: {bootstrap: "b:1"}}
flows: [{source: dc1, target: dc2}]
coordination: {zookeeper: "c:1"}
metrics: {mirror_port: %d}
"""


def test_who_dies_again_and_again_is_started_ever_less_often() -> None:
    backoff, pauses = Backoff(), []
    for ran_s in (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 3600.0, 0.1):
        pause_s, backoff = backoff.after(ran_s)
        pauses.append(pause_s)
    assert pauses == [1, 2, 4, 8, 16, 30, 1, 2]


@pytest.mark.parametrize(("port", "ports"), [(9401, [9401, 9411, 9421]), (0, [0, 0, 0])])
def test_every_worker_has_a_metrics_port_of_its_own(
    tmp_path: Path, port: int, ports: list[int]
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(FILE % port)
    configuration = load(file)
    assert [as_worker(configuration, n).metrics.mirror_port for n in range(3)] == ports


@pytest.mark.parametrize("count", ["0", "65", "many"])
def test_a_wrong_number_of_workers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--workers", count, str(tmp_path / "dc.yaml")])
    assert ended.value.code == 2
    assert "--workers" in capsys.readouterr().err
