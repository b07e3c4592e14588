"""A login by tickets of Kerberos: GSSAPI (RFC 4752). It is the one door of the package gssapi.

    client   token ─►                       until both sides have shown who they are
    server        ◄─ token
    client   (empty) ─►                     if it had the last word
    server        ◄─ wrapped: the layers that it offers, and how much it takes
    client   wrapped: no layer ─►           TLS encrypts, or nobody

All of it blocks: tickets come from a KDC, within the time-outs of the library of Kerberos.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol, Self

from wire.net.errors import TokenUnavailable
from wire.net.security import KerberosSasl

NO_LAYER: Final = 1
_OFFER_BYTES: Final = 4
CHOICE: Final = bytes([NO_LAYER, 0, 0, 0])
"""No security layer, and so nothing that we would take of one."""


class SecurityContext(Protocol):
    """What is used of a security context."""

    @property
    def complete(self) -> bool:
        """Tell whether both sides have shown who they are."""

    def step(self, token: bytes | None = None) -> bytes | None:
        """Take the other side's token, and return our next one."""

    def wrap(self, message: bytes, encrypt: bool) -> Any:  # noqa: ANN401, FBT001 - as it is there
        """Sign a message."""

    def unwrap(self, message: bytes) -> Any:  # noqa: ANN401 - as it is there
        """Verify a message."""


class KerberosRefused(Exception):
    """The broker is not who it has to be, or wants what we do not speak."""


def is_available() -> bool:
    """Say whether the package is installed: it is an extra."""
    return find_spec("gssapi") is not None


class KerberosExchange:
    """One exchange with one broker, from the first token to the choice of a layer."""

    def __init__(self, context: SecurityContext, first: bytes, fault: type[Exception]) -> None:
        """Go on with a context whose first token is to be sent, and which raises such faults."""
        self.first = first
        self._context = context
        self._fault = fault
        self._has_chosen = False

    @classmethod
    def begin(cls, sasl: KerberosSasl, host: str) -> Self:
        """Get a ticket for the broker on a host. Raises TokenUnavailable."""
        gssapi = import_module("gssapi")
        fault: type[Exception] = gssapi.exceptions.GSSError
        needed = gssapi.RequirementFlag
        try:
            service = f"{sasl.service_name}@{host}"
            name = gssapi.Name(service, gssapi.NameType.hostbased_service)
            context = gssapi.SecurityContext(
                name=name,
                creds=_credentials(gssapi, sasl),
                usage="initiate",
                flags=needed.mutual_authentication | needed.integrity,
            )
            first = context.step()
        except fault as problem:
            why = _words(problem)
            raise TokenUnavailable(f"{sasl.key}: no ticket for {service}: {why}") from None
        return cls(context, first or b"", fault)

    def answer(self, token: bytes) -> bytes | None:
        """Return what to send next, None once the broker has nothing more to say.

        Raises KerberosRefused.
        """
        try:
            if not self._context.complete:
                return self._context.step(token) or b""
            if self._has_chosen:
                return None
            offer = self._context.unwrap(token).message
        except self._fault as problem:
            raise KerberosRefused(_words(problem)) from None
        if len(offer) != _OFFER_BYTES or not offer[0] & NO_LAYER:
            raise KerberosRefused("the broker wants a security layer of GSSAPI; use TLS instead")
        self._has_chosen = True
        chosen: bytes = self._context.wrap(CHOICE, False).message  # noqa: FBT003 - gssapi's own
        return chosen


def _credentials(gssapi: Any, sasl: KerberosSasl) -> object:  # noqa: ANN401 - the package
    """Return those of the keytab, which are asked for anew in time; else what the user has."""
    name = None
    if sasl.principal is not None:
        name = gssapi.Name(sasl.principal, gssapi.NameType.kerberos_principal)
    if sasl.keytab is None:
        return None if name is None else gssapi.Credentials(name=name, usage="initiate")
    store = {"client_keytab": f"FILE:{sasl.keytab}", "ccache": f"MEMORY:{sasl.keytab}"}
    return gssapi.Credentials(name=name, usage="initiate", store=store)


def _words(fault: Exception) -> str:
    """Return what the library says, in one line: names of principals, realms and files."""
    return " ".join(str(fault).split())
