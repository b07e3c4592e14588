"""SCRAM users set and described by request: what is refused, in Kafka's words, and what is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.apis import alter_user_scram_credentials as alter
from broker.apis import describe_user_scram_credentials as describe
from broker.context import Call, Node
from broker.listeners import Listener, SecurityProtocol
from broker.security.credentials import ScramUsers
from broker.security.first_users import add_first_users
from broker.security.scram import credential_of, credential_of_salted, parse_credential
from broker.security.settings import JaasLogin
from broker.zookeeper.store import Change, ClusterStore
from tests.broker.rig import config
from wire.errors import ErrorCode
from wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    UserName,
)
from wire.net.security import Mechanism

SHA_256, SHA_512 = 1, 2


@dataclass
class KeptUsers:
    """What ZooKeeper holds of users, in memory."""

    users: dict[str, dict[str, str]] = field(default_factory=dict)
    changes: int = 0

    @property
    def zookeeper(self) -> Any:
        return SimpleNamespace(children=self._children)

    async def _children(self, _: str) -> list[str]:
        return list(self.users)

    async def user_config(self, name: str) -> dict[str, str]:
        return self.users.get(name, {})

    async def change_user_config(self, name: str, change: Change) -> Mapping[str, str]:
        changed = dict(change(self.users.get(name, {})))
        self.users[name] = changed
        self.changes += 1
        return changed


def call(kept: KeptUsers, users: ScramUsers | None = None) -> Call:
    node = SimpleNamespace(store=kept, scram_users=users or ScramUsers())
    return Call(node=cast("Node", node), api_version=0, client_id=None, client_host="h")


def upsertion(
    name: str = "alice", mechanism: int = SHA_256, iterations: int = 4096
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=b"salted",
    )


def deletion(name: str = "alice", mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


async def altered(
    kept: KeptUsers, *changes: ScramCredentialDeletion | ScramCredentialUpsertion, **users: Any
) -> dict[str, tuple[int, str | None]]:
    answer = await alter.handle(
        AlterUserScramCredentialsRequest(
            deletions=tuple(one for one in changes if isinstance(one, ScramCredentialDeletion)),
            upsertions=tuple(one for one in changes if isinstance(one, ScramCredentialUpsertion)),
        ),
        call(kept, **users),
    )
    return {one.user: (one.error_code, one.error_message) for one in answer.results}


async def test_what_is_set_is_kept_and_holds_here_at_once() -> None:
    kept, users = KeptUsers(), ScramUsers()
    assert await altered(kept, upsertion(), users=users) == {"alice": (0, None)}
    expected = credential_of_salted(Mechanism.SCRAM_SHA_256, b"salted", b"salt", 4096)
    assert kept.users == {"alice": {"SCRAM-SHA-256": str(expected)}}
    assert users.credential(Mechanism.SCRAM_SHA_256, "alice") == expected


async def test_what_else_is_kept_of_a_user_stays() -> None:
    kept = KeptUsers({"alice": {"producer_byte_rate": "10", "SCRAM-SHA-256": "old"}})
    assert await altered(kept, deletion(), upsertion(mechanism=SHA_512)) == {"alice": (0, None)}
    assert kept.users["alice"].keys() == {"producer_byte_rate", "SCRAM-SHA-512"}


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ((upsertion(name=""),), ErrorCode.UNACCEPTABLE_CREDENTIAL, "must not be empty"),
        ((deletion(name=""),), ErrorCode.UNACCEPTABLE_CREDENTIAL, "must not be empty"),
        ((upsertion(mechanism=3),), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM"),
        ((deletion(mechanism=0),), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM"),
        ((upsertion(iterations=4095),), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few"),
        ((upsertion(iterations=16_385),), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many"),
        ((upsertion(), upsertion()), ErrorCode.DUPLICATE_RESOURCE, "altered twice"),
        ((deletion(), upsertion()), ErrorCode.DUPLICATE_RESOURCE, "altered twice"),
        ((deletion(),), ErrorCode.RESOURCE_NOT_FOUND, "does not exist"),
    ],
)
async def test_a_change_that_cannot_be_is_refused_and_the_others_are_made(
    changes: tuple[ScramCredentialDeletion | ScramCredentialUpsertion, ...],
    error: ErrorCode,
    said: str,
) -> None:
    kept = KeptUsers()
    answer = await altered(kept, *changes, upsertion(name="bob"))
    (name,) = answer.keys() - {"bob"}
    code, message = answer[name]
    assert (code, answer["bob"]) == (error, (0, None))
    assert message is not None
    assert said in message
    assert kept.users.keys() == {"bob"}


async def test_users_are_described_without_their_credentials() -> None:
    kept = KeptUsers({"quota": {"producer_byte_rate": "1"}, "bad": {"SCRAM-SHA-256": "x"}})
    await altered(kept, upsertion(iterations=5000), upsertion(mechanism=SHA_512))
    asked = tuple(UserName(name=name) for name in ("alice", "quota", "bad", "", "bob", "bob"))
    answer = await describe.handle(DescribeUserScramCredentialsRequest(users=asked), call(kept))
    assert [(one.user, one.error_code) for one in answer.results] == [
        ("alice", 0),
        ("quota", ErrorCode.RESOURCE_NOT_FOUND),
        ("bad", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("", ErrorCode.RESOURCE_NOT_FOUND),
        ("bob", ErrorCode.DUPLICATE_RESOURCE),
    ]
    assert answer.results[0].credential_infos == (
        CredentialInfo(mechanism=SHA_256, iterations=5000),
        CredentialInfo(mechanism=SHA_512, iterations=4096),
    )
    everybody = await describe.handle(DescribeUserScramCredentialsRequest(), call(kept))
    assert [one.user for one in everybody.results] == ["alice", "bad"]


async def test_users_of_the_settings_are_added_once_and_then_left_alone() -> None:
    listener = Listener(name="S", host="", port=1, protocol=SecurityProtocol.SASL_PLAINTEXT)
    settings = config(
        listeners=(listener,),
        sasl_enabled_mechanisms=(Mechanism.PLAIN, Mechanism.SCRAM_SHA_256),
        sasl_jaas_config=JaasLogin(users={"alice": "pencil", "bob": "eraser"}),
    )
    changed = str(credential_of(Mechanism.SCRAM_SHA_256, "new", b"salt"))
    kept, users = KeptUsers({"bob": {"SCRAM-SHA-256": changed}}), ScramUsers()
    users.set_user("bob", kept.users["bob"])
    for _ in range(2):
        await add_first_users(settings, cast("ClusterStore", kept), users)
    assert kept.changes == 1
    assert kept.users["bob"]["SCRAM-SHA-256"] == changed
    made = parse_credential(kept.users["alice"]["SCRAM-SHA-256"])
    assert made == credential_of(Mechanism.SCRAM_SHA_256, "pencil", made.salt)
    assert users.credential(Mechanism.SCRAM_SHA_256, "alice") == made
