"""`recollect import` and `recollect export` as a user types them, against a gateway that listens."""

import asyncio
import json
import os
import pty
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from recollect.caller import Caller, Scope
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.relations.model import NewRelation
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.transfer import service as transfer
from recollect.transfer.formats import format_named
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.formats.jsonl import read_line, write_line
from recollect.transfer.formats.writer import ExportedNode, Stage
from recollect.transfer.model import Strategy
from recollect.transfer.records import EntityRecord
from recollect_local.address import Endpoint
from recollect_local.data_folder import DataFolder
from recollect_local.postgres import LocalPostgres
from recollect_workers import job_loop
from tests.support.commands import Shell
from tests.support.gateway import NewApiKey, RunningGateway, eventually, serving
from tests.support.jobs import employed
from tests.support.memories import Agent

FIXTURES = Path(__file__).parents[1] / "fixtures"
SOUND, BROKEN = FIXTURES / "memory.jsonl", FIXTURES / "memory_broken.jsonl"
BROKEN_NUMBERS = [2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21]
pytestmark = pytest.mark.usefixtures("leaves_nothing", "worker")


@pytest.fixture
def shell(gateway: RunningGateway, key: str, tmp_path: Path) -> Shell:
    """A shell with the variables of gateway and key."""
    return Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": key})


@pytest.fixture
async def admin(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A connection as PostgreSQL's superuser."""
    connection = await asyncpg.connect(postgres.url())
    yield connection
    await connection.close()


@pytest.fixture
async def worker(settings: Settings, db: Database) -> AsyncIterator[None]:
    """A worker beside the gateway, which takes turns at jobs."""
    async with employed(settings, db) as context:

        async def work() -> None:
            while not context.stopping.is_set():
                await job_loop.sweep(context)
                await asyncio.sleep(0.05)

        working = asyncio.create_task(work())
        yield
        context.stopping.set()
        await working


async def has_graph(db: Database, caller: Caller, name: str) -> bool:
    async with db.transaction(caller, read_only=True) as tx:
        return await graphs.open_graph(tx, name) is not None


async def count_stored_pieces(owner: asyncpg.Connection, caller: Caller) -> int:
    """The number of stored pieces of files of the tenant's jobs."""
    return int(await owner.fetchval("SELECT count(*) FROM job_outputs WHERE tenant_id = $1", caller.tenant_id))


@pytest.mark.proves("memory-server: json-lines-round-trip")
async def test_an_imported_file_is_exported_unchanged(shell: Shell) -> None:
    first = await shell.run("import", str(SOUND), "--graph", "notes")
    assert (first.code, first.err) == (0, "")
    assert first.out == b"notes: 8 new entities, 16 new observations, 7 new relations\n"
    out = await shell.run("export", "--graph", "notes")
    assert (out.code, out.err) == (0, "")
    assert out.out == SOUND.read_bytes()
    again = await shell.run("import", "-", "--graph", "notes", stdin=out.out)
    assert again.out == b"notes: 0 new entities, 0 new observations, 0 new relations; 15 lines contained nothing new\n"
    assert (await shell.run("import", "-", "--graph", "copy", stdin=out.out)).code == 0
    assert (await shell.run("export", "copy.jsonl", "--graph", "copy")).code == 0
    assert (shell.folder / "copy.jsonl").read_bytes() == out.out
    assert [path.name for path in shell.folder.iterdir()] == ["copy.jsonl"]


async def test_a_dry_run_reports_what_an_import_would_do(shell: Shell, agent: Agent) -> None:
    absent = await shell.run("import", str(BROKEN), "--graph", "notes", "--dry-run")
    assert not await has_graph(agent.db, agent.caller, "notes")
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("notes"))
    tried = await shell.run("import", str(BROKEN), "--graph", "notes", "--dry-run")
    assert tried == absent
    assert tried.code == 1
    assert tried.out == (
        b"notes: 5 new entities, 4 new observations, 1 new relation; 17 broken lines or parts of them were left out "
        b"(nothing was written)\n"
    )
    assert (await shell.run("export", "--graph", "notes")).out == b""
    done = await shell.run("import", str(BROKEN), "--graph", "notes")
    assert tried.out == done.out.replace(b"out\n", b"out (nothing was written)\n")


async def test_broken_lines_are_reported_and_the_rest_is_imported(shell: Shell) -> None:
    said = await shell.run("import", str(BROKEN), "--graph", "notes")
    assert said.code == 1
    assert said.out == (
        b"notes: 5 new entities, 4 new observations, 1 new relation; 17 broken lines or parts of them were left out\n"
    )
    told = said.err.splitlines()
    assert [int(re.split("[:.]", line.removeprefix("line "))[0]) for line in told] == BROKEN_NUMBERS
    assert told[1] == "line 3: not JSON: invalid character (byte 4)", told
    out = (await shell.run("export", "--graph", "notes")).out
    assert [read_line(line) for line in out.splitlines()] == [
        NewEntity("Sound one", "thing", ("first",)),
        NewEntity("Mixed", "thing", ("fine",)),
        NewEntity("NUL", "thing", ("fine",)),
        NewEntity("Long text", "thing"),
        NewEntity("Sound two", "thing", ("second",)),
        NewRelation("Sound one", "Sound two", "likes"),
    ]


LONG = "t" * 100_001


@pytest.mark.proves("enhanced-server: import-errors")
@pytest.mark.parametrize(
    ("format_name", "options"),
    [
        *(("jsonl", ()), ("json", ()), ("csv", ()), ("graphml", ())),
        *(("csv", ("--dry-run",)), ("jsonl", ("--strategy", "fail"))),
    ],
)
async def test_only_an_observation_that_is_too_long_is_left_out(
    shell: Shell, format_name: str, options: tuple[str, ...]
) -> None:
    record = EntityRecord(name="Ada", entity_type="person", observations=["one", LONG, "two"])
    writer = format_named(format_name).writer
    node = ExportedNode(uuid4(), "Ada", record)
    file = "".join(
        writer.opening(stage)
        + (writer.nodes([node], first=True) if stage is Stage.ENTITIES else "")
        + writer.closing(stage)
        for stage in Stage
    )
    (shell.folder / f"a.{format_name}").write_text(file)
    said = await shell.run("import", f"a.{format_name}", "--graph", "notes", *options)
    assert said.code == 1
    assert said.out.startswith(b"notes: 1 new entity, 2 new observations, 0 new relations; 1 broken "), said
    [fault] = said.err.splitlines()
    assert "observations.1: Expected `str` of length <= 10000" in fault
    if not options:
        out = await shell.run("export", "--graph", "notes", "--format", "json")
        assert json.loads(out.out)["entities"][0]["observations"] == ["one", "two"]


@pytest.mark.proves("memory-server: legacy-file")
async def test_the_old_file_of_the_official_server_is_recognized_by_its_content(shell: Shell) -> None:
    (shell.folder / "memory.json").write_bytes(SOUND.read_bytes())
    first = await shell.run("import", "memory.json", "--graph", "notes")
    assert (first.code, first.err) == (0, "")
    assert first.out == b"notes: 8 new entities, 16 new observations, 7 new relations\n"
    told = await shell.run("import", "memory.json", "--graph", "notes", "--format", "json")
    assert told.code == 1
    assert "JSON lines: use the format jsonl" in told.err


@pytest.mark.parametrize("way", ["file", "stdin"])
async def test_strict_refuses_a_file_before_anything_is_written(shell: Shell, agent: Agent, way: str) -> None:
    """Also if only its last line is broken, after more sound lines than one request has."""
    sound = b"".join(write_line(NewEntity(f"e{number}", "thing", ("x",))) for number in range(1_200))
    (shell.folder / "long.jsonl").write_bytes(sound + b"broken\n")
    file, stdin = ("long.jsonl", b"") if way == "file" else ("-", sound + b"broken\n")
    refused = await shell.run("import", file, "--graph", "notes", "--strict", stdin=stdin)
    assert refused.code == 1
    assert "line 1201 cannot be imported, so nothing was imported" in refused.err
    assert (await agent.head()).entities == 0
    tried = await shell.run("import", file, "--graph", "notes", "--dry-run", stdin=stdin)
    assert tried.err == "line 1201: not JSON: invalid character (byte 0)\n"
    assert tried.out.startswith(b"notes: 1200 new entities")
    assert tried.out.endswith(b"; 1 broken line, or a part of it, was left out (nothing was written)\n")
    assert (await agent.head()).entities == 0
    (shell.folder / "long.jsonl").write_bytes(sound)
    stdin = sound if way == "stdin" else b""
    accepted = await shell.run("import", file, "--graph", "notes", "--strict", stdin=stdin)
    assert (accepted.code, accepted.err) == (0, "")
    assert accepted.out.startswith(b"notes: 1200 new entities")


async def test_strict_knows_the_kinds_that_the_graph_allows(
    shell: Shell, gateway: RunningGateway, admin_key: str
) -> None:
    async with gateway.http(admin_key) as http:
        await http.post("/v1/graphs", json={"name": "people", "kind_whitelist": ["person"]})
    refused = await shell.run("import", str(SOUND), "--graph", "people", "--strict")
    assert refused.code == 1
    assert "line 3 cannot be imported" in refused.err
    assert (await shell.run("export", "--graph", "people")).out == b""
    tried = await shell.run("import", str(SOUND), "--graph", "people", "--dry-run")
    assert tried.code == 1, "something would be left out"
    assert "line 3: Kind 'machine' is not allowed in graph 'people'; allowed: person" in tried.err
    done = await shell.run("import", str(SOUND), "--graph", "people")
    assert (done.code, done.err) == (tried.code, tried.err)
    assert tried.out == done.out.replace(b"out\n", b"out (nothing was written)\n")


async def test_a_file_without_importable_lines_fails(shell: Shell, agent: Agent) -> None:
    said = await shell.run("import", __file__, "--graph", "notes")
    assert said.code == 1
    assert said.err.splitlines()[-1].endswith("test_import_export.py contains no line that can be imported")
    head = await agent.head()
    assert (head.entities, head.facts, head.relations) == (0, 0, 0)
    empty = await shell.run("import", "-", "--graph", "notes")
    assert (empty.code, empty.err) == (0, "")


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller, "notes")


async def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(shell: Shell) -> None:
    raw = b"".join(write_line(NewRelation("a", "b", f"type {number % 50}")) for number in range(12_000))
    (shell.folder / "long.jsonl").write_bytes(raw + b"broken\n")
    plain = await shell.run("import", "long.jsonl", "--graph", "plain")
    assert re.fullmatch(r"importing: 1[0-2]\d{3} items", plain.err.splitlines()[0])
    terminal, theirs = pty.openpty()
    process = shell.with_variables(TERM="xterm").start("import", "long.jsonl", "--graph", "bar", stderr=theirs)
    os.close(theirs)
    shown = await asyncio.to_thread(lambda: b"".join(_read(terminal)).decode())
    done = process.communicate()
    assert done.code == 1
    assert (
        done.out
        == b"bar: 0 new entities, 0 new observations, 50 new relations; 11950 lines contained nothing new; "
        + (b"1 broken line, or a part of it, was left out\n")
    )
    assert "importing" in shown
    assert "━" in shown
    assert "line 12001: not JSON" in shown


def _read(terminal: int) -> Iterator[bytes]:
    try:
        while part := os.read(terminal, 4096):
            yield part
    except OSError:  # the other side has closed
        os.close(terminal)


async def test_the_local_stack_is_found_without_settings(shell: Shell, gateway: RunningGateway, key: str) -> None:
    bare = Shell(shell.folder)
    nobody = await bare.run("export", "--graph", "notes")
    assert nobody.code == 1
    assert "No gateway runs on this machine" in nobody.err
    assert "if one runs with --data-dir, set RECOLLECT_DATA_DIR to that folder" in nobody.err
    (shell.folder / "data").mkdir()
    here = Endpoint(f"{gateway.url}/mcp", f"{gateway.url}/v1", key, "demo", key)
    with DataFolder(shell.folder / "data").published(here, None):
        assert (await bare.run("import", str(SOUND), "--graph", "notes")).code == 0
        assert (await bare.run("export", "--graph", "notes")).out == SOUND.read_bytes()
        elsewhere = await bare.run("export", "--graph", "notes", "--url", gateway.url)
        assert elsewhere.code == 1
        assert "An API key is required" in elsewhere.err, "the local key is for the local gateway alone"


@contextmanager
def other_server() -> Iterator[str]:
    """A server that answers every request with a page."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>Welcome")

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


async def test_each_error_is_one_sentence(shell: Shell, gateway: RunningGateway, key: str) -> None:
    async def refusal(*words: str) -> str:
        said = await shell.run(*words)
        assert (said.code, said.out) == (1, b""), said
        [line] = said.err.splitlines()
        return line.removeprefix("recollect: ")

    target = shell.folder / "kept.jsonl"
    target.write_bytes(b"as it was")
    assert await refusal("export", "kept.jsonl", "--graph", "nowhere") == "There is no graph named 'nowhere'."
    assert target.read_bytes() == b"as it was"
    assert (await refusal("export", "backup.txt", "--graph", "default")).startswith(
        "No format has the ending .txt. Set one with --format (json, "
    )
    assert not (shell.folder / "backup.txt").exists()
    assert await refusal("import", "missing.jsonl", "--graph", "g") == "missing.jsonl: No such file or directory"
    assert await refusal("import", ".", "--graph", "g", "--format", "json") == ".: Is a directory"
    assert (await refusal("import", str(SOUND), "--graph", "../keys")).startswith("graph: A graph's name has")
    assert (
        await refusal("export", "no/such/folder", "--graph", "default") == "no/such/folder: No such file or directory"
    )
    assert "does not accept the API key" in await refusal("export", "--graph", "g", "--api-key", key[:-1] + "?")
    assert "does not answer" in await refusal("import", str(SOUND), "--graph", "g", "--url", "http://127.0.0.1:9")
    assert "is not the URL" in await refusal("export", "--graph", "g", "--url", "localhost")
    with other_server() as other:
        for words in (("export", "kept.jsonl"), ("import", str(SOUND))):
            assert "is not the URL of a Recollect gateway" in await refusal(*words, "--graph", "g", "--url", other)
    assert target.read_bytes() == b"as it was"


async def test_a_read_only_key_can_export_repeatedly(
    shell: Shell, issue: NewApiKey, caller: Caller, owner: asyncpg.Connection
) -> None:
    """Two such files may be stored at once: the third export shows that the command deletes its files."""
    assert (await shell.run("import", str(SOUND), "--graph", "notes")).code == 0
    key = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
    reader = shell.with_variables(RECOLLECT_API_KEY=key.secret)
    for _ in range(3):
        said = await reader.run("export", "--graph", "notes")
        assert (said.code, said.err, said.out) == (0, "", SOUND.read_bytes())
    assert await count_stored_pieces(owner, caller) == 0


async def test_facts_that_are_left_out_are_reported(shell: Shell, agent: Agent) -> None:
    await agent.remember("Rain is expected", "The store closes at six")
    said = await shell.run("export", "--graph", "notes")
    assert (said.code, said.out) == (0, b"")
    assert said.err == "2 facts were left out: this format contains only entities\n"


async def test_an_import_waits_for_another_writer_of_the_graph(
    shell: Shell, db: Database, caller: Caller, agent: Agent, admin: asyncpg.Connection
) -> None:
    await agent.create("first")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'recollect'"

    async def is_waiting() -> bool:
        return bool(await admin.fetchval(waiting))

    async with db.transaction(caller) as tx, graphs.write_graph(tx, "notes", "test"):
        running = asyncio.create_task(shell.run("import", str(SOUND), "--graph", "notes"))
        await eventually(is_waiting)
    said = await running
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(b"notes: 8 new entities")


LongGraph = Callable[[], Awaitable[None]]


@pytest.fixture
def long_graph(agent: Agent, owner: asyncpg.Connection) -> LongGraph:
    """Fills the graph with 40 MB: more than the buffers between gateway and command."""

    async def fill() -> None:
        await agent.create(*[f"e{number}" for number in range(400)])
        await owner.execute(
            """
            INSERT INTO observations (tenant_id, graph_id, id, node_id, content, added_revision, created_at, created_by)
            SELECT tenant_id, graph_id, gen_random_uuid(), id, n || repeat('x', 10000), 1, now(), 'test'
            FROM nodes, generate_series(1, 10) AS n WHERE tenant_id = $1
            """,
            agent.caller.tenant_id,
        )

    return fill


async def test_an_export_that_breaks_off_is_reported(
    settings: Settings, postgres: LocalPostgres, shell: Shell, long_graph: LongGraph, admin: asyncpg.Connection
) -> None:
    """PostgreSQL goes away during an answer of the gateway."""
    await long_graph()
    await admin.execute("CREATE ROLE fleeting LOGIN; GRANT recollect_app TO fleeting")
    try:
        with serving(settings.model_copy(update={"database_url": postgres.url("fleeting")})) as gateway:
            process = shell.start("export", "--graph", "notes", "--url", gateway.url)
            start = await asyncio.to_thread(process.stdout.read, 1_000)
            await admin.execute("ALTER ROLE fleeting CONNECTION LIMIT 0")
            await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fleeting'")
            rest = await asyncio.to_thread(process.communicate)
            assert rest.code == 1
            assert "does not answer" in rest.err
            assert "was not fetched completely; run the command again" in rest.err
            assert 1_000 < len(start + rest.out) < 40_000_000
    finally:
        await admin.execute("DROP ROLE fleeting")


async def test_a_reader_of_only_the_first_lines_may_close_the_pipe(
    shell: Shell, long_graph: LongGraph, owner: asyncpg.Connection, caller: Caller
) -> None:
    await long_graph()
    with shell.start("export", "--graph", "notes") as process:
        assert json.loads(await asyncio.to_thread(process.stdout.readline))["name"] == "e0"
        process.stdout.close()
        assert await asyncio.to_thread(process.stderr.read) == b""
        assert await asyncio.to_thread(process.wait) == 1
    assert await count_stored_pieces(owner, caller) == 0


@pytest.mark.parametrize("suffix", ["json", "csv", "graphml"])
async def test_an_export_in_every_importable_format_can_be_imported(shell: Shell, agent: Agent, suffix: str) -> None:
    await agent.create(NewEntity("Ada", "person", ("=1+1", "writes; reads"), ("vip",), 5.0))
    await agent.remember("Rain is expected")
    await agent.relate(("Ada", "nobody yet", "knows"))
    out = await shell.run("export", f"notes.{suffix}", "--graph", "notes")
    assert (out.code, out.err.startswith(f"notes was exported to notes.{suffix} (")) == (0, True), out.err
    said = await shell.run("import", f"notes.{suffix}", "--graph", "copy", "--strict")
    assert (said.code, said.err) == (0, "")
    assert said.out == b"copy: 1 new entity, 1 new fact, 2 new observations, 1 new relation\n"
    again = await shell.run("import", f"notes.{suffix}", "--graph", "copy", "--strategy", "merge")
    assert again.out == b"copy: 0 new entities, 0 new observations, 0 new relations; 3 items contained nothing new\n"
    for graph in ("notes", "copy"):
        assert (await shell.run("export", f"{graph}.md", "--graph", graph)).code == 0
    shown = [(shell.folder / f"{graph}.md").read_text() for graph in ("notes", "copy")]
    assert shown[0] == shown[1]
    assert "knows" in shown[0]


async def test_entities_with_much_metadata_are_imported_again(shell: Shell, agent: Agent) -> None:
    """500 of them are more than a request may have."""
    entities = [
        EntityRecord(name=f"e{n}", entity_type="thing", observations=[], metadata={"notes": "x" * 10_000})
        for n in range(500)
    ]
    async with agent.db.transaction(agent.caller) as tx:
        items = [ParsedRecord("made", entity) for entity in entities]
        await transfer.import_batch(tx, "notes", items, Strategy.SKIP)
    assert (await shell.run("export", "notes.json", "--graph", "notes")).code == 0
    said = await shell.run("import", "notes.json", "--graph", "copy", "--strict")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(b"copy: 500 new entities")


async def test_a_long_file_of_another_format_is_sent_in_parts(shell: Shell, agent: Agent) -> None:
    rows = "".join(f"e{number},thing,says {number},e{number + 1}\n" for number in range(1_200))
    (shell.folder / "long.csv").write_text(f"name,entityType,observations,parentId\n{rows}e1200,thing,,\nbroken\n")
    refused = await shell.run("import", "long.csv", "--graph", "notes", "--strict")
    assert refused.code == 1
    assert "line 1203 cannot be imported" in refused.err
    tried = await shell.run("import", "long.csv", "--graph", "notes", "--dry-run")
    assert "line 1203: 1 cells instead of 4" in tried.err
    assert tried.out.startswith(b"notes: 1201 new entities, 1200 new observations, 0 new relations; ")
    assert tried.out.endswith(b"(nothing was written)\n")
    assert (await shell.run("export", "--graph", "notes")).out == b""
    said = await shell.run("import", "long.csv", "--graph", "notes")
    assert said.out.startswith(b"notes: 1201 new entities, 1200 new observations, 0 new relations; ")
    assert said.out.endswith(b"1 broken item, or a part of it, was left out\n")
    out = json.loads((await shell.run("export", "--graph", "notes", "--format", "json")).out)
    assert {e["name"]: e.get("parentId") for e in out["entities"]} == {
        f"e{number}": f"e{number + 1}" if number < 1_200 else None for number in range(1_201)
    }
    clash = await shell.run("import", "long.csv", "--graph", "notes", "--strategy", "fail")
    assert clash.code == 1
    assert "line 2: It exists already, or is in the file twice. Nothing was imported" in clash.err


async def test_strategy_fail_is_all_or_nothing_for_any_number_of_batches(shell: Shell, agent: Agent) -> None:
    entities = [{"name": f"e{number}", "entityType": "thing", "observations": []} for number in range(1_200)]
    facts = [{"text": f"fact {number}"} for number in range(600)]
    relations = [
        {"from": f"e{number}", "to": {"text": f"fact {number}"}, "relationType": "about"} for number in range(600)
    ]
    for name, given in (("twice", [*entities, entities[0]]), ("once", entities)):
        content = {"entities": given, "facts": facts, "relations": relations}
        (shell.folder / f"{name}.json").write_text(json.dumps(content))
    refused = await shell.run("import", "twice.json", "--graph", "notes", "--strategy", "fail")
    assert refused.code == 1
    assert "entities.1200: It exists already, or is in the file twice. Nothing was imported" in refused.err
    head = await agent.head()
    assert (head.entities, head.facts, head.relations) == (0, 0, 0)
    said = await shell.run("import", "once.json", "--graph", "notes", "--strategy", "fail", "--strict")
    assert (said.code, said.err) == (0, "")
    assert said.out == b"notes: 1200 new entities, 600 new facts, 0 new observations, 600 new relations\n"
    head = await agent.head()
    assert (head.entities, head.facts, head.relations) == (1_200, 600, 600)


async def test_items_that_the_gateway_refuses_are_reported_with_their_place(
    shell: Shell, gateway: RunningGateway, admin_key: str
) -> None:
    async with gateway.http(admin_key) as http:
        await http.post("/v1/graphs", json={"name": "people", "kind_whitelist": ["person"]})
    (shell.folder / "mixed.csv").write_text(
        "from,relationType,to\na,knows,b\n# ENTITIES\nname,entityType\na,person\nb,robot\n"
    )
    said = await shell.run("import", "mixed.csv", "--graph", "people")
    assert said.code == 1
    assert "line 6: Kind 'robot' is not allowed in graph 'people'; allowed: person" in said.err
