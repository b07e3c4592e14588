"""The option that names a set of topics, in commands that messages tell people to run. Pure.

With sets in the file a command that takes `--set` is refused without it. So each message that tells
of such a command has `set_option` inside the command's backticks, which a test holds.
"""


def set_option(topic_set: str | None) -> str:
    """Return the option for a set, with a space before it; nothing where the file has no sets."""
    return "" if topic_set is None else f" --set {topic_set}"
