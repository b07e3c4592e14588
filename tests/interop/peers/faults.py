"""Why a peer is not there: it could not be had, did not run, or did not come back."""


class PeerUnavailable(RuntimeError):
    """The peer cannot be had on this machine now: its artifacts, memory or disk are missing."""


class PeerFailed(RuntimeError):
    """The peer was started and did not come up, or ended by itself; its last words are told."""


class PeerLost(PeerFailed):
    """The peer had run and did not come back on its data, or did not end: something broke it."""


def why_not_run(fault: BaseException | None) -> PeerFailed | PeerUnavailable | None:
    """Return what kept a test from being run; None where the test itself failed, or nothing did.

    A peer that never came up says nothing about us. One that ran, met us, and does not come back
    may well do so for what we did.
    """
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    if isinstance(fault, PeerLost):
        return None
    return fault if isinstance(fault, PeerFailed | PeerUnavailable) else None
