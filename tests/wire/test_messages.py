"""The table of messages, and what all of them have in common."""

from pathlib import Path

import wire.messages
from wire.errors import ErrorCode, describe
from wire.messages.table import APIS, name_of


def test_a_request_and_its_response_agree() -> None:
    for api_key, request in APIS.items():
        response = request.RESPONSE
        assert request.API_KEY == response.API_KEY == api_key
        assert request.VERSIONS == response.VERSIONS
        assert request.FLEXIBLE_SINCE == response.FLEXIBLE_SINCE
        assert request.__module__ == response.__module__


def test_every_file_of_the_package_is_in_the_table() -> None:
    files = {file.stem for file in Path(str(wire.messages.__file__)).parent.glob("*.py")}

    assert files - {"__init__", "table"} == {
        request.__module__.rpartition(".")[2] for request in APIS.values()
    }


def test_an_api_has_a_name_even_if_it_is_unknown() -> None:
    assert name_of(12) == "Heartbeat"
    assert name_of(999) == "API 999"


def test_an_error_code_has_a_name_even_if_it_is_unknown() -> None:
    assert describe(16) == "NOT_COORDINATOR (16)"
    assert describe(999) == "error 999"


def test_only_what_may_succeed_later_is_retriable() -> None:
    assert ErrorCode.NOT_ENOUGH_REPLICAS.retriable
    assert not ErrorCode.NONE.retriable
