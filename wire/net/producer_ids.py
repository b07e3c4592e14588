"""Producer ids, which a cluster gives to idempotent producers and to nobody twice."""

from wire.errors import ErrorCode
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.net.cluster import Cluster
from wire.net.errors import AuthenticationFailed, BrokerUnreachable, NetworkFault
from wire.net.retries import code_of


class NoProducerId(NetworkFault):
    """No broker gave a producer id; the message says what each answered."""


async def new_producer_id(cluster: Cluster) -> tuple[int, int]:
    """Return a producer id that nobody has, and its epoch; raises NetworkFault.

    Any broker is asked, then each: one that is cut off from its controller has no ids to give.
    """
    request = InitProducerIdRequest(transaction_timeout_ms=60_000)
    refusals = []
    for node in (None, *(await cluster.metadata(())).brokers):
        try:
            answer = await cluster.request(request, node=node)
        except BrokerUnreachable as fault:
            if node is None or isinstance(fault, AuthenticationFailed):
                raise
            refusals.append(str(fault))
            continue
        code = code_of(answer.error_code)
        if code is ErrorCode.NONE:
            return answer.producer_id, answer.producer_epoch
        refusals.append(code.name)
    raise NoProducerId(f"InitProducerId: {', '.join(refusals)}")
