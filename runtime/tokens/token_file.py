"""A token in a file that somebody else renews, as Kubernetes and sidecars do."""

from pathlib import Path

from runtime.process.clock import wall_ms
from runtime.tokens.answers import MOST_ANSWER_BYTES, token_of_text
from wire.net.errors import TokenUnavailable
from wire.net.secret_file import BadSecretFile, read_secret_bytes
from wire.net.security import Token
from wire.values import frozen


@frozen
class TokenFile:
    """Reads the file at each login and at each renewal."""

    key: str
    """The setting that names it, for complaints."""
    file: Path

    @property
    def origin(self) -> str:
        """Return the setting and the file."""
        return f"{self.key}: {self.file}"

    def token(self) -> Token:
        """Return what the file holds now. Raises TokenUnavailable."""
        try:
            return token_of_text(read_secret_bytes(self.file, MOST_ANSWER_BYTES), wall_ms())
        except BadSecretFile as problem:
            raise TokenUnavailable(f"{self.origin}: {problem}") from None
        except TokenUnavailable as problem:
            raise TokenUnavailable(f"{self.origin}: {problem}") from None

    def forget(self, token: Token) -> None:
        """Do nothing: the file is read each time."""
