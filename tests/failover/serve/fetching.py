"""Pages of a running program."""

from urllib.request import urlopen


def fetch(port: int, path: str = "/metrics") -> str:
    """Ask for a page."""
    with urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        text: str = answer.read().decode()
    return text
