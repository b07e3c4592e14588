"""Guards ask about the rights that their rows name, and answer with Kafka's error codes."""

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.apis.table import APIS
from broker.authorizer.authorizer import Rights
from broker.authorizer.verdict import Asker
from broker.context import Call, Node
from broker.guards.guard import AskedRight
from broker.guards.table import GUARDS
from broker.metadata_cache import MetadataCache
from tests.broker.guards.samples import SAMPLES, Sample, codes
from wire.acls import SUPPORTED, Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.messages.fetch import FetchRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.produce import ProduceRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.messages.write_txn_markers import WriteTxnMarkersRequest
from wire.schema.decoding import decode
from wire.schema.encoding import Unencodable, encode


class Asked(Rights):
    """Rights that a test gives, and what was asked about."""

    __slots__ = ("asked", "has")

    def __init__(self, has: Callable[[AskedRight], bool]) -> None:
        super().__init__(None, Asker("User:alice", "h"))
        self.has = has
        self.asked: set[AskedRight] = set()

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        assert name
        self.asked.add(AskedRight(operation, kind))
        return self.has(AskedRight(operation, kind))

    def may_somewhere(self, operation: Operation, kind: ResourceType) -> bool:
        return self.may(operation, kind, "somewhere")


CLUSTER_ACTION = AskedRight(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)


async def taken_for_broker(key: int, rights: Rights) -> bool:
    """Return whether the handler is to take whoever asks for a broker of the cluster."""
    call = Call(node=cast("Node", None), api_version=0, client_id="", client_host="", rights=rights)

    async def handle(request: Any, call: Call) -> Any:
        assert request is None
        return call.is_broker

    return bool(await GUARDS[key].stand(None, call, handle))


async def ask(sample: Sample, rights: Rights) -> tuple[Any, list[Any]]:
    """Return the answer, and with what the handler was called."""
    node = SimpleNamespace(metadata=MetadataCache("cluster"))
    call = Call(
        node=cast("Node", node),
        api_version=sample.version,
        client_id="test",
        client_host="h",
        rights=rights,
    )
    handled: list[Any] = []

    async def handle(request: Any, call: Call) -> Any:
        assert call.client_id == "test"
        handled.append(request)
        return sample.handler(request)

    return await GUARDS[sample.request.API_KEY].stand(sample.request, call, handle), handled


def test_every_api_that_is_served_has_its_guard() -> None:
    assert GUARDS.keys() == APIS.keys()


def test_who_asks_nothing_is_known_by_name() -> None:
    """The handler of Produce asks itself: a batch is refused by its partition's answer."""
    open_to_all = {key for key, guard in GUARDS.items() if not guard.needs}
    assert open_to_all == {
        one.API_KEY for one in (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
async def test_somebody_without_any_right_is_refused_in_kafkas_words(sample: Sample) -> None:
    answer, handled = await ask(sample, Asked(lambda _: False))
    assert type(answer) is sample.request.RESPONSE
    assert codes(answer) == sample.refused
    assert not codes(tuple(map(sample.handler, handled)))
    for request in handled:
        assert request == sample.request or "'t'" not in str(request), "the handler got it"


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
async def test_somebody_with_every_right_gets_the_handlers_answer(sample: Sample) -> None:
    answer, handled = await ask(sample, Asked(lambda _: True))
    assert handled == [sample.request]
    assert not codes(answer)


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.refused], ids=str)
async def test_a_refusal_can_be_written_in_each_version_that_is_served(sample: Sample) -> None:
    """A refusal that cannot be written would end the connection instead."""
    for version in APIS[sample.request.API_KEY].versions:
        try:
            sent = decode(type(sample.request), encode(sample.request, version), version)
        except Unencodable:
            continue
        if sent != sample.request:
            continue  # it says something that this version has no field for
        answer, _ = await ask(replace(sample, version=version), Asked(lambda _: False))
        encode(answer, version)


ASK_ELSEWHERE = frozenset(
    {
        ProduceRequest.API_KEY,
        FetchRequest.API_KEY,
        MetadataRequest.API_KEY,
    }
)
"""Their handlers ask, or the cache of topics: `test_rights` has them over the wire."""
OF_BROKERS = frozenset(key for key, guard in GUARDS.items() if guard.needs == (CLUSTER_ACTION,))


async def test_a_row_names_the_rights_that_are_asked_about_and_no_others() -> None:
    """Whichever of them somebody has."""
    asked: dict[int, set[AskedRight]] = {}
    choices: list[Callable[[AskedRight], bool]] = [lambda _: True, lambda _: False]
    for need in {need for guard in GUARDS.values() for need in guard.needs}:
        choices += [partial(operator.eq, need), partial(operator.ne, need)]
    for sample in SAMPLES:
        for has in choices:
            rights = Asked(has)
            await ask(sample, rights)
            asked.setdefault(sample.request.API_KEY, set()).update(rights.asked)
    expected = {
        key: set(guard.needs)
        for key, guard in GUARDS.items()
        if guard.needs and key not in ASK_ELSEWHERE | OF_BROKERS
    }
    assert asked == expected


@pytest.mark.parametrize("is_let", [True, False])
@pytest.mark.parametrize("key", sorted(OF_BROKERS))
async def test_who_has_cluster_action_is_a_broker(key: int, is_let: bool) -> None:
    assert await taken_for_broker(key, Asked(lambda _: is_let)) is is_let


async def test_who_may_alter_the_cluster_may_end_a_hanging_transaction() -> None:
    alter = AskedRight(Operation.ALTER, ResourceType.CLUSTER)
    assert await taken_for_broker(
        WriteTxnMarkersRequest.API_KEY, Asked(partial(operator.eq, alter))
    )


OF_GROUPS_ALONE = tuple(
    AskedRight(one, ResourceType.GROUP) for one in SUPPORTED[ResourceType.GROUP]
)
OF_CONSUMER_GROUPS = (ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest)


@pytest.mark.parametrize(
    "sample", [one for one in SAMPLES if isinstance(one.request, OF_CONSUMER_GROUPS)], ids=str
)
async def test_a_group_of_the_new_protocol_hides_topics_from_who_may_not_see_them(
    sample: Sample,
) -> None:
    answer, _ = await ask(sample, Asked(lambda need: need in OF_GROUPS_ALONE))
    assert codes(answer) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert "'t'" not in str(answer)
