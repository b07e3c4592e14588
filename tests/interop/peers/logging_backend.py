"""The log settings of a Java peer: one line for each event, on standard output."""

from pathlib import Path
from typing import Final

_RELOAD4J: Final = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
log4j.logger.org.apache.kafka.clients=WARN
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.org.reflections=ERROR
"""
_LOG4J2: Final = """\
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
logger.clients.name=org.apache.kafka.clients
logger.clients.level=WARN
"""
_QUIET: Final = ("rootLogger=INFO", "rootLogger=ERROR"), ("level=INFO", "level=ERROR")


def logging_options(version: str, folder: Path, *, is_quiet: bool = False) -> list[str]:
    """Write the settings for that Kafka into `folder` and return the options of `java`.

    `is_quiet` leaves only errors, for tools whose output is read.
    """
    is_log4j_2 = not version.startswith("3.")
    text = _LOG4J2 if is_log4j_2 else _RELOAD4J
    for told, kept in _QUIET if is_quiet else ():
        text = text.replace(told, kept)
    path = folder / f"log4j-{'quiet' if is_quiet else 'told'}.properties"
    path.write_text(text)
    if is_log4j_2:
        return [f"-Dlog4j2.configurationFile={path.resolve().as_uri()}"]
    return [f"-Dlog4j.configuration={path.resolve().as_uri()}"]
