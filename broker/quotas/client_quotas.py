"""What clients of this broker do, held against their quotas."""

import math
from typing import Final, TypeVar

from broker.quotas.entity import MUTATION_RATE
from broker.quotas.mutations import MutationQuota, TokenBucket
from broker.quotas.rate import WINDOW_MS, WINDOWS, SampledRate
from broker.quotas.table import Bucket, QuotaTable

MOST_BUCKETS: Final = 10_000
"""Of each way. A client names itself as it likes, so there may be as many as requests."""
LONGEST_NAME_CHARS: Final = 1_000
"""No quota is set for a longer client id. Those that begin alike share what a default allows: kept
whole, ten thousand of them would take hundreds of megabytes."""
_USER: Final = "User:"

K = TypeVar("K")
V = TypeVar("V")


class ClientQuotas:
    """The quotas of the cluster, and what each bucket has moved on this broker."""

    def __init__(self) -> None:
        self.table = QuotaTable()
        self._rates: dict[tuple[str, Bucket], SampledRate] = {}
        self._mutations: dict[Bucket, TokenBucket] = {}

    def throttle_ms(
        self, key: str, principal: str, client_id: str | None, size: float, now_ms: int
    ) -> int:
        """Count what a client has moved; return for how long it has to wait now, 0 mostly."""
        if self.table.is_empty:
            return 0
        found = self._limit(key, principal, client_id)
        if found is None:
            return 0
        bucket, limit = found
        rate = self._rate(key, bucket, now_ms)
        rate.record(size, now_ms)
        return rate.rest_ms(limit, now_ms)

    def mutations(
        self, principal: str, client_id: str | None, *, is_strict: bool, now_ms: int
    ) -> MutationQuota:
        """Return what a request of this client may change of the cluster now."""
        found = self._limit(MUTATION_RATE, principal, client_id)
        if found is None:
            return MutationQuota(None, math.inf, is_strict=is_strict, now_ms=now_ms)
        of, limit = found
        bucket = self._mutations.get(of)
        if bucket is None:
            if len(self._mutations) >= MOST_BUCKETS:
                rested = {name for name, one in self._mutations.items() if one.is_full(now_ms)}
                _make_room(self._mutations, rested)
            bucket = self._mutations[of] = TokenBucket(limit, now_ms)
        return MutationQuota(bucket, limit, is_strict=is_strict, now_ms=now_ms)

    def most_at_once(self, key: str, principal: str, client_id: str | None) -> float:
        """Return how many bytes a client may move in all windows together; infinity without one.

        More than that in one answer would be more than any pause makes good.
        """
        if self.table.is_empty:
            return math.inf
        found = self._limit(key, principal, client_id)
        return math.inf if found is None else found[1] * (WINDOWS - 1) * WINDOW_MS / 1_000

    def _limit(
        self, key: str, principal: str, client_id: str | None
    ) -> tuple[Bucket, float] | None:
        name = (client_id or "")[:LONGEST_NAME_CHARS]
        return self.table.limit(key, principal.removeprefix(_USER), name)

    def _rate(self, key: str, bucket: Bucket, now_ms: int) -> SampledRate:
        rate = self._rates.get((key, bucket))
        if rate is None:
            if len(self._rates) >= MOST_BUCKETS:
                idle = {name for name, rate in self._rates.items() if rate.is_idle(now_ms)}
                _make_room(self._rates, idle)
            rate = self._rates[key, bucket] = SampledRate()
        return rate


def _make_room(held: dict[K, V], resting: set[K]) -> None:
    """Forget those that rest, and of the others those that came first: half of all at least.

    So all are looked at once for every five thousand new names, not for each.
    """
    for name in resting:
        del held[name]
    for name in list(held)[: max(0, MOST_BUCKETS // 2 - len(resting))]:
        del held[name]
