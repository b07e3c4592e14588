"""Mutated requests of every API against a real broker: answered or hung up on, nothing else."""

import random
import socket
import warnings
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.apis.table import APIS
from tests.broker.rig import batch, produce
from tests.clusters import RunningCluster, run_cluster
from tests.wire.message_strategies import messages
from wire.headers import RequestHeader, encode_request
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.update_metadata import UpdateMetadataRequest

pytestmark = pytest.mark.integration

FRAMES = 2_000
SEED = 20
OBEYED = {api.API_KEY for api in (LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)}
"""A broker does what these say: without authorization anybody may depose its controller."""


def corpus(luck: random.Random) -> list[bytes]:
    """Return a few valid requests of each API, in versions at random."""
    frames = [frame(0, 9, produce(batch(b"x" * 100)))]
    for key, api in APIS.items():
        if key in OBEYED:
            continue
        for _ in range(4):
            version = luck.choice(api.versions)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an example outside of a test is what is wanted
                frames.append(frame(key, version, messages(api.request, version).example()))
    return frames


def frame(key: int, version: int, message: object) -> bytes:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="fuzz")
    return b"".join(map(bytes, encode_request(header, message)))  # type: ignore[arg-type]


def throw(cluster: RunningCluster, sent: bytes) -> None:
    """Send one frame and take whatever comes, but do not wait for it."""
    with socket.create_connection(cluster.addresses[0], timeout=5) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.005)
            while connection.recv(65_536):
                continue
        except (TimeoutError, ConnectionError):
            return


def test_mutated_requests_of_every_api_leave_no_trace(tmp_path: Path) -> None:
    luck = random.Random(SEED)
    frames = corpus(luck)
    settings = {"auto.create.topics.enable": "false"}
    with run_cluster(tmp_path, overrides=settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result(10)
        for _ in range(FRAMES):
            mutated = bytearray(luck.choice(frames))
            for _ in range(luck.randint(0, 4)):
                mutated[luck.randrange(4, len(mutated))] = luck.randrange(256)
            throw(cluster, bytes(mutated))
        assert "t" in admin.list_topics(timeout=10).topics
        said = (cluster.data / "broker-0" / "broker.log").read_text()
        assert "Traceback" not in said
        assert Path(f"/proc/{cluster.pids[0]}").exists()
