"""Backups are restored: from a dump, and to a point in time just before a mistake."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from recollect.postgres.migrate import migrate
from recollect.settings import Settings
from recollect_local.valkey import LocalValkey
from tests.support.clusters import Cluster
from tests.support.gateway import RunningGateway, eventually, serving
from tests.support.workers import working
from tests.verify.drills import calling, embedded, graph_of, issued_key, on

QUESTION = "which insects make honey"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, because paths of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        yield Path(folder)


@pytest.fixture
async def original(folder: Path) -> AsyncIterator[Cluster]:
    """A server that archives its write-ahead log."""
    archive = Cluster(folder / "original").own_folder("archive")
    command = f"test ! -f {archive}/%f && cp %p {archive}/%f"
    server = Cluster(folder / "original", archive_mode="on", archive_command=command)
    server.start()
    await migrate(server.url())
    yield server
    server.stop()


async def remember(gateway: RunningGateway, key: str, *texts: str) -> None:
    async with calling(gateway, key) as load:
        await load.tool("remember", {"items": [{"text": text, "about": ["Bees"]} for text in texts]})


async def recall(gateway: RunningGateway, key: str) -> list[str]:
    async with calling(gateway, key) as load:
        return [memory["text"] for memory in (await load.tool("recall", {"query": QUESTION}))["memories"]]


async def test_a_dump_restored_into_a_new_server_has_the_same_graph(
    settings: Settings, folder: Path, original: Cluster
) -> None:
    """Redis is lost, too. Keys stay valid, vectors exist, roles and rights are the same."""
    own = on(settings, original)
    key = await issued_key(own)
    with serving(own) as gateway, working(own, folder):
        await remember(gateway, key, "Bees make honey", "Wasps make paper")
        await eventually(lambda: embedded(own))
    # The worker has ended: it may store what surrounds a passage after its vector, and recall finds more by it.
    with serving(own) as gateway:
        before, found = await graph_of(gateway, key), await recall(gateway, key)
    dump = original.own_folder("dump")
    server = ("-h", original.host, "-U", "postgres")
    original.run("pg_dumpall", *server, "--roles-only", "-f", f"{dump}/roles.sql")
    original.run("pg_dump", *server, "--format=custom", "-f", f"{dump}/recollect.dump", "recollect")
    original.stop()

    restored = Cluster(folder / "restored")
    restored.start()
    valkey = LocalValkey(folder / "empty")
    valkey.start()
    try:
        server = ("-h", restored.host, "-U", "postgres")
        restored.run("psql", *server, "-d", "postgres", "-q", "-f", f"{dump}/roles.sql")
        again = ("--clean", "--if-exists", "--create", "--exit-on-error")
        restored.run("pg_restore", *server, "-d", "postgres", *again, f"{dump}/recollect.dump")
        assert await migrate(restored.url()) == []
        assert await restored.execute("SET ROLE recollect_app", "SELECT count(*) FROM recollect.nodes") == "0"
        with serving(on(settings, restored, redis_url=valkey.url)) as gateway:
            assert await graph_of(gateway, key) == before
            assert await recall(gateway, key) == found
            await remember(gateway, key, "Ants make hills")
    finally:
        valkey.stop()
        restored.stop()


async def test_a_server_is_restored_to_a_point_in_time_just_before_a_mistake(
    settings: Settings, folder: Path, original: Cluster
) -> None:
    own = on(settings, original)
    key = await issued_key(own)
    base = Cluster(folder / "base")
    with serving(own) as gateway:
        await remember(gateway, key, "Bees make honey")
        base.back_up(original.url())
        await remember(gateway, key, "Wasps make paper")  # After the backup: it is in the log alone.
        before = await graph_of(gateway, key)
        moment = await original.execute("SELECT clock_timestamp()")
        async with calling(gateway, key) as load:
            await load.tool("delete_graph", {"graph": "default"}, "/mcp/x/all")
        assert await graph_of(gateway, key) != before
    await original.execute("SELECT pg_switch_wal()")
    original.stop()  # Which archives what is left of the log.

    restored = Cluster(folder / "restored")
    restored.copied_from(base.home)
    restored.configure(
        "recovery.signal",
        restore_command=f"cp {original.own_folder('archive')}/%f %p",
        recovery_target_time=moment,
        recovery_target_action="promote",
    )
    restored.start()
    try:
        await eventually(lambda: writable(restored))
        with serving(on(settings, restored)) as gateway:
            assert await graph_of(gateway, key) == before
            await remember(gateway, key, "Ants make hills")
    finally:
        restored.stop()


async def writable(server: Cluster) -> bool:
    return await server.execute("SELECT pg_is_in_recovery()") == "False"
