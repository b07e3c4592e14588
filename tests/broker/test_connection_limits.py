"""Connections are limited in all, by address and by listener, and whoever leaves makes room."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.connection_limits import ConnectionLimits, OpenConnections, parse_overrides
from broker.listeners import Listener
from tests.broker.rig import batch, outcome, produce, serving

NOWHERE: Mapping[str, int] = MappingProxyType({})


def limited(
    in_all: int = 100,
    per_address: int = 100,
    of_address: Mapping[str, int] = NOWHERE,
    of_listener: Mapping[str, int] = NOWHERE,
) -> OpenConnections:
    return OpenConnections(
        ConnectionLimits(
            most_in_all=lambda: in_all,
            most_of=lambda address: of_address.get(address, per_address),
            of_listener=of_listener,
        )
    )


PLACES = st.tuples(st.sampled_from(["A", "B"]), st.sampled_from(["10.0.0.1", "10.0.0.2"]))


@given(st.lists(st.tuples(PLACES, st.booleans()), max_size=60))
def test_no_limit_is_ever_exceeded_and_nobody_is_refused_below_it(
    steps: list[tuple[tuple[str, str], bool]],
) -> None:
    counts = limited(6, 3, {"10.0.0.2": 4}, {"B": 2})
    held: list[tuple[str, str]] = []
    for place, leaves in steps:
        if leaves and place in held:
            held.remove(place)
            counts.closed(*place)
            continue
        listener, address = place
        fits = (
            len(held) < 6
            and (listener != "B" or sum(one[0] == "B" for one in held) < 2)
            and sum(one[1] == address for one in held) < (4 if address == "10.0.0.2" else 3)
        )
        assert (counts.why_not(*place) is None) is fits
        if fits:
            held.append(place)
            counts.opened(*place)
    for place in held:
        counts.closed(*place)
    assert not counts._by_address


def test_what_is_refused_is_said() -> None:
    counts = limited(0)
    assert counts.why_not("A", "10.0.0.1") == "0 connections are open"
    counts = limited(per_address=0)
    assert counts.why_not("A", "10.0.0.1") == "0 connections of 10.0.0.1 are open"
    counts = limited(of_listener={"A": 0})
    assert counts.why_not("A", "10.0.0.1") == "0 connections are open on A"


def test_overrides_name_addresses_of_both_kinds() -> None:
    assert parse_overrides("10.0.0.1:200, ::1:100,[::2]:3") == {
        "10.0.0.1": 200,
        "::1": 100,
        "::2": 3,
    }
    assert parse_overrides("") == {}


@pytest.mark.parametrize(
    "text", ["10.0.0.1", "10.0.0.1:", "10.0.0.1:many", "host:1", "10.0.0.1:-1"]
)
def test_an_override_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"ADDRESS:NUMBER|below zero"):
        parse_overrides(text)


async def test_one_connection_more_is_hung_up_on_and_another_listener_serves_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listeners = tuple(Listener(name=name, host="127.0.0.1", port=0) for name in ("PLAINTEXT", "B"))
    own = {"B": {"max.connections": 1}}
    settings = {"listeners": listeners, "listener_settings": own, "max_connections_per_ip": 3}
    async with (
        serving(tmp_path, **settings) as rig,
        rig.connect("B") as first,
        rig.connect() as second,
    ):
        for client in (first, second):
            assert outcome(await client.ask(produce(batch(b"a"))))[0] == 0
        async with rig.connect("B") as refused:
            await refused.wait_closed()
        async with rig.connect() as third:
            assert outcome(await third.ask(produce(batch(b"a"))))[0] == 0
            async with rig.connect() as refused:
                await refused.wait_closed()
            # By now nobody waits for a restart to let one more in.
            rig.node.dynamic.set_default_broker({"max.connections.per.ip": "4"})
            async with rig.connect() as fourth:
                assert outcome(await fourth.ask(produce(batch(b"a"))))[0] == 0
    assert "1 connections are open on B" in caplog.text
    assert "3 connections of 127.0.0.1 are open" in caplog.text
