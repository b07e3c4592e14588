"""Which files may hold a secret, what is read of them, and when that is said."""

import logging
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wire.net import secret_file
from wire.net.secret_file import (
    MOST_BYTES,
    BadSecretFile,
    FileSecret,
    exposure_of,
    make_own_secret,
    read_own_secret,
    read_secret,
    read_secret_bytes,
)

SECRET = "swordfish"  # noqa: S105


def nothing(_: Path) -> None:
    """Leave the file away."""


def loop(file: Path) -> None:
    file.symlink_to(file.name)


def huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (nothing, "No such file or directory"),
        (loop, "Too many levels of symbolic links"),
        (lambda file: file.mkdir(), "is a folder"),
        (os.mkfifo, "is no ordinary file, to be read again"),
        (lambda file: file.write_bytes(b""), "is empty"),
        (lambda file: file.write_bytes(b"\r\n\n"), "is empty"),
        (lambda file: file.write_bytes(b"a\0b"), "holds the character NUL"),
        (lambda file: file.write_bytes(b"swordfish\xff"), "is not UTF-8 text"),
        (lambda file: file.write_bytes(b"x" * (MOST_BYTES + 1)), "is larger than 65536 bytes"),
        (huge, "is larger than 65536 bytes"),
    ],
    ids=["away", "loop", "folder", "pipe", "empty", "lines", "nul", "latin", "long", "huge"],
)
def test_a_file_that_cannot_be_used_is_refused_for_a_reason(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    file = tmp_path / "secret"
    make(file)
    with pytest.raises(BadSecretFile) as caught:
        read_secret(file)
    assert str(caught.value) == why


def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read everything
    with pytest.raises(BadSecretFile, match=r"^Permission denied$"):
        read_secret_bytes(tmp_path)


@pytest.mark.parametrize("content", [b"swordfish", b"swordfish\n", b"swordfish\r\n\n"])
def test_ends_of_lines_behind_a_secret_are_none_of_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    assert read_secret(file) == SECRET


@pytest.mark.parametrize(
    ("mode", "what"), [(0o600, None), (0o640, None), (0o604, "read"), (0o606, "write")]
)
def test_a_file_is_open_to_strangers_where_its_mode_says_so(
    tmp_path: Path, mode: int, what: str | None
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(mode)
    told = what and f"every user of this machine may {what} it: `chmod o= {file}`"
    assert exposure_of(file) == told


def test_a_file_of_another_user_is_one_that_he_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    make_own_secret(file)
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(secret_file, "ROOT", -1)  # the tests may run as root
    assert exposure_of(file) == f"it belongs to user {owner}, who may put anything there"
    with pytest.raises(BadSecretFile, match=f"belongs to user {owner}"):
        read_own_secret(file)


def test_what_is_read_of_our_own_secret_is_the_file_that_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody puts another file in its place between the look and the reading."""
    file, other = tmp_path / "own", tmp_path / "other"
    make_own_secret(file)
    made = read_own_secret(file)
    other.write_text("of somebody else")
    look = os.fstat

    def swap(descriptor: int) -> os.stat_result:
        if other.exists():
            other.replace(file)
        return look(descriptor)

    monkeypatch.setattr(os, "fstat", swap)
    assert read_own_secret(file) == made


def test_a_secret_of_our_own_is_made_once_and_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / "own"
    make_own_secret(file)
    assert file.stat().st_mode & 0o777 == 0o600
    made = read_own_secret(file)
    assert len(made) > 40
    make_own_secret(file)
    assert read_own_secret(file) == made
    assert [one.name for one in tmp_path.iterdir()] == ["own"]


@pytest.mark.parametrize("mode", [0o604, 0o666])
def test_a_secret_of_our_own_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "own"
    make_own_secret(file)
    file.chmod(mode)
    with pytest.raises(BadSecretFile, match="every user of this machine may"):
        read_own_secret(file)


def test_a_link_in_the_way_of_a_new_secret_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "own").symlink_to(elsewhere)
    make_own_secret(tmp_path / "own")
    with pytest.raises(BadSecretFile, match="No such file"):
        read_own_secret(tmp_path / "own")
    assert not elsewhere.exists()


@pytest.fixture
def _files_are_our_own() -> Iterator[None]:
    mask = os.umask(0o077)
    yield
    os.umask(mask)


@pytest.mark.usefixtures("_files_are_our_own")
def test_a_secret_is_read_again_and_its_last_value_holds_while_the_file_cannot_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    secret = FileSecret(file=file, last_known="first", key="sasl.password_file")
    file.write_text("second\n")
    assert secret.read() == "second"
    file.write_text("")
    with caplog.at_level(logging.WARNING):
        assert [secret.read(), secret.read()] == ["second"] * 2, "not the one before it"
        file.unlink()
        assert secret.find() is None
        file.write_text("third")
        assert secret.read() == "third"
        file.write_text("")
        assert secret.find() is None
    empty = f"sasl.password_file: {file}: is empty; what it held last is used"
    away = empty.replace("is empty", "No such file or directory")
    assert caplog.messages == [empty, away, empty], "once each time"


def test_a_secret_goes_to_other_processes_and_shows_itself_to_nobody(tmp_path: Path) -> None:
    secret = FileSecret(file=tmp_path / "secret", last_known=SECRET, key="k")
    assert pickle.loads(pickle.dumps(secret)).read() == SECRET  # noqa: S301
    assert SECRET not in repr(secret)


def test_a_mark_that_editors_of_windows_put_before_a_secret_is_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"\xef\xbb\xbf" + f"{SECRET}\r\n".encode())
    assert read_secret(file) == SECRET
    file.write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(BadSecretFile, match="is empty"):
        read_secret(file)


def test_a_file_that_is_replaced_by_one_that_all_may_read_is_named_once_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    secret = FileSecret(file=file, last_known="", key="sasl.password_file")
    for mode in (0o600, 0o644, 0o644, 0o640, 0o606):
        file.unlink(missing_ok=True)
        file.write_text(SECRET)
        file.chmod(mode)
        for _ in range(2):
            assert secret.read() == SECRET
    said = f"sasl.password_file: {file}: every user of this machine may"
    assert [line.partition(" it: ")[0] for line in caplog.messages] == [
        f"{said} read",
        f"{said} write",
    ]
    assert SECRET not in caplog.text


def test_a_link_is_judged_by_what_it_leads_to(tmp_path: Path) -> None:
    """As Kubernetes mounts secrets: what changes is the link."""
    for name, mode in (("old", 0o600), ("new", 0o644)):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
    link = tmp_path / "secret"
    link.symlink_to("old")
    secret = FileSecret(file=link, last_known="")
    assert (secret.read(), exposure_of(link)) == ("old", None)
    link.unlink()
    link.symlink_to("new")
    assert secret.read() == "new"
    assert "every user of this machine may read it" in (exposure_of(link) or "")
