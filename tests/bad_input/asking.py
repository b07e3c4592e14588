"""Ask a broker over a plain socket, one request at a time, whatever the request may hold."""

import socket
import struct
from typing import Any

from tests.clusters import RunningCluster
from wire.headers import RequestHeader, decode_response, encode_request
from wire.schema import Request

ANSWER_S = 20.0


def connect(cluster: RunningCluster) -> socket.socket:
    """Return a connection to the first broker."""
    return socket.create_connection(cluster.addresses[0], timeout=ANSWER_S)


def ask(cluster: RunningCluster, request: Request[Any], version: int | None = None) -> Any:
    """Return the answer. Raises ConnectionError when the broker hangs up instead."""
    version = request.VERSIONS.stop - 1 if version is None else version
    header = RequestHeader(
        api_key=request.API_KEY, api_version=version, correlation_id=1, client_id="odd"
    )
    with connect(cluster) as connection:
        connection.sendall(b"".join(map(bytes, encode_request(header, request))))
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        return decode_response(request.RESPONSE, _exactly(connection, size), version)


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        chunk = connection.recv(count - len(received))
        if not chunk:
            raise ConnectionError("the broker hung up")
        received += chunk
    return received
