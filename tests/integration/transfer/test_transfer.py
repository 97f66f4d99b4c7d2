"""Import and export of whole graphs: the use cases on a real database, and the routes on a real gateway."""

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.errors import NotFound
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.relations.model import NewRelation
from recollect.memory.model import NewMemory as Memory
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.text.visible import is_visible
from recollect.transfer import exports
from recollect.transfer import service as transfer
from recollect.transfer.exports import Export, export_chunks
from recollect.transfer.formats import FORMATS
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.formats.jsonl import MEDIA_TYPE, LineItem, read_line, record_of, write_line
from recollect.transfer.model import MAX_LINES, ImportResult, Strategy
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.gateway import NewApiKey, RunningGateway, revision_of
from tests.support.memories import Agent

FIXTURES = Path(__file__).parents[2] / "fixtures"
OFFICIAL = (FIXTURES / "memory.jsonl").read_bytes()
BROKEN = (FIXTURES / "memory_broken.jsonl").read_bytes()
BROKEN_NUMBERS = [2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21]


def read_lines(file: bytes) -> list[LineItem]:
    return [read_line(line) for line in file.splitlines()]


def lines_of(items: Iterable[LineItem]) -> bytes:
    return b"".join(write_line(item) for item in items)


def file_of(items: Iterable[LineItem]) -> bytes:
    """A file as the official server writes it: nothing follows the last line."""
    return lines_of(items).removesuffix(b"\n")


async def imported(agent: Agent, *said: LineItem) -> ImportResult:
    items = [ParsedRecord(f"line {number}", record_of(each)) for number, each in enumerate(said, 1)]
    async with agent.db.transaction(agent.caller) as tx:
        return await transfer.import_batch(tx, agent.graph or "default", items, Strategy.MERGE)


async def export_of(agent: Agent, as_of: str | None = None) -> Export:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await exports.open_export(tx, agent.graph or "default", "jsonl", as_of=as_of)


async def exported(agent: Agent, export: Export | None = None, *, page_items: int = 3) -> bytes:
    chunks = export_chunks(agent.db, agent.caller, export or await export_of(agent), page_items=page_items)
    return b"".join([chunk async for chunk in chunks])


@pytest.mark.proves("memory-server: json-lines-round-trip")
async def test_a_file_of_the_official_server_is_exported_unchanged(new_graph: Callable[[], Agent]) -> None:
    first, second = new_graph(), new_graph()
    said = await imported(first, *read_lines(OFFICIAL))
    assert said == ImportResult(entities_created=8, observations_added=16, relations_created=7)
    out = await exported(first)
    assert out == OFFICIAL
    await imported(second, *read_lines(out))
    assert await exported(second) == out


async def test_importing_again_changes_nothing(agent: Agent) -> None:
    items = read_lines(OFFICIAL)
    await imported(agent, *items)
    before = await agent.head()
    assert await imported(agent, *items) == ImportResult(entities_skipped=8, relations_skipped=7)
    assert await agent.head() == before


async def test_a_repeated_line_is_skipped(agent: Agent) -> None:
    entity, edge = NewEntity("a", "thing", ("1",)), NewRelation("a", "b", "knows")
    said = await imported(agent, entity, edge, entity, edge, NewEntity("a", "other", ("1", "2")), NewEntity("a"))
    assert said == ImportResult(
        entities_created=1,
        entities_updated=1,
        entities_skipped=2,
        observations_added=2,
        relations_created=1,
        relations_skipped=1,
    )
    assert await exported(agent) == file_of([NewEntity("a", "thing", ("1", "2")), edge])


async def test_an_existing_entity_gets_missing_observations_and_keeps_its_kind(agent: Agent) -> None:
    await agent.create(NewEntity("a", "person", ("1", "2")), NewEntity("b", "person"))
    said = await imported(agent, NewEntity("a", "machine", ("2", "3", "1", "4")), NewEntity("b", "machine"))
    assert said == ImportResult(entities_updated=1, entities_skipped=1, observations_added=2)
    assert await exported(agent) == file_of([NewEntity("a", "person", ("1", "2", "3", "4")), NewEntity("b", "person")])


async def test_a_relation_may_name_entities_that_do_not_exist_yet(agent: Agent) -> None:
    edge = NewRelation("later", "never", "waits for")
    assert (await imported(agent, edge)).relations_created == 1
    assert await exported(agent) == file_of([edge])
    said = await imported(agent, NewEntity("later", "thing", ("here",)))
    assert said == ImportResult(entities_created=1, observations_added=1)
    assert await exported(agent) == file_of([NewEntity("later", "thing", ("here",)), edge])
    assert (await agent.head()).placeholders == 1


async def test_one_import_is_one_revision(agent: Agent) -> None:
    await imported(agent, *read_lines(OFFICIAL))
    assert (await agent.head()).revision == 1


async def test_concurrent_imports_of_one_file_make_one_graph(agent: Agent) -> None:
    parts = [[NewEntity(f"e{n}", "thing", (f"says {n}",)) for n in range(start, start + 20)] for start in (0, 20, 40)]

    async def work() -> list[ImportResult]:
        return [await imported(agent, *part) for part in parts]

    said = [each for told in await asyncio.gather(work(), work()) for each in told]
    assert sum(each.entities_created for each in said) == 60
    assert sum(each.observations_added for each in said) == 60
    assert sum(each.skipped for each in said) == 60
    assert (await agent.head()).revision == 3


async def test_every_storable_character_is_preserved(new_graph: Callable[[], Agent]) -> None:
    first, second = new_graph(), new_graph()
    points = [*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 97)]
    texts = ["".join(map(chr, points[start : start + 400])) for start in range(0, len(points), 400)]
    entities = [NewEntity(text, text[:200], (text, text[::-1])) for text in texts]
    items: list[LineItem] = [*entities, *[NewRelation(a, b, a[:200]) for a, b in itertools.pairwise(texts)]]
    said = await imported(first, *items)
    assert (said.entities_created, said.relations_created) == (len(texts), len(texts) - 1)
    out = await exported(first, page_items=100)
    assert out == file_of(items)
    await imported(second, *read_lines(out))
    assert await exported(second, page_items=100) == out


short = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=5).filter(
    is_visible
) | st.sampled_from("abc")
some_items: st.SearchStrategy[LineItem] = st.builds(
    NewEntity, short, st.none() | short, st.lists(short, max_size=4, unique=True).map(tuple)
) | st.builds(NewRelation, short, short, short)


@given(items=st.lists(some_items, max_size=12), split=st.integers(0, 12))
@examples(12)
async def test_export_import_and_export_again_are_equal(
    new_graph: Callable[[], Agent], items: list[LineItem], split: int
) -> None:
    """The lines come in one or two chunks, and entities may come after the relations that name them."""
    first, second = new_graph(), new_graph()
    await create_graph(first)
    await imported(first, *items[:split])
    await imported(first, *items[split:])
    out = await exported(first)
    await create_graph(second)
    again = read_lines(out)
    await imported(second, *again)
    assert await exported(second) == out
    again_said = await imported(second, *items)
    assert again_said.skipped == len(items)
    assert again_said == ImportResult(
        entities_skipped=again_said.entities_skipped, relations_skipped=again_said.relations_skipped
    )


async def create_graph(agent: Agent) -> None:
    """Create the agent's graph, empty."""
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(str(agent.graph)))


async def test_an_observation_of_two_threads_is_exported_once(agent: Agent) -> None:
    await agent.remember(Memory("likes tea", ("Ada",), thread="one"), Memory("likes tea", ("Ada",), thread="two"))
    assert (await agent.head()).observations == 2
    assert await exported(agent) == file_of([NewEntity("Ada", None, ("likes tea",))])


async def test_facts_are_omitted_and_counted(agent: Agent) -> None:
    await agent.remember("The store closes at six", "Rain is expected")
    await agent.create("a")
    assert (await export_of(agent)).facts_left_out == 2
    assert await exported(agent) == file_of([NewEntity("a", "thing")])


async def test_expired_items_are_omitted_with_their_relations(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NewEntity("gone", "thing", ("x",)), NewEntity("stays", "thing", ("kept", "forgotten")))
    await agent.relate(("gone", "stays", "knows"), ("stays", "gone", "knows"), ("stays", "stays", "is"))
    past, mine = datetime.now(UTC) - timedelta(seconds=1), agent.caller.tenant_id
    for table in ("nodes", "node_versions"):
        await owner.execute(f"UPDATE {table} SET expires_at = $2 WHERE tenant_id = $1 AND name = 'gone'", mine, past)
    await owner.execute(
        "UPDATE observations SET expires_at = $2 WHERE tenant_id = $1 AND content = 'forgotten'", mine, past
    )
    assert await exported(agent) == file_of(
        [NewEntity("stays", "thing", ("kept",)), NewRelation("stays", "stays", "is")]
    )


async def test_pages_are_limited_by_their_content(agent: Agent) -> None:
    long = [NewEntity(f"e{n}", "thing", tuple(f"{n} {part} " + "x" * 900 for part in range(n % 4))) for n in range(20)]
    await imported(agent, *long)
    export, found = await export_of(agent), []
    cursor: exports.Cursor | None = exports.START
    while cursor is not None:
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            step = await exports.export_step(tx, export, cursor, page_items=8, page_bytes=2_000)
        found.append(read_lines(step.text.strip().encode()))
        assert len(found[-1]) == step.items
        cursor = step.next
    assert [item for page in found for item in page] == long
    sizes = [
        sum(len(text) for item in page if isinstance(item, NewEntity) for text in item.observations) for page in found
    ]
    assert all(size <= 2_000 or len(page) == 1 for size, page in zip(sizes, found, strict=True))
    assert max(map(len, found)) > 1


async def test_an_export_shows_one_state_despite_concurrent_writes(agent: Agent) -> None:
    await agent.create(*[NewEntity(f"e{n}", "thing", (f"one {n}", f"two {n}")) for n in range(8)])
    await agent.relate(*[(f"e{n}", f"e{(n + 1) % 8}", "next") for n in range(8)], ("e7", "placed", "waits for"))
    before = await exported(agent)
    chunks = export_chunks(agent.db, agent.caller, await export_of(agent), page_items=2)
    found = await anext(chunks)
    await agent.delete("e3", "e0")  # This one is not exported yet, with its relations; the other is.
    await agent.create(NewEntity("e3", "anew", ("other",)), NewEntity("placed", "thing", ("not then",)), "later")
    await agent.observe("e5", "three")
    await agent.unobserve(("e6", "one 6"))
    await agent.unrelate(("e4", "e5", "next"))
    await agent.relate(("e5", "later", "next"), ("e4", "e5", "next"))
    found += await anext(chunks)
    await agent.delete("e7", "placed")
    async for chunk in chunks:
        found += chunk
    assert found == before
    assert await exported(agent) != before


@pytest.mark.parametrize("of_chance", range(6))
async def test_no_sequence_of_later_writes_shows_in_a_running_export(agent: Agent, of_chance: int) -> None:
    chance = random.Random(of_chance)
    for _ in range(15):
        await _write_something(agent, chance)
    before, export = await exported(agent), await export_of(agent)
    found = b""
    async for chunk in export_chunks(agent.db, agent.caller, export, page_items=1):
        found += chunk
        await _write_something(agent, chance)
    assert found == before


@pytest.mark.proves("rules: export-of-the-past")
@pytest.mark.parametrize("of_chance", range(3))
async def test_every_past_revision_can_be_exported(agent: Agent, of_chance: int) -> None:
    chance = random.Random(of_chance)
    seen = {0: b""}
    await agent.create("n0")
    for _ in range(15):
        seen[(await agent.head()).revision] = await exported(agent)
        await _write_something(agent, chance)
    for revision, then in seen.items():
        assert await exported(agent, await export_of(agent, str(revision))) == then
    newest = await export_of(agent, "2099-01-01T00:00:00Z")
    assert newest.snapshot.revision == (await agent.head()).revision


async def _write_something(agent: Agent, chance: random.Random) -> None:
    """One write, often of something that exists already or of something that does not exist."""
    names = [f"n{number}" for number in range(8)]
    a, b = chance.choice(names), chance.choice(names)
    text, type_ = chance.choice("xyz"), chance.choice(("likes", "knows"))
    writes: Sequence[Callable[[], Awaitable[object]]] = [
        lambda: agent.create(NewEntity(a, text, (text, b))),
        lambda: imported(agent, NewEntity(b, type_, (text, a))),
        lambda: agent.delete(a),
        lambda: agent.unobserve((a, text)),
        lambda: agent.relate((a, b, type_), (b, a, text)),
        lambda: agent.unrelate((a, b, type_)),
    ]
    await chance.choice(writes)()


async def test_lines_of_disallowed_kinds_are_reported(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("strictly", kind_whitelist=("person",)))
    agent = Agent(agent.db, agent.caller, "strictly")
    items: list[LineItem] = [
        NewEntity("a", "person"),
        NewEntity("b", "machine"),
        NewEntity("c"),
        NewRelation("a", "b", "uses"),
    ]
    said = await imported(agent, *items)
    assert [problem.where for problem in said.problems] == ["line 2", "line 3"]
    assert (said.entities_created, said.relations_created) == (1, 1)


async def test_a_graph_that_does_not_exist_cannot_be_exported(agent: Agent) -> None:
    with pytest.raises(NotFound):
        await export_of(Agent(agent.db, agent.caller, "nowhere"))


# Routes


async def send(http: httpx2.AsyncClient, body: bytes, graph: str = "default", **query: str) -> httpx2.Response:
    return await http.post(
        f"/v1/graphs/{graph}/import", content=body, params=query, headers={"Content-Type": MEDIA_TYPE}
    )


def problem(response: httpx2.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


async def test_lines_are_imported_and_exported(http: httpx2.AsyncClient) -> None:
    response = await send(http, OFFICIAL)
    assert response.status_code == 200, response.text
    assert response.json() == {
        "entities_created": 8,
        "entities_updated": 0,
        "entities_skipped": 0,
        "observations_added": 16,
        "facts_created": 0,
        "facts_updated": 0,
        "facts_skipped": 0,
        "relations_created": 7,
        "relations_updated": 0,
        "relations_skipped": 0,
        "lines_skipped": 0,
        "problems": 0,
        "errors": [],
    }
    out = await http.get("/v1/graphs/default/export")
    assert out.status_code == 200
    assert out.headers["content-type"].split(";")[0] == MEDIA_TYPE
    assert out.headers["recollect-revision"] == "1"
    assert out.headers["recollect-facts-left-out"] == "0"
    assert out.content == OFFICIAL
    assert (await send(http, out.content)).json()["lines_skipped"] == 15


@pytest.mark.parametrize("name", FORMATS)
async def test_an_export_has_the_media_type_of_its_format(http: httpx2.AsyncClient, name: str) -> None:
    await send(http, OFFICIAL)
    out = await http.get("/v1/graphs/default/export", params={"format": name, "kind": "person"})
    assert out.status_code == 200, out.text
    assert out.headers["content-type"].split(";")[0] == FORMATS[name].media_type
    assert out.headers["x-content-type-options"] == "nosniff"
    assert "Ada Lovelace" in out.text
    if FORMATS[name].read:
        body, kind = out.content, FORMATS[name].media_type
        said = await http.post(
            "/v1/graphs/copy/import", content=body, params={"strategy": "fail"}, headers={"Content-Type": kind}
        )
        assert said.status_code == 200, said.text
        assert said.json()["entities_created"] > 0
        again = await http.post(
            "/v1/graphs/copy/import", content=body, params={"strategy": "fail"}, headers={"Content-Type": kind}
        )
        assert problem(again) == (409, "name_taken")


async def test_other_formats_are_checked_limited_and_reported_by_place(http: httpx2.AsyncClient) -> None:
    headers = {"Content-Type": "text/csv"}
    url = "/v1/graphs/fresh/import"
    said = (await http.post(url, content=b"name\na\nb,c\n", params={"check": "true"}, headers=headers)).json()
    assert (said["entities_created"], said["errors"]) == (1, [{"line": 3, "reason": "2 cells instead of 1"}])
    assert problem(await http.get("/v1/graphs/fresh/export")) == (404, "graph_not_found")
    strict = await http.post(url, content=b"name\na\nb,c\n", params={"strict": "true"}, headers=headers)
    assert problem(strict) == (400, "invalid_input")
    assert strict.json()["path"] == "line 3"
    many = b"name\n" + b"".join(b"e%d\n" % number for number in range(MAX_LINES + 1))
    assert problem(await http.post(url, content=many, headers=headers)) == (413, "request_too_large")
    packed = await http.post(url, content=b"\x1f\x8b\x08", headers=headers)
    assert problem(packed) == (400, "invalid_input")
    encoded = await http.post(url, content=b"name\na\n", headers=headers | {"Content-Encoding": "gzip"})
    assert problem(encoded) == (415, "invalid_input")
    naive = await http.get("/v1/graphs/default/export", params={"since": "2026-01-01T00:00:00"})
    assert problem(naive) == (400, "invalid_input")
    assert problem(await http.get("/v1/graphs/default/export", params={"format": "pdf"})) == (400, "invalid_input")
    for query, path in (
        ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
        ({"until": "9999-12-31T23:59:59-14:00"}, "until"),
        ({"kind": "a\0"}, "kind"),
        ({"tag": ["a", "\0"]}, "tag.1"),
    ):
        refused = await http.get("/v1/graphs/default/export", params=query)
        assert (refused.status_code, refused.json()["path"]) == (400, path)
    assert problem(await http.get("/v1/graphs/fresh/export")) == (404, "graph_not_found")


@pytest.mark.proves("rules: export-of-the-past")
async def test_as_of_exports_a_past_state(http: httpx2.AsyncClient) -> None:
    await send(http, OFFICIAL)
    await send(http, b'{"type":"entity","name":"of later","entityType":"thing","observations":[]}')
    then = await http.get("/v1/graphs/default/export", params={"as_of": "1"})
    assert then.headers["recollect-revision"] == "1"
    assert then.content == OFFICIAL
    assert problem(await http.get("/v1/graphs/default/export", params={"as_of": "7"})) == (400, "invalid_input")
    assert problem(await http.get("/v1/graphs/default/export", params={"as_of": "soon"})) == (400, "invalid_input")


@pytest.mark.proves("enhanced-server: import-errors")
async def test_invalid_lines_are_skipped_and_reported(http: httpx2.AsyncClient) -> None:
    response = await send(http, BROKEN, "fresh")
    assert response.status_code == 200, response.text
    said = response.json()
    assert [error["line"] for error in said["errors"]] == BROKEN_NUMBERS
    assert all(error["reason"] for error in said["errors"])
    assert said["problems"] == len(BROKEN_NUMBERS)
    assert (said["entities_created"], said["observations_added"], said["relations_created"]) == (5, 4, 1)
    assert len((await http.get("/v1/graphs/fresh/export")).content.splitlines()) == 6
    assert {"line": 9, "path": "observations.1"}.items() <= next(e for e in said["errors"] if e["line"] == 9).items()


async def test_problems_are_reported_in_the_order_of_lines(
    http: httpx2.AsyncClient, db: Database, caller: Caller
) -> None:
    async with db.transaction(caller) as tx:
        await graphs.create_graph(tx, NewGraph("people", kind_whitelist=("person",)))
    machine = write_line(NewEntity("a", "machine"))
    said = (await send(http, machine + b"broken\n" + machine, "people")).json()
    assert [error["line"] for error in said["errors"]] == [1, 2, 3]


@pytest.mark.parametrize("query", [{"strict": "true"}, {"strict": "true", "check": "true"}])
async def test_strict_refuses_the_whole_request(http: httpx2.AsyncClient, query: dict[str, str]) -> None:
    refused = await send(http, BROKEN, "fresh", **query)
    assert problem(refused) == (400, "invalid_input")
    assert refused.json()["path"] == "line 2"
    told = refused.json()["detail"]
    assert told.startswith("not JSON: Input data was truncated; line 3: not JSON: ")
    assert told.endswith(". Nothing was imported")
    assert all(f"line {number}" in told for number in BROKEN_NUMBERS[1:])
    assert problem(await http.get("/v1/graphs/fresh/export")) == (404, "graph_not_found")


async def test_a_check_counts_existing_and_repeated_items(http: httpx2.AsyncClient) -> None:
    await send(http, OFFICIAL)
    tried = (await send(http, OFFICIAL + b"\n" + lines_of([NewEntity("new")] * 2), check="true")).json()
    done = (await send(http, OFFICIAL + b"\n" + lines_of([NewEntity("new")] * 2))).json()
    assert tried == done
    assert (tried["entities_created"], tried["lines_skipped"]) == (1, 16)


async def test_strict_refuses_a_file_without_any_valid_line(http: httpx2.AsyncClient) -> None:
    refused = await send(http, b"broken", strict="true")
    assert problem(refused) == (400, "invalid_input")
    assert refused.json()["path"] == "line 1"


async def test_check_writes_nothing(http: httpx2.AsyncClient) -> None:
    said = (await send(http, BROKEN, "fresh", check="true")).json()
    assert [error["line"] for error in said["errors"]] == BROKEN_NUMBERS
    assert (said["entities_created"], said["observations_added"], said["relations_created"]) == (5, 4, 1)
    assert problem(await http.get("/v1/graphs/fresh/export")) == (404, "graph_not_found")


async def test_a_file_without_valid_lines_does_not_create_a_graph(http: httpx2.AsyncClient) -> None:
    assert (await send(http, b"broken\n\n", "fresh")).json()["errors"][0]["line"] == 1
    assert (await send(http, b"", "fresh")).json()["errors"] == []
    assert problem(await http.get("/v1/graphs/fresh/export")) == (404, "graph_not_found")


async def test_invalid_requests_are_refused(
    gateway: RunningGateway, http: httpx2.AsyncClient, settings: Settings
) -> None:
    for many in (b"{}\n", write_line(NewRelation("a", "b", "c"))):
        assert problem(await send(http, many * (MAX_LINES + 1))) == (413, "request_too_large")
    refused = await send(http, b"x" * (settings.max_request_bytes + 1))
    assert problem(refused) == (413, "request_too_large")
    for elsewhere in ("`recollect import`", "several requests", "POST /v1/graphs/{graph}/imports"):
        assert elsewhere in refused.json()["detail"]
    assert problem(await send(http, OFFICIAL, "no%20name")) == (400, "invalid_input")
    assert problem(await send(http, OFFICIAL, strict="perhaps")) == (400, "invalid_input")
    as_text = await http.post("/v1/graphs/default/import", content=OFFICIAL, headers={"Content-Type": "text/plain"})
    assert problem(as_text) == (415, "invalid_input")
    assert problem(await http.get("/v1/graphs/default/import")) == (405, "method_not_allowed")
    assert problem(await http.post("/v1/graphs/default/export")) == (405, "method_not_allowed")
    async with gateway.http() as stranger:
        assert problem(await send(stranger, OFFICIAL)) == (401, "unauthenticated")
        assert problem(await stranger.get("/v1/graphs/default/export")) == (401, "unauthenticated")
    assert (await http.get("/v1/graphs/default/export")).content == b"", "something was written"


async def test_scopes_decide_about_import_and_export(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
) -> None:
    reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
    writer = await issue(caller, scopes=frozenset({Scope.MEMORY_WRITE}))
    admin = await issue(caller, kind="admin", scopes=frozenset({Scope.TENANT_ADMIN}))
    async with gateway.http(reader.secret) as http:
        assert problem(await send(http, OFFICIAL)) == (403, "scope_required")
        assert problem(await send(http, OFFICIAL, check="true")) == (403, "scope_required")
    assert await revision_of(db, caller) == 0
    async with gateway.http(writer.secret) as http:
        assert (await send(http, OFFICIAL)).status_code == 200
        assert problem(await http.get("/v1/graphs/default/export")) == (403, "scope_required")
    async with gateway.http(admin.secret) as http:
        assert problem(await send(http, OFFICIAL)) == (403, "scope_required")
        assert problem(await http.get("/v1/graphs/default/export")) == (403, "scope_required")
    async with gateway.http(reader.secret) as http:
        assert (await http.get("/v1/graphs/default/export")).content == OFFICIAL


async def test_an_allow_list_excludes_other_graphs(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
) -> None:
    await imported(Agent(db, caller, "secret"), NewEntity("hidden"))
    async with db.transaction(caller) as tx:
        allowed: UUID = (await graphs.create_graph(tx, NewGraph("allowed"))).id
    narrow = await issue(caller, graph_ids=(allowed,))
    async with gateway.http(narrow.secret) as http:
        assert (await send(http, OFFICIAL, "allowed")).status_code == 200
        for graph in ("secret", "nowhere"):
            for query in ({}, {"check": "true"}):
                for body in (OFFICIAL, b"broken", b""):
                    assert problem(await send(http, body, graph, **query)) == (403, "graph_not_allowed")
            assert problem(await http.get(f"/v1/graphs/{graph}/export")) == (403, "graph_not_allowed")
    assert await exported(Agent(db, caller, "secret")) == file_of([NewEntity("hidden")])


async def test_tenants_do_not_see_each_others_graphs(
    gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant, db: Database
) -> None:
    ours, theirs = [operator_caller(await new_tenant()) for _ in range(2)]
    our_key, their_key = (await issue(ours)).secret, (await issue(theirs)).secret
    shared: list[LineItem] = [NewEntity("Ada", "person", ("ours",)), NewRelation("Ada", "Bob", "knows")]
    async with gateway.http(our_key) as us, gateway.http(their_key) as them:
        assert (await send(us, lines_of(shared))).json()["entities_created"] == 1
        assert (await send(us, lines_of(shared), "private")).status_code == 200
        assert problem(await them.get("/v1/graphs/private/export")) == (404, "graph_not_found")
        assert (await them.get("/v1/graphs/default/export")).content == b""
        said = (await send(them, lines_of([NewEntity("Ada", "cat", ("theirs",)), shared[1]]))).json()
        assert (said["entities_created"], said["relations_created"], said["lines_skipped"]) == (1, 1, 0)
        assert (await us.get("/v1/graphs/default/export")).content == file_of(shared)
        assert b"ours" not in (await them.get("/v1/graphs/default/export")).content
    assert await exported(Agent(db, ours)) == file_of(shared)


async def test_another_tenants_snapshot_returns_nothing(new_tenant: NewTenant, db: Database) -> None:
    """Row-level security protects even if a graph's id leaks into another tenant's export."""
    ours, theirs = [operator_caller(await new_tenant()) for _ in range(2)]
    await imported(Agent(db, ours), NewEntity("Ada", "person", ("ours",)), NewRelation("Ada", "Bob", "knows"))
    assert await exported(Agent(db, theirs), await export_of(Agent(db, ours))) == b""


async def test_routes_are_described_in_openapi(gateway: RunningGateway) -> None:
    async with gateway.http() as http:
        paths = (await http.get("/v1/openapi.json")).json()["paths"]
    described = paths["/v1/graphs/{name}/import"]["post"]
    assert MEDIA_TYPE in described["requestBody"]["content"]
    assert {parameter["name"] for parameter in described["parameters"]} == {
        "name",
        "format",
        "strategy",
        "strict",
        "check",
        "Idempotency-Key",
    }
    assert {"400", "401", "403", "413", "415", "503"} <= set(described["responses"])
    assert MEDIA_TYPE in json.dumps(paths["/v1/graphs/{name}/export"]["get"]["responses"]["200"])
