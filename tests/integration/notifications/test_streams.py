"""`GET /v1/graphs/{name}/changes` as server-sent events: no change is missed, and none reported that may not be
seen.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.memory.model import NewMemory
from recollect.notifications import store
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.gateway import NewApiKey, RunningGateway, eventually, revision_of, serving
from tests.support.memories import Agent
from tests.support.streams import listening, revision_of_event

_graphs = itertools.count(1)


@pytest.fixture(scope="module")
def hasty(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose streams look again at once, and find what Redis was not told."""
    often = {"stream_check_seconds": 0.2, "stream_keep_alive_seconds": 0.05, "streams_per_key": 3}
    with serving(settings.model_copy(update=often)) as gateway:
        yield gateway


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller, None)


class TestReporting:
    async def test_a_write_through_one_gateway_is_reported_by_another(
        self, gateway: RunningGateway, settings: Settings, key: str, agent: Agent
    ) -> None:
        await agent.create("first")
        with serving(settings) as other:
            async with listening(other, key) as stream, gateway.http(key) as http:
                for number in range(3):
                    written = {"items": [{"text": f"a thing happened {number} times"}]}
                    told = await http.post("/v1/graphs/default/memories", json=written)
                    assert told.status_code == 200, told.text
                    change = await stream.named()
                    page = (await http.get("/v1/graphs/default/changes?after_revision=1")).json()
                    assert change.data == page["items"][-1]
                    assert change.revision == page["last_revision"]
                    assert "a thing" not in str(change.data)

    async def test_a_stream_starts_with_new_changes_and_gives_its_position(
        self, gateway: RunningGateway, key: str, agent: Agent
    ) -> None:
        for name in ("one", "two"):
            await agent.create(name)
        async with listening(gateway, key) as stream:
            assert revision_of_event(stream.place) == 2
        async with listening(gateway, key, query="?after_revision=0") as stream:
            assert await stream.changes(2) == [1, 2]

    async def test_a_position_beyond_the_end_tells_the_client_to_refetch(
        self, gateway: RunningGateway, key: str, agent: Agent
    ) -> None:
        """Either the graph was deleted and created again, or the database was restored from a backup."""
        await agent.create("one")
        async with listening(gateway, key, last=7) as stream:
            assert (stream.first.name, stream.first.revision, stream.first.data) == ("refetch", 1, {"revision": 1})

    async def test_a_position_in_a_former_graph_of_that_name_tells_the_client_to_refetch(
        self, hasty: RunningGateway, key: str, db: Database, caller: Caller
    ) -> None:
        """The new graph has more revisions than the old one: by numbers alone, some would be skipped."""
        again = Agent(db, caller, "again")
        await again.create("one")
        async with listening(hasty, key, "again") as stream:
            before = stream.place
        async with listening(hasty, key, "again", last=before) as stream:
            assert (stream.first.name, stream.place) == ("", before)
            async with db.transaction(caller) as tx:
                await graphs.delete_graph(tx, "again", "test")
            await stream.named("end")
        for name in ("two", "three"):
            await again.create(name)
        async with listening(hasty, key, "again", last=before) as stream:
            assert (stream.first.name, stream.first.data) == ("refetch", {"revision": 2})
            await again.create("four")
            assert (await stream.named()).revision == 3

    @pytest.mark.parametrize("last", ["x", "x-", "-1", "1" * 40, "1.5", "x-1.5"])
    async def test_an_invalid_event_id_is_refused(
        self, gateway: RunningGateway, key: str, agent: Agent, last: str
    ) -> None:
        await agent.create("one")
        async with listening(gateway, key, last=last) as stream:
            assert stream.status == 400

    async def test_a_negative_revision_is_refused(self, gateway: RunningGateway, key: str, agent: Agent) -> None:
        await agent.create("one")
        async with listening(gateway, key, query="?after_revision=-1") as stream:
            assert stream.status == 400

    async def test_an_idle_stream_is_kept_alive(self, hasty: RunningGateway, key: str, agent: Agent) -> None:
        await agent.create("one")
        async with listening(hasty, key) as stream:
            silences = [line async for line, _ in azip(stream.lines, range(6))]
            assert silences == [":", "", ":", "", ":", ""]

    async def test_a_change_that_redis_was_not_told_is_found(
        self, hasty: RunningGateway, key: str, agent: Agent
    ) -> None:
        """The agent's database tells Redis nothing."""
        await agent.create("one")
        async with listening(hasty, key) as stream:
            await agent.create("two")
            assert (await stream.named()).revision == 2


class TestFilters:
    @pytest.fixture
    async def written(self, agent: Agent) -> Agent:
        await agent.create(NewEntity("Ann", "person", tags=("Team",)))  # 1
        await agent.create(NewEntity("Oslo", "city"))  # 2
        await agent.observe("Ann", "Ann likes tea")  # 3
        await agent.relate(("Oslo", "Ann", "knows"))  # 4
        await agent.observe("Oslo", "Oslo is large")  # 5
        await agent.unrelate(("Oslo", "Ann", "knows"))  # 6
        await agent.delete("Ann")  # 7
        return agent

    @pytest.mark.proves("memgraph: subscriptions")
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("?kind=person", [1, 3, 4, 6, 7]),
            ("?kind=city", [2, 4, 5, 6]),
            ("?kind=city&kind=person", [1, 2, 3, 4, 5, 6, 7]),
            ("?tag=team", [1, 3, 4, 6, 7]),
            ("?kind=city&tag=team", []),
            ("?kind=nothing", []),
        ],
    )
    async def test_only_changes_of_matching_nodes_are_reported(
        self, gateway: RunningGateway, key: str, written: Agent, query: str, expected: list[int]
    ) -> None:
        async with listening(gateway, key, query=f"{query}&after_revision=0") as stream:
            assert await stream.changes(7) == expected
        async with gateway.http(key) as http:
            page = (await http.get(f"/v1/graphs/default/changes{query}&limit=3")).json()
            assert [change["revision"] for change in page["items"]] == [each for each in expected if each <= 3]
            assert page["next_cursor"] == "3"
            page = (await http.get(f"/v1/graphs/default/changes{query}&limit=3&cursor=6")).json()
            assert [change["revision"] for change in page["items"]] == [each for each in expected if each > 6]
            assert (page["next_cursor"], page["last_revision"]) == (None, 7)

    @pytest.mark.parametrize(("query", "expected"), [("?tag=Drinks", [2, 4]), ("?kind=taste", [2, 4]), ("?tag=x", [])])
    async def test_a_deletion_is_matched_by_attributes_of_deleted_observations(
        self, gateway: RunningGateway, key: str, agent: Agent, query: str, expected: list[int]
    ) -> None:
        await agent.create(NewEntity("Ann", "person"), NewEntity("Bob", "person", ("Bob is tall",)))
        await agent.remember(NewMemory("Ann likes tea", ("Ann",), tags=("drinks",), kind="taste"))
        await agent.delete("Bob")
        await agent.delete("Ann")
        async with gateway.http(key) as http:
            page = (await http.get(f"/v1/graphs/default/changes{query}")).json()
        assert [change["revision"] for change in page["items"]] == expected

    async def test_a_deletion_of_too_many_observations_matches_every_filter(
        self, gateway: RunningGateway, key: str, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store, "MAX_JUDGED_IDS", 3)
        await agent.create(NewEntity("Ann", "person", ("is tall", "likes tea", "writes programs")))
        await agent.create(NewEntity("Bob", "person", ("is tall",)))
        await agent.delete("Bob")
        await agent.delete("Ann")
        async with gateway.http(key) as http:
            page = (await http.get("/v1/graphs/default/changes?tag=x")).json()
        assert [change["revision"] for change in page["items"]] == [1, 4]

    @pytest.mark.parametrize("about", [(), ("Ann",)])
    async def test_changes_match_what_a_memory_was_before_and_after_them(
        self, gateway: RunningGateway, key: str, agent: Agent, about: tuple[str, ...], subtests: pytest.Subtests
    ) -> None:
        """Without it, a listener to a tag or a kind would keep a memory that has neither any more."""
        await agent.create(NewEntity("Ann", "person"))  # 1
        for tag, kind in (("red", "note"), ("blue", "note"), ("blue", "task"), ("green", "rule")):  # 2, 3, 4, 5
            await agent.remember(NewMemory("Tea is hot", about, tags=(tag,), kind=kind))
        expected = {"tag=red": [2, 3], "tag=blue": [3, 4, 5], "kind=note": [2, 3, 4], "kind=task": [4, 5]}
        async with gateway.http(key) as http:
            for query, revisions in expected.items():
                with subtests.test(query):
                    page = (await http.get(f"/v1/graphs/default/changes?{query}")).json()
                    assert [change["revision"] for change in page["items"]] == revisions

    async def test_a_stream_resumes_after_a_position_without_a_reported_change(
        self, hasty: RunningGateway, key: str, written: Agent
    ) -> None:
        async with listening(hasty, key, query="?kind=person&after_revision=4") as stream:
            event = await stream.next()
            while event is not None and event.revision != 7:
                event = await stream.next()
        async with listening(hasty, key, query="?kind=person", last=stream.place) as stream:
            await written.create(NewEntity("Ben", "person"))
            assert (await stream.named()).revision == 8


class TestResuming:
    @pytest.mark.proves("rules: listeners-hear-every-write")
    @examples(8)
    @given(
        cuts=st.lists(st.integers(0, 6), max_size=4),
        batches=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    )
    async def test_a_resumed_stream_reports_each_change_once_in_order(
        self, hasty: RunningGateway, key: str, db: Database, caller: Caller, cuts: list[int], batches: list[int]
    ) -> None:
        """`batches`: how many changes are written before each connection; `cuts`: after how many events each is
        broken off.
        """
        agent = Agent(db, caller, f"resumed-{next(_graphs)}")
        await agent.create("the first")
        told: list[int] = []
        place: str | None = "0"
        names = itertools.count(1)
        for batch, cut in itertools.zip_longest(batches, cuts, fillvalue=1):
            for _ in range(batch):
                await agent.create(f"thing {next(names)}")
            async with listening(hasty, key, str(agent.graph), last=place) as stream:
                there = await revision_of(db, caller, str(agent.graph))
                for _ in range(min(cut, there - len(told))):
                    told.append((await stream.named()).data["revision"])
                place = str(told[-1]) if told else "0"
        newest = await revision_of(db, caller, str(agent.graph))
        async with listening(hasty, key, str(agent.graph), last=place) as stream:
            told += await stream.changes(newest)
        assert told == list(range(1, newest + 1))


class TestPermissions:
    @pytest.mark.proves("security: streams-of-one-tenant")
    async def test_another_tenants_graph_of_the_same_name_is_not_reported(
        self, hasty: RunningGateway, key: str, agent: Agent, db: Database, new_tenant: NewTenant, issue: NewApiKey
    ) -> None:
        stranger = operator_caller(await new_tenant())
        theirs = Agent(db, stranger, None)
        await agent.create("ours")
        await theirs.create("theirs")
        async with listening(hasty, key) as stream:
            await theirs.create("more of theirs")
            await agent.create("more of ours")
            change = await stream.named()
            assert change.data["actor"] == agent.caller.subject
            assert change.revision == 2
            async with hasty.http(key) as http:
                page = (await http.get("/v1/graphs/default/changes?after_revision=1")).json()
            assert [change.data] == page["items"]

    @pytest.mark.proves("security: streams-of-one-tenant")
    async def test_an_unreachable_graph_looks_like_one_that_does_not_exist(
        self, gateway: RunningGateway, agent: Agent, db: Database, caller: Caller, issue: NewApiKey
    ) -> None:
        await agent.create("one")
        async with db.transaction(caller) as tx:
            await graphs.create_graph(tx, NewGraph("hidden"))
            ids = await graphs.graph_ids(tx, ["default"])
        confined = (await issue(caller, graph_ids=(ids["default"],))).secret
        answers = set()
        for graph in ("hidden", "nowhere"):
            async with gateway.http(confined, Accept="text/event-stream") as http:
                response = await http.get(f"/v1/graphs/{graph}/changes")
                answers.add((response.status_code, response.text))
        [(status, _)] = answers
        assert status == 403

    @pytest.mark.proves("security: revoked-streams")
    async def test_the_stream_of_a_revoked_key_ends_without_further_changes(
        self, hasty: RunningGateway, agent: Agent, db: Database, caller: Caller, issue: NewApiKey
    ) -> None:
        await agent.create("one")
        key = await issue(caller)
        async with listening(hasty, key.secret) as stream:
            async with db.transaction(caller) as tx:
                await identity.revoke_key(tx, key.key.id)
            await agent.create("two")
            event = await stream.next()
            assert event is not None
            assert (event.name, event.data) == ("end", {"reason": "unauthenticated"})
            assert await stream.next() is None

    async def test_the_stream_of_a_deleted_graph_ends(
        self, hasty: RunningGateway, key: str, db: Database, caller: Caller
    ) -> None:
        await Agent(db, caller, "short-lived").create("one")
        async with listening(hasty, key, "short-lived") as stream:
            async with db.transaction(caller) as tx:
                await graphs.delete_graph(tx, "short-lived", "test")
            assert (await stream.named("end")).data == {"reason": "graph_not_found"}


class TestLimits:
    @pytest.mark.proves("security: stream-bounds")
    async def test_number_of_streams_of_a_key_is_limited(self, hasty: RunningGateway, key: str, agent: Agent) -> None:
        await agent.create("one")
        async with listening(hasty, key), listening(hasty, key):
            async with listening(hasty, key):
                async with hasty.http(key, Accept="text/event-stream") as http:
                    refused = await http.get("/v1/graphs/default/changes")
                assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")

            async def opens() -> bool:
                async with listening(hasty, key) as stream:
                    return stream.status == 200

            await eventually(opens)

    @pytest.mark.proves("security: stream-bounds")
    async def test_a_stream_takes_no_slot(self, settings: Settings, key: str, agent: Agent) -> None:
        await agent.create("one")
        with serving(settings.model_copy(update={"concurrent_calls_per_tenant": 1, "calls_at_work": 1})) as narrow:
            async with listening(narrow, key), listening(narrow, key), narrow.http(key) as http:
                assert (await http.get("/v1/graphs")).status_code == 200

    async def test_a_stopping_gateway_ends_its_streams(self, settings: Settings, key: str, agent: Agent) -> None:
        await agent.create("one")
        with ExitStack() as running:
            gateway = running.enter_context(serving(settings))
            async with listening(gateway, key) as stream:
                stopping = asyncio.create_task(asyncio.to_thread(running.close))
                assert (await stream.named("end")).data == {"reason": "draining"}
                assert await stream.next() is None
            await stopping


async def azip(lines: AsyncIterator[str], numbers: range) -> AsyncIterator[tuple[str, int]]:
    """As many lines as there are numbers."""
    for number in numbers:
        yield await anext(lines), number
