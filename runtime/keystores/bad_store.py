"""What is wrong with a store, and what to do about one of another form."""

from pathlib import Path


class BadStore(ValueError):
    """The bytes are no store that can be used; the text says why, and quotes none of them."""


def how_to_convert(file: str) -> str:
    """Return the command that makes PKCS12 of another store."""
    made = str(Path(file).with_suffix(".p12"))
    made = f"{file}.p12" if made == file else made
    return (
        f"`keytool -importkeystore -srckeystore {file} -destkeystore {made} -deststoretype PKCS12`"
    )
