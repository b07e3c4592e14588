"""The users that SASL lets in: PLAIN's by the settings, SCRAM's as ZooKeeper has them now."""

import hmac
import logging
import secrets
from collections.abc import Mapping
from typing import Final

from broker.security.scram import Garbled, ScramCredential, nobody, parse_credential
from wire.net.security import Mechanism

_LOG = logging.getLogger(__name__)

SCRAM: Final = (Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)


class ScramUsers:
    """The SCRAM credentials of all users; replaced user by user, as ZooKeeper says."""

    def __init__(self) -> None:
        self._users: dict[str, Mapping[Mechanism, ScramCredential]] = {}
        self._secret = secrets.token_bytes(32)

    def set_user(self, name: str, config: Mapping[str, str]) -> None:
        """Take over `/config/users/<name>`; what is garbled there lets nobody in."""
        found: dict[Mechanism, ScramCredential] = {}
        for mechanism in SCRAM:
            if mechanism.value in config:
                try:
                    found[mechanism] = parse_credential(config[mechanism.value])
                except Garbled as reason:
                    _LOG.error("user %s: ignored: %s %s", name, mechanism.value, reason)
        if found:
            self._users[name] = found
        else:
            self._users.pop(name, None)

    def of(self, name: str) -> Mapping[Mechanism, ScramCredential]:
        """Return a user's credentials by mechanism."""
        return self._users.get(name, {})

    def names(self) -> list[str]:
        """Return who has credentials."""
        return list(self._users)

    def credential(self, mechanism: Mechanism, name: str) -> ScramCredential:
        """Return what the proof is held against; for nobody, one that no proof fits."""
        return self.of(name).get(mechanism) or nobody(mechanism, name, self._secret)


class PlainUsers:
    """The users of PLAIN on one listener."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {name: password.encode() for name, password in passwords.items()}
        self._nobodys = secrets.token_bytes(16)

    def let_in(self, name: str, password: str) -> bool:
        """Say whether the password is this user's; an unknown name takes as long as a known one."""
        expected = self._passwords.get(name)
        is_right = hmac.compare_digest(
            self._nobodys if expected is None else expected, password.encode()
        )
        return is_right and expected is not None
