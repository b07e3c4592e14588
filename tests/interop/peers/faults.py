"""Why a peer is not there: it could not be had, or it did not run."""


class PeerUnavailable(RuntimeError):
    """The peer cannot be had on this machine now: its artifacts, memory or disk are missing."""


class PeerFailed(RuntimeError):
    """The peer was started and did not come up, or ended by itself; its last words are told."""
