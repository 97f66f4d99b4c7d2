"""Published MCP clients against a gateway process: each signs in or has a key, lists the tools and calls some."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from recollect.accounts.people.model import Person
from recollect.accounts.tenants.model import Tenant
from recollect.settings import Settings
from tests.support.oauth import Visitor
from tests.support.people import browser
from tests.verify.clients.programs import OWN, Program, asking, run
from tests.verify.processes import DeployedGateway, gateway_process

PROGRAMS = (
    Program("mcp_1", "mcp_1"),
    Program("mcp_2", OWN),
    Program("fastmcp_client", "fastmcp_2"),
    Program("fastmcp_client", "fastmcp_4"),
    Program("genai_client", "agents"),
    Program("langchain_client", "agents"),
    Program("adk_client", "agents", signs_in=False),
    Program("sdk", None),
    Program("sdk", None, environment={"SIGN_IN": "first"}),
    Program("mcp_remote", None),
    Program("ai_sdk", None),
    Program("gemini_cli", None),
)

REMEMBERING = [
    ("remember", {"items": [{"text": "Ada drinks tea", "about": ["Ada"]}]}),
    ("recall", {"query": "What does Ada drink?"}),
]
OF_MEMORY_SERVER = [
    ("create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": ["drinks tea"]}]}),
    ("search_nodes", {"query": "tea"}),
]
WAYS = (
    ("key", "127.0.0.1", "/mcp", REMEMBERING),
    ("key", "localhost", "/mcp/x/memory", OF_MEMORY_SERVER),
    ("sign-in", "127.0.0.1", "/mcp", REMEMBERING),
    ("sign-in", "127.0.0.1", "/mcp/x/memory", OF_MEMORY_SERVER),
    ("sign-in", "localhost", "/mcp/x/memory", OF_MEMORY_SERVER),
    ("sign-in", "localhost", "/t/{tenant}/mcp/x/memory", OF_MEMORY_SERVER),
)
"""How a client connects, by which name of the gateway, at which address, and its calls: the second finds what the first
stored."""


@pytest.fixture(scope="module")
def patient(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedGateway]:
    """A gateway at which one address may register and sign in as often as all these clients do."""
    changed = {"oauth_registrations_per_minute": 1000, "oauth_requests_per_minute": 10_000, "sign_ins_per_minute": 1000}
    with gateway_process(settings.model_copy(update=changed), tmp_path_factory.mktemp("patient") / "log") as deployed:
        yield deployed


@pytest.fixture
async def at_browser(patient: DeployedGateway, person: Person) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(patient.gateway) as http:
        yield http


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
async def test_a_client_connects_by_a_key_and_by_signing_in(
    patient: DeployedGateway,
    tenant: Tenant,
    person: Person,
    at_browser: httpx2.AsyncClient,
    key: str,
    program: Program,
    tmp_path: Path,
    subtests: pytest.Subtests,
) -> None:
    visitor = Visitor(at_browser, person.email)
    async with asking(visitor) as asked:
        for number, (way, name, path, calls) in enumerate(WAYS):
            if way == "sign-in" and not program.signs_in:
                continue
            with subtests.test(f"{way} {name} {path}"):
                url = patient.gateway.url.replace("127.0.0.1", name) + path.format(tenant=tenant.slug)
                errand = {"url": url, "key": key if way == "key" else None, "calls": calls, "person": asked}
                visits, folder = visitor.visits, tmp_path / str(number)
                folder.mkdir()
                found = await run(program, errand, folder)
                assert {tool for tool, _ in calls} <= set(found.tools)
                assert "drinks tea" in found.answers[1]
                assert visitor.visits - visits == (way == "sign-in"), "a person was asked once, or not at all"
    assert patient.faults() == []
