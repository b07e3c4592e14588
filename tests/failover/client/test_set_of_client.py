"""The set of topics of a client: named, or known by the topics that it reads."""

from pathlib import Path

import pytest

from failover.client.set_of_client import configuration_of_set, require_one_name
from runtime.configuration.config import ConfigurationError, load
from runtime.configuration.topic_sets import NO_SETS
from tests.dc_yaml import dc_yaml, flow
from tests.with_sets import with_sets


@pytest.mark.parametrize(
    ("name", "topics", "found"),
    [
        ("payments", (), "payments"),
        ("payments", ("pay.in",), "payments"),
        ("default", (), "default"),
        (None, ("pay.in", "pay.out"), "payments"),
        (None, ("orders",), "default"),
    ],
)
def test_a_set_is_named_or_known_by_its_topics(
    tmp_path: Path, name: str | None, topics: tuple[str, ...], found: str
) -> None:
    whole = with_sets(tmp_path)
    assert configuration_of_set(whole, name, topics).topic_set == found
    of_set = whole.of_set("stock")
    assert configuration_of_set(of_set, None) is of_set


@pytest.mark.parametrize(
    ("name", "topics", "complaint"),
    [
        (
            None,
            ("pay.in", "orders"),
            "the topics are of several sets: a client takes topic_set=",
        ),
        (
            None,
            (),
            "topic_set is None: a client takes topic_set=NAME, one of default, ",
        ),
        ("pay", ("pay.in",), "topic_set is 'pay': a client takes"),
        ("stock", ("pay.in",), "pay.in is of the set payments, not of stock"),
    ],
)
def test_a_client_of_no_set_or_of_several_is_refused_by_name(
    tmp_path: Path, name: str | None, topics: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        configuration_of_set(with_sets(tmp_path), name, topics)


def test_without_sets_in_the_file_nobody_names_one(tmp_path: Path) -> None:
    whole = with_sets(tmp_path, NO_SETS)
    assert configuration_of_set(whole, None, ("pay.in", "orders")) is whole
    with pytest.raises(ConfigurationError, match="topic_set is 'payments': a client takes"):
        configuration_of_set(whole, "payments")


@pytest.mark.parametrize("topic", ["orders", "orders-eu"])
def test_a_topic_of_another_name_elsewhere_is_refused(tmp_path: Path, topic: str) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2", rename={"orders": "orders-eu"})))
    whole = load(file)
    require_one_name(whole, ["clicks"])
    told = r"orders is orders-eu on dc2 .*, and this client asks for " + topic
    with pytest.raises(ConfigurationError, match=told):
        require_one_name(whole, ["clicks", topic])
