"""The words that say how programs log, apart from logging, which is not loaded for `--help`."""

from typing import Final

FORMS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
