"""The quotas that are set, and the one that holds for a client: Kafka's precedence. Pure."""

import logging
import math
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker.quotas.entity import DEFAULT, IP_QUOTAS, QUOTAS, QuotaEntity
from wire.values import frozen

_LOG = logging.getLogger(__name__)

NO_QUOTAS: Final[Mapping[str, float]] = MappingProxyType({})


@frozen(kw_only=False)
class Bucket:
    """Those who share what one quota allows; None stands for whoever."""

    user: str | None
    client: str | None


class QuotaTable:
    """Quotas by entity, as ZooKeeper has them."""

    def __init__(self) -> None:
        self._held: dict[QuotaEntity, Mapping[str, float]] = {}
        self._counts: Counter[str] = Counter()

    @property
    def is_empty(self) -> bool:
        """Whether nobody has a quota."""
        return not self._held

    def put(self, entity: QuotaEntity, config: Mapping[str, str]) -> None:
        """Take over what a node holds; other settings beside quotas are none of ours.

        What is no number above zero is named and left out, as if it were not there.
        """
        known = QUOTAS if entity.ip is None else IP_QUOTAS
        quotas: dict[str, float] = {}
        for key in known & config.keys():
            try:
                quotas[key] = parse_quota(config[key])
            except ValueError as reason:
                _LOG.error("/config/%s: ignored: %s %s", entity.path, key, reason)
        self._counts.subtract(self._held.pop(entity, NO_QUOTAS).keys())
        self._counts.update(quotas.keys())
        if quotas:
            self._held[entity] = quotas

    def has(self, key: str) -> bool:
        """Say whether anybody has such a quota."""
        return self._counts[key] > 0

    def all(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """Return everything that is set."""
        return MappingProxyType(self._held)

    def limit(self, key: str, user: str, client: str) -> tuple[Bucket, float] | None:
        """Return the quota that holds for a client of this user, and who shares it; None for none.

        The order is that of Kafka's ClientQuotaManager. A default is each one's own, not shared.
        """
        for entity, bucket in (
            (QuotaEntity(user=user, client=client), Bucket(user, client)),
            (QuotaEntity(user=user, client=DEFAULT), Bucket(user, client)),
            (QuotaEntity(user=user), Bucket(user, None)),
            (QuotaEntity(user=DEFAULT, client=client), Bucket(user, client)),
            (QuotaEntity(user=DEFAULT, client=DEFAULT), Bucket(user, client)),
            (QuotaEntity(user=DEFAULT), Bucket(user, None)),
            (QuotaEntity(client=client), Bucket(None, client)),
            (QuotaEntity(client=DEFAULT), Bucket(None, client)),
        ):
            quota = self._held.get(entity, NO_QUOTAS).get(key)
            if quota is not None:
                return bucket, quota
        return None


def parse_quota(text: str) -> float:
    """Return a quota that can be; raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r:.40} is no number") from None
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{text!r:.40} is not above zero")
    return value
