"""The keys of a cluster's `sasl` that say where tokens come from."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from runtime.configuration.usable_keys import require_usable_ca
from runtime.tokens.https_address import parse_https
from runtime.tokens.token_command import TokenCommand
from runtime.tokens.token_endpoint import TokenEndpoint
from runtime.tokens.token_file import TokenFile
from wire.net.security import TokenSource

SOURCES: Final = ("token_file", "token_command", "token_endpoint")
OF_ENDPOINT: Final = (
    "client_id",
    "client_secret",
    "client_secret_file",
    "scope",
    "audience",
    "token_endpoint_ca",
)

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sasl.token_file": "With OAUTHBEARER: a file that holds the token, or a JSON object with "
        "`access_token`; read at each login and renewal.",
        "sasl.token_command": "With OAUTHBEARER: a command and its arguments. It prints the token, "
        "or a JSON object with `access_token` and `expires_in`, within 15 s.",
        "sasl.token_endpoint": "With OAUTHBEARER: the issuer's address, `https://...`, that gives "
        "tokens for client credentials (RFC 6749, 4.4).",
        "sasl.token_endpoint_ca": "The authorities of the issuer's certificate, as PEM. Without it "
        "the system's.",
        "sasl.client_id": "The client's id at the issuer.",
        "sasl.client_secret": "The client's secret at the issuer.",
        "sasl.client_secret_file": "A file that holds `client_secret`; read at each request.",
        "sasl.scope": "The scope to ask for, where the issuer wants one.",
        "sasl.audience": "The audience to ask for, where the issuer wants one.",
    }
)
"""What each key is for."""


def read_token_source(sasl: Section) -> TokenSource:
    """Take the keys; raises ConfigurationError."""
    named = [key for key in SOURCES if key in sasl.values]
    if not named:
        raise sasl.error("mechanism", f"OAUTHBEARER needs one of {', '.join(SOURCES)}")
    if len(named) > 1:
        raise sasl.error(named[1], f"stands beside {named[0]!r}: one of them is enough")
    file, command = sasl.file_path("token_file", is_secret=True), sasl.strings("token_command", ())
    sasl.require(*named)
    endpoint = _endpoint(sasl)
    if endpoint is not None:
        return endpoint
    for key in OF_ENDPOINT:
        if key in sasl.values:
            raise sasl.error(key, "is of no use without token_endpoint")
    if file is not None:
        return TokenFile(key=f"{sasl.path}.token_file", file=file)
    if not command or any(not part or "\0" in part for part in command[:1]):
        raise sasl.error("token_command", "names no command")
    return TokenCommand(key=f"{sasl.path}.token_command", command=command)


def _endpoint(sasl: Section) -> TokenEndpoint | None:
    url, client_id = sasl.optional_string("token_endpoint"), sasl.optional_string("client_id")
    secret = sasl.secret("client_secret", required=False)
    scope, audience = sasl.optional_string("scope"), sasl.optional_string("audience")
    ca = sasl.file_path("token_endpoint_ca")
    if url is None:
        return None
    sasl.require("client_secret", "client_secret_file", "token_endpoint_ca")
    if client_id is None or secret is None:
        raise sasl.missing("client_id" if client_id is None else "client_secret")
    require_usable_ca(sasl, "token_endpoint_ca", ca)
    try:
        address = parse_https(url)
    except ValueError as problem:
        raise sasl.error("token_endpoint", str(problem)) from None
    return TokenEndpoint(
        key=f"{sasl.path}.token_endpoint",
        address=address,
        client_id=client_id,
        client_secret=secret,
        scope=scope,
        audience=audience,
        ca=ca,
    )
