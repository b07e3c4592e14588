"""SCRAM users that the settings name, brought into ZooKeeper at the start."""

import logging
import secrets
from collections.abc import Mapping
from functools import partial

from broker.security.credentials import ScramUsers
from broker.security.scram import credential_of
from broker.security.settings import ListenerSettings, initial_scram_users
from broker.zookeeper.store import ClusterStore
from wire.net.security import Mechanism

_LOG = logging.getLogger(__name__)
_SALT_BYTES = 20


async def add_first_users(config: ListenerSettings, store: ClusterStore, users: ScramUsers) -> None:
    """Add who has no credential yet; what is there stays, also when the settings say otherwise.

    Raises ZooKeeperFault.
    """
    for mechanism, name, password in initial_scram_users(config):
        if mechanism not in users.of(name):
            change = partial(_with_credential, mechanism, password)
            users.set_user(name, await store.change_user_config(name, change))
            _LOG.info("user %s: credential for %s added", name, mechanism.value)


def _with_credential(
    mechanism: Mechanism, password: str, present: Mapping[str, str]
) -> Mapping[str, str]:
    """Leave a credential that another broker has added in between."""
    made = credential_of(mechanism, password, secrets.token_bytes(_SALT_BYTES))
    return {mechanism.value: str(made), **present}
