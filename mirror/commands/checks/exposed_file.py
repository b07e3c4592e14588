"""Whether the configuration itself holds secrets that others may read."""

from collections.abc import Iterator

from runtime.configuration.config import Configuration
from wire.net.secret_file import BadSecretFile, exposure_of


def told_exposed_file(configuration: Configuration) -> Iterator[str]:
    """Yield a warning where a file with secrets in it is open to every user of this machine."""
    if not configuration.literal_secrets:
        return
    try:
        exposure = exposure_of(configuration.file)
    except BadSecretFile:
        return  # it is gone since it was read, or another user's; nobody reads it then
    if exposure is not None:
        named = ", ".join(configuration.literal_secrets)
        yield f"warning: {configuration.file}: holds {named}, and {exposure}"
