"""A password that changes in its file reaches librdkafka, once, and an application's own stays."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from failover.client import password_watch
from failover.client.password_watch import LOOK_S, PasswordWatch
from runtime.configuration.config import ClusterConfig
from wire.net.secret_file import FileSecret
from wire.net.security import Mechanism, Sasl, Secret, Security


@dataclass(slots=True)
class Told:
    """A client that keeps what it is told."""

    credentials: list[tuple[str, str]] = field(default_factory=list)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        self.credentials.append((username, password))


@dataclass(slots=True)
class Time:
    now: float = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(password_watch, "monotonic", time.monotonic)
    return time


def cluster(password: Secret | None) -> ClusterConfig:
    sasl = None
    if password is not None:
        sasl = Sasl(mechanism=Mechanism.SCRAM_SHA_256, username="app", password=password)
    return ClusterConfig(name="dc1", bootstrap=(("127.0.0.1", 1),), security=Security(sasl=sasl))


def watch(at: ClusterConfig, **own: Any) -> PasswordWatch:
    own = {name.replace("_", "."): value for name, value in own.items()}
    return PasswordWatch(at, own, at.client_settings(own))


def test_a_client_is_told_once_of_a_password_that_has_changed(tmp_path: Path, time: Time) -> None:
    file, told = tmp_path / "password", Told()
    file.write_text("old")
    looking = watch(cluster(FileSecret(file=file, last_known="old")))
    for password in ("old", "new", "new", "newer", ""):
        file.write_text(password)
        looking.look(told)  # too soon
        time.now += LOOK_S
        looking.look(told)
    assert told.credentials == [("app", "new"), ("app", "newer")]


@pytest.mark.parametrize("own", [{"sasl_password": "mine"}, {"sasl_username": "me"}])
def test_what_an_application_has_named_stays(
    tmp_path: Path, time: Time, own: dict[str, str]
) -> None:
    file, told = tmp_path / "password", Told()
    looking = watch(cluster(FileSecret(file=file, last_known="old")), **own)
    file.write_text("new")
    time.now += LOOK_S
    looking.look(told)
    assert told.credentials == []


@pytest.mark.parametrize("password", [None, "fixed"])
def test_without_a_file_there_is_nothing_to_look_at(time: Time, password: str | None) -> None:
    told, looking = Told(), watch(cluster(password))
    time.now += LOOK_S
    looking.look(told)
    assert told.credentials == []


@pytest.mark.parametrize("kind", [Consumer, Producer])
def test_clients_of_the_library_take_it(tmp_path: Path, time: Time, kind: Any) -> None:
    file = tmp_path / "password"
    at = cluster(FileSecret(file=file, last_known="old"))
    client = kind({**at.client_settings(), "group.id": "g", "log_level": 0})
    looking = watch(at)
    file.write_text("new")
    time.now += LOOK_S
    looking.look(client)
    if kind is Consumer:
        client.close()
