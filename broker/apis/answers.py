"""What a handler may give besides a plain response."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.log.results import FileSlice
from wire.schema import ApiMessage


class CloseConnection(Exception):
    """The protocol's only answer here is to end the connection; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """A response whose `records` are stand-ins for parts of files, in the order of `slices`."""

    message: ApiMessage
    slices: Sequence[FileSlice]
