"""Pages of a running program."""

from urllib.request import Request, urlopen


def fetch(port: int, path: str = "/metrics", authorization: str = "") -> str:
    """Ask for a page."""
    headers = {"Authorization": authorization} if authorization else {}
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", headers=headers)) as answer:
        text: str = answer.read().decode()
    return text
