"""The timeouts of requests."""


def timeout_s(timeout_ms: int) -> float:
    """Return a request's timeout in seconds; a negative one is none at all, as in Kafka."""
    return max(timeout_ms, 0) / 1000
