"""Bytes that TLS has encrypted, until a socket that never blocks has taken them."""

import socket
import ssl


class Ciphertext:
    """The outgoing side of an SSLObject over a socket."""

    __slots__ = ("_left", "_socket", "bio")

    def __init__(self, connected: socket.socket) -> None:
        """Begin with nothing; ``bio`` is for the SSLObject to write to."""
        self.bio = ssl.MemoryBIO()
        self._socket = connected
        self._left = memoryview(b"")

    def flush(self) -> bool:
        """Send what is there; return whether all of it went. Raises OSError."""
        while True:
            if not self._left:
                if not self.bio.pending:
                    return True
                self._left = memoryview(self.bio.read())
            try:
                sent = self._socket.send(self._left)
            except BlockingIOError:
                return False
            self._left = self._left[sent:]
