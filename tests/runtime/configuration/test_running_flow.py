"""What the leader publishes of a flow, and how another file differs from it."""

from pathlib import Path

import pytest

from runtime.configuration.config import FlowConfig, load
from runtime.configuration.running_flow import describe_running, differences, explain
from runtime.coordination.witness import RunningFlow
from tests.dc_yaml import dc_yaml, flow

MIRRORS = {"include": ["a", "b"], "exclude": ["c"]}


def flow_of(folder: Path, text: str) -> FlowConfig:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(text))
    return load(file).flows[0]


def test_the_same_file_does_not_differ_from_what_is_published(tmp_path: Path) -> None:
    mirrors = flow_of(tmp_path, flow(topics=["a", "b"]))
    node = RunningFlow.decode(describe_running(mirrors).encode())
    assert differences(node, flow_of(tmp_path, flow(topics=["b", "a"]))) == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            flow(topics={"include": ["a"], "exclude": ["c"]}),
            'topics.include: the mirror runs ["a", "b"], the file has ["a"]',
        ),
        (
            flow(topics={"include": ["a", "b"], "exclude": ["b"]}),
            'topics.exclude: the mirror runs ["c"], the file has ["b"]',
        ),
        (
            flow(topics=MIRRORS, groups={"include": ["g"]}),
            'groups.include: the mirror runs [".*"], the file has ["g"]',
        ),
        (
            flow(topics=MIRRORS, names="prefixed"),
            "names: the mirror runs identical, the file has prefixed by dc1.",
        ),
        (
            flow(topics=MIRRORS, isolation="read_uncommitted"),
            "isolation: the mirror runs read_committed, the file has read_uncommitted",
        ),
    ],
)
def test_each_difference_is_named(tmp_path: Path, text: str, told: str) -> None:
    running = describe_running(flow_of(tmp_path, flow(topics=MIRRORS)))
    here = flow_of(tmp_path, text)
    assert differences(running, here) == (told,)
    assert told in explain(here, (told,))
    assert "mirror run" in explain(here, (told,))
