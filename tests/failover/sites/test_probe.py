"""Whether partitions take writes is tried at all their leaders side by side."""

from functools import partial
from typing import Any

import trio

from failover.sites.probe import probe
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeBroker, run_fake_cluster
from wire.headers import RequestHeader
from wire.messages.produce import ProduceRequest
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

PLACES = [TopicPartition("orders", leader) for leader in range(3)]


async def test_no_leader_waits_for_the_answer_of_another() -> None:
    asked: set[int] = set()
    all_are_asked = trio.Event()

    async def answer(broker: FakeBroker, header: RequestHeader, request: ProduceRequest) -> Any:
        asked.add(broker.node_id)
        if len(asked) == len(PLACES):
            all_are_asked.set()
        await all_are_asked.wait()
        return ANSWERS[header.api_key](broker, header.api_version, request)

    async with run_fake_cluster(brokers=len(PLACES)) as fake:
        fake.create_topic("orders", *range(len(PLACES)))
        for broker in fake.brokers.values():
            broker.scripts[ProduceRequest.API_KEY] = partial(answer, broker)
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            with trio.fail_after(10):
                assert (await probe(cluster, PLACES)).keys() == set(PLACES)
