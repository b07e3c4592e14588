"""Quotas and SCRAM users as a cluster tells them, and as it is given quotas."""

from typing import Any

import pytest

from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.errors import ErrorCode
from wire.messages.alter_client_quotas import (
    AlterClientQuotasEntity,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResult,
)
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasEntity,
    DescribeClientQuotasEntry,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasValue,
)
from wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from wire.net import RequestRefused, open_cluster
from wire.net.client_quotas import client_quotas, entity_words, set_quotas
from wire.net.scram_users import scram_users

ALICE = frozenset({("user", "alice"), ("client-id", None)})


def answering(fake: FakeCluster, request: Any, answer: Any) -> list[Any]:
    """Have the cluster answer so; return the requests that come."""
    asked: list[Any] = []

    async def handle(_: object, one: Any) -> Any:
        asked.append(one)
        return answer

    fake.versions[request.API_KEY] = request.VERSIONS
    fake.brokers[0].scripts[request.API_KEY] = handle
    return asked


async def test_quotas_are_read_by_entity_and_written_back_alike() -> None:
    parts = (
        DescribeClientQuotasEntity(entity_type="user", entity_name="alice"),
        DescribeClientQuotasEntity(entity_type="client-id", entity_name=None),
    )
    entry = DescribeClientQuotasEntry(
        entity=parts, values=(DescribeClientQuotasValue(key="producer_byte_rate", value=5.0),)
    )
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        told = DescribeClientQuotasResponse(error_code=0, entries=(entry,))
        entity = (AlterClientQuotasEntity(entity_type="user", entity_name="alice"),)
        result = AlterClientQuotasResult(error_code=0, entity=entity)
        answering(fake, DescribeClientQuotasRequest, told)
        asked = answering(
            fake, AlterClientQuotasRequest, AlterClientQuotasResponse(entries=(result,))
        )
        held = await client_quotas(cluster)
        assert held == {ALICE: {"producer_byte_rate": 5.0}}
        await set_quotas(cluster, held)
    [request] = asked
    [given] = request.entries
    assert {(one.entity_type, one.entity_name) for one in given.entity} == ALICE
    assert [(op.key, op.value, op.remove) for op in given.ops] == [
        ("producer_byte_rate", 5.0, False)
    ]


async def test_a_quota_that_is_refused_names_whose_it_is() -> None:
    entity = (AlterClientQuotasEntity(entity_type="user", entity_name="alice"),)
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    result = AlterClientQuotasResult(error_code=code, entity=entity)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        answering(fake, AlterClientQuotasRequest, AlterClientQuotasResponse(entries=(result,)))
        with pytest.raises(RequestRefused, match="quotas of user alice, every other client-id: CL"):
            await set_quotas(cluster, {ALICE: {"producer_byte_rate": 5.0}})
    assert entity_words(frozenset({("ip", "10.0.0.1")})) == "ip 10.0.0.1"


async def test_scram_users_are_told_with_each_mechanism_known_or_not() -> None:
    infos = tuple(CredentialInfo(mechanism=number, iterations=4096) for number in (1, 2, 9))
    alice = DescribeUserScramCredentialsResult(user="alice", error_code=0, credential_infos=infos)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        answer = DescribeUserScramCredentialsResponse(error_code=0, results=(alice,))
        answering(fake, DescribeUserScramCredentialsRequest, answer)
        assert await scram_users(cluster) == {
            ("alice", "SCRAM-SHA-256"),
            ("alice", "SCRAM-SHA-512"),
            ("alice", "mechanism 9"),
        }
        refused = DescribeUserScramCredentialsResponse(error_code=31, results=())
        answering(fake, DescribeUserScramCredentialsRequest, refused)
        with pytest.raises(RequestRefused, match="CLUSTER_AUTHORIZATION_FAILED"):
            await scram_users(cluster)
