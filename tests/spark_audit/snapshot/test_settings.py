"""An audit of other settings than the mirror's compares other topics: it refuses."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio

import spark_audit.snapshot.snapshot as snapshots
from runtime.configuration.config import Configuration, load
from runtime.configuration.flow_section import FlowConfig, PatternSet
from runtime.configuration.running_flow import describe_running
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from spark_audit.snapshot.seals import CannotTell
from tests.dc_yaml import dc_yaml, flow

PATHS = WitnessPaths(root="/r")


def witness_holding(patch: pytest.MonkeyPatch, data: bytes | None) -> None:
    """Let the witness hold this of what the mirror runs."""

    class Witness:
        async def get(self, path: str) -> ZNode | None:
            await trio.lowlevel.checkpoint()
            if data is None or path != PATHS.running("dc1", "dc2"):
                return None
            return ZNode(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0)

    @asynccontextmanager
    async def opened(_: Configuration) -> AsyncIterator[tuple[ZooKeeper, WitnessPaths]]:
        yield cast("ZooKeeper", Witness()), PATHS

    patch.setattr(snapshots, "_open_witness", opened)


def configured(folder: Path) -> tuple[Configuration, FlowConfig]:
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2", "orders")))
    configuration = load(file)
    [only] = configuration.flows
    return configuration, only


async def test_an_audit_of_fewer_topics_than_the_mirrors_is_refused_and_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration, ours = configured(tmp_path)
    both = tuple(map(re.compile, ("orders", "payments")))
    mirrors = replace(ours, topics=PatternSet(include=both, exclude=ours.topics.exclude))
    witness_holding(monkeypatch, describe_running(mirrors).encode())

    @asynccontextmanager
    async def site(*_: object) -> AsyncIterator[None]:
        yield None

    monkeypatch.setattr(snapshots, "open_site", site)
    wants = snapshots.TopicFilter(flow=ours, only=frozenset())
    with pytest.raises(
        CannotTell,
        match=r"flow dc1->dc2: this file differs .*topics\.include: the mirror runs .*payments",
    ):
        await snapshots.take_snapshot(configuration, wants, now_ms=5)
    witness_holding(monkeypatch, b"garbage")
    with pytest.raises(CannotTell, match=PATHS.running("dc1", "dc2")):
        await snapshots._require_same_settings(configuration, ours)


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_audit_of_the_mirrors_file_goes_on_and_so_does_one_of_a_mirror_that_never_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    configuration, ours = configured(tmp_path)
    witness_holding(monkeypatch, describe_running(ours).encode() if is_known else None)
    await snapshots._require_same_settings(configuration, ours)
