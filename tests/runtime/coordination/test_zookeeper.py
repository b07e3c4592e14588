"""The door to ZooKeeper, against a real server."""

import socket
import subprocess
import sys
import textwrap
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from runtime.coordination.zookeeper import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionState,
    SetData,
    ZooKeeperUnreachable,
    open_zookeeper,
)
from runtime.process import zookeeper_server
from runtime.process.ports import free_port
from runtime.process.zookeeper_server import ZooKeeperServerFailed, run_zookeeper

pytestmark = pytest.mark.integration


async def test_nodes_are_made_read_changed_and_deleted_by_version(empty_zookeeper: str) -> None:
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4000) as zookeeper:
        assert await zookeeper.get("/a") is None
        assert await zookeeper.children("/a") is None
        await zookeeper.create("/a/b", b"1", make_parents=True)
        with pytest.raises(NodeExists, match="/a/b"):
            await zookeeper.create("/a/b")
        with pytest.raises(NoNode, match="/x/y"):
            await zookeeper.create("/x/y")
        assert await zookeeper.set("/a/b", b"2", version=0) == 1
        with pytest.raises(BadVersion, match="/a/b"):
            await zookeeper.set("/a/b", b"3", version=0)
        node = await zookeeper.get("/a/b")
        assert node is not None
        assert (node.data, node.version, node.ephemeral_owner) == (b"2", 1, 0)
        await zookeeper.create("/a/e", ephemeral=True)
        ephemeral = await zookeeper.get("/a/e")
        assert ephemeral is not None
        assert ephemeral.ephemeral_owner == zookeeper.session_id
        with pytest.raises(NotEmpty, match="/a"):
            await zookeeper.delete("/a")
        await zookeeper.delete("/a", recursive=True)
        assert not await zookeeper.exists("/a")


async def test_a_transaction_does_all_or_nothing(empty_zookeeper: str) -> None:
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4000) as zookeeper:
        await zookeeper.create("/a", b"1")
        with pytest.raises(NodeExists, match="/a"):
            await zookeeper.transaction([SetData(path="/a", data=b"2"), Create(path="/a")])
        with pytest.raises(BadVersion, match="/a"):
            await zookeeper.transaction([Check(path="/a", version=7), Delete(path="/a")])
        node = await zookeeper.get("/a")
        assert node is not None
        assert node.data == b"1"
        await zookeeper.transaction([Create(path="/b"), Delete(path="/a", version=0)])
        assert await zookeeper.children("/") == ["b", "zookeeper"]


async def test_watches_give_the_present_value_and_then_each_change(empty_zookeeper: str) -> None:
    async with (
        open_zookeeper(empty_zookeeper, session_timeout_ms=4000) as zookeeper,
        zookeeper.watch_data("/a") as data,
        zookeeper.watch_children("/a") as children,
    ):
        with trio.fail_after(60):
            assert await data.receive() is None
            assert await children.receive() is None
            await zookeeper.create("/a", b"1")
            node = await data.receive()
            assert node is not None
            assert node.data == b"1"
            assert await children.receive() == []
            await zookeeper.create("/a/b")
            assert await children.receive() == ["b"]
            await zookeeper.delete("/a", recursive=True)
            assert await data.receive() is None


async def test_a_session_that_is_cut_off_for_its_timeout_is_lost(tmp_path: Path) -> None:
    async with (
        run_zookeeper(tmp_path) as server,
        open_zookeeper(server.address, session_timeout_ms=2000) as zookeeper,
        zookeeper.watch_state() as states,
    ):
        with trio.fail_after(60):
            assert await states.receive() is SessionState.CONNECTED
            server.process.kill()
            assert await states.receive() is SessionState.SUSPENDED
            assert await states.receive() is SessionState.LOST


async def test_watches_and_nodes_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    port = free_port()
    first = AsyncExitStack()
    server = await first.enter_async_context(run_zookeeper(tmp_path, port=port))
    async with first, open_zookeeper(server.address, session_timeout_ms=20000) as zookeeper:
        await zookeeper.create("/a", b"1")
        async with zookeeper.watch_data("/a") as data, zookeeper.watch_state() as states:
            with trio.fail_after(60):
                await data.receive()
                await states.receive()
                server.process.kill()
                await server.process.wait()
                await first.aclose()
                assert await states.receive() is SessionState.SUSPENDED
                async with run_zookeeper(tmp_path, port=port):
                    # A server that takes its time finds the session over: a new one does as well.
                    while await states.receive() is not SessionState.CONNECTED:
                        pass
                    await zookeeper.set("/a", b"2")
                    node = await data.receive()
                    while node is None or node.data != b"2":
                        node = await data.receive()


@pytest.mark.parametrize(
    ("asked_ms", "granted_ms"), [(500, 2_000), (7_000, 7_000), (90_000, 60_000)]
)
async def test_a_session_is_as_long_as_the_server_grants(
    empty_zookeeper: str, asked_ms: int, granted_ms: int
) -> None:
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=asked_ms) as zookeeper:
        await zookeeper.sync()
        assert zookeeper.session_timeout_ms == granted_ms


async def test_no_server_is_an_error_that_names_the_address() -> None:
    port = free_port()
    with pytest.raises(ZooKeeperUnreachable, match=f"127.0.0.1:{port} did not answer within 0.5 s"):
        async with open_zookeeper(
            f"127.0.0.1:{port}", session_timeout_ms=4000, start_timeout_ms=500
        ):
            pass


async def _close_after(held: socket.socket, seconds: float) -> None:
    await trio.sleep(seconds)
    held.close()


async def test_a_port_that_is_being_freed_is_waited_for_and_one_in_use_is_named_as_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    held = socket.create_server(("127.0.0.1", 0))  # as a server that was killed and still ends
    nursery.start_soon(_close_after, held, 0.3)
    async with run_zookeeper(tmp_path / "one", port=held.getsockname()[1]) as server:
        monkeypatch.setattr(zookeeper_server, "FREED_WITHIN_S", 0.2)
        with pytest.raises(ZooKeeperServerFailed, match=f"cannot listen on {server.address}"):
            async with run_zookeeper(tmp_path / "two", port=server.port):
                pass
        with pytest.raises(ZooKeeperServerFailed, match="one: in use by another ZooKeeper server"):
            async with run_zookeeper(tmp_path / "one"):
                pass
    (tmp_path / "file").write_text("")
    with pytest.raises(ZooKeeperServerFailed, match=f"{tmp_path}/file"):
        async with run_zookeeper(tmp_path / "file"):
            pass


async def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys, trio
        from pathlib import Path
        from runtime.process.zookeeper_server import run_zookeeper

        async def main() -> None:
            async with run_zookeeper(Path(sys.argv[1])) as server:
                print(server.port, flush=True)
                await trio.sleep_forever()

        trio.run(main)
        """
    )
    parent = subprocess.Popen(  # noqa: ASYNC220 - a killed parent is the point, not a trio child
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        port = int(await trio.to_thread.run_sync(parent.stdout.readline))
        parent.kill()
    with trio.fail_after(60):
        while True:
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                break
            await stream.aclose()
            await trio.sleep(0.05)


async def test_a_server_that_has_lost_its_data_is_connected_to_again(tmp_path: Path) -> None:
    """A server refuses clients that have seen a later write than it has."""
    port = free_port()
    first = AsyncExitStack()
    server = await first.enter_async_context(run_zookeeper(tmp_path / "old", port=port))
    async with first, open_zookeeper(server.address, session_timeout_ms=4_000) as zookeeper:
        await zookeeper.create("/a", b"1")
        for _ in range(50):
            await zookeeper.set("/a", b"1")
        with trio.fail_after(60):
            server.process.kill()
            await server.process.wait()
            await first.aclose()
            async with run_zookeeper(tmp_path / "empty", port=port):
                async with zookeeper.watch_state() as states:
                    while await states.receive() is not SessionState.LOST:
                        pass
                with trio.fail_after(15):
                    await zookeeper.wait_connected()
                assert await zookeeper.get("/a") is None
