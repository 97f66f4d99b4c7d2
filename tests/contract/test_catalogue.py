"""Every tool of the catalogue: its definition, and that it behaves as the definition says."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from recollect.times import NEEDED
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.server import definition
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS, TOOLSETS
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES, OF_ANOTHER_GRAPH, OF_NO_GRAPH, Played
from tests.support.gateway import MODES, NewApiKey, RunningGateway, revision_of, rpc_headers

DEFINITIONS = {
    f"{'+'.join(sorted(told.toolsets))}: {told.name}": told for tool in CATALOGUE for told in (tool, *tool.dialects)
}
"""Every definition of a tool, by the toolsets that list it and its name there."""
AGENT_TOKENS = 2_000
LISTED_TOKENS = {"agent": 1_550, "memory": 3_600, "all": 16_500}
IDEMPOTENT_AS_CALLED_HERE = frozenset({"put_node", "revise"})
"""Idempotent only as the examples call them: without a new lineage, and without days until the expiry."""
DESTRUCTIVE = ("delete_", "forget", "remove_", "merge_", "compress_", "compact", "undo_", "import_")
"""Prefixes of the names of destructive tools."""
WRONG = {"wrong": ["type"]}
"""A value that no argument accepts except metadata, which is any object."""


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    """A caller of the tenant of the tests that write nothing."""
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def http(gateway: RunningGateway, issue: NewApiKey, tenant_caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http((await issue(tenant_caller, kind="admin")).secret, **rpc_headers()) as http:
        yield http


@dataclass(frozen=True)
class CalledTwice:
    """The results of two equal calls of a tool, and the revision of the graph before and after each."""

    before: int
    first: dict[str, Any]
    after_first: int
    second: dict[str, Any]
    after_second: int


@pytest.fixture(scope="module")
async def twice(
    gateway: RunningGateway, db: Database, new_tenant: NewTenant, issue: NewApiKey
) -> dict[str, CalledTwice]:
    """Every example, called twice in its order, in which it finds what it needs; several tests check the results."""
    caller, played = operator_caller(await new_tenant()), Played()
    called: dict[str, CalledTwice] = {}
    async with gateway.http((await issue(caller, kind="admin")).secret, **rpc_headers()) as http:
        for name, example in EXAMPLES.items():
            arguments = played.fill(example)
            before = await revision_of(db, caller)
            first, after_first = await call(gateway, http, TOOLS[name], arguments), await revision_of(db, caller)
            second, after_second = await call(gateway, http, TOOLS[name], arguments), await revision_of(db, caller)
            played.keep(name, first)
            called[name] = CalledTwice(before, first, after_first, second, after_second)
    return called


async def call(gateway: RunningGateway, http: httpx2.AsyncClient, tool: ToolSpec, arguments: Any) -> dict[str, Any]:
    return await gateway.call(http, tool.name, arguments, path="/mcp/x/all")


async def refusal(gateway: RunningGateway, http: httpx2.AsyncClient, tool: ToolSpec, arguments: Any) -> tuple[str, str]:
    """The path and the text of the error."""
    result = await call(gateway, http, tool, arguments)
    assert result["isError"], result
    error = result["_meta"][ERROR_META]
    assert error["code"] == "invalid_input"
    return error["path"], error_message(result)


def error_message(result: dict[str, Any]) -> str:
    """The message of an error: its text or, where a dialect has an envelope for errors, the message in it."""
    text: str = result.get("structuredContent", {}).get("error", result["content"][0]["text"])
    return text


class TestDefinitions:
    def test_names_are_unique(self) -> None:
        assert len({tool.name for tool in CATALOGUE}) == len(CATALOGUE)
        assert len(DEFINITIONS) == sum(1 + len(tool.dialects) for tool in CATALOGUE)

    @pytest.mark.proves("rules: annotations")
    def test_each_tool_has_a_title_and_a_description(self, subtests: pytest.Subtests) -> None:
        for name, tool in DEFINITIONS.items():
            with subtests.test(name):
                listed = definition(tool)
                assert listed.title
                assert listed.annotations is not None
                assert listed.description
                assert listed.description.endswith(".")

    @pytest.mark.proves("rules: annotations")
    def test_each_tool_has_every_annotation(self, subtests: pytest.Subtests) -> None:
        """The defaults of MCP for missing annotations are: it writes, is destructive, and is not idempotent."""
        for name, tool in DEFINITIONS.items():
            with subtests.test(name):
                hints = definition(tool).annotations
                assert hints is not None
                assert hints.open_world_hint is False
                assert bool(hints.read_only_hint) is (tool.scope is Scope.MEMORY_READ)
                if not hints.read_only_hint:
                    assert (hints.destructive_hint is None) is tool.name.startswith(DESTRUCTIVE)
                    assert bool(hints.idempotent_hint) is tool.idempotent

    @pytest.mark.proves("rules: wrong-arguments-write-nothing")
    def test_schemas_are_valid_json_schema(self, subtests: pytest.Subtests) -> None:
        for name, tool in DEFINITIONS.items():
            with subtests.test(name):
                listed = definition(tool)
                assert listed.output_schema is not None
                for schema in (listed.input_schema, listed.output_schema):
                    Draft202012Validator.check_schema(schema)
                    assert schema["type"] == "object"
                    assert "$ref" not in json.dumps(schema)
                assert json_schema(tool.arguments)["additionalProperties"] is False

    @pytest.mark.proves("rules: everything-is-bounded")
    def test_lists_are_bounded(self, subtests: pytest.Subtests) -> None:
        for name, tool in DEFINITIONS.items():
            with subtests.test(name):
                whole = json_schema(tool.arguments)
                unbounded = [path for path, schema in nested(whole) if "items" in schema]
                bounded = [path for path, schema in nested(whole) if "maxItems" in schema]
                assert unbounded == bounded

    def test_toolsets_are_known(self, subtests: pytest.Subtests) -> None:
        for name, tool in DEFINITIONS.items():
            with subtests.test(name):
                assert tool.toolsets
                assert tool.toolsets <= TOOLSETS

    @pytest.mark.proves("rules: order-of-tools")
    @pytest.mark.parametrize("revision", MODES)
    async def test_tools_are_listed_in_the_order_of_the_catalogue(
        self, gateway: RunningGateway, key: str, revision: str
    ) -> None:
        for _ in range(2):
            async with gateway.client(key, "/mcp/x/all", revision=revision) as client:
                listed = (await client.list_tools()).tools
                assert [tool.name for tool in listed] == [tool.name for tool in CATALOGUE]

    @pytest.mark.proves("agent-toolset: listing-under-2000-tokens")
    async def test_the_list_of_toolset_agent_takes_few_tokens(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        answer = await gateway.post(http, "tools/list", {}, path="/mcp")
        assert token_count(json.dumps(answer["result"]["tools"])) < AGENT_TOKENS

    @pytest.mark.parametrize(("toolset", "tokens"), LISTED_TOKENS.items())
    async def test_the_list_of_each_toolset_takes_few_tokens(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, toolset: str, tokens: int
    ) -> None:
        """By the rule of four characters a token."""
        answer = await gateway.post(http, "tools/list", {}, path=f"/mcp/x/{toolset}")
        listed = json.dumps(answer["result"]["tools"], ensure_ascii=False, separators=(",", ":"))
        assert len(listed) / 4 < tokens


class TestBehaviour:
    @pytest.mark.proves("rules: read-only-tools-write-nothing")
    def test_only_tools_that_write_move_the_revision(self, twice: dict[str, CalledTwice]) -> None:
        moved = {name: called.after_first - called.before for name, called in twice.items()}
        still = OF_ANOTHER_GRAPH | OF_NO_GRAPH | {tool.name for tool in CATALOGUE if tool.read_only}
        assert moved == {tool.name: int(tool.name not in still) for tool in CATALOGUE}

    @pytest.mark.proves("rules: idempotent-tools")
    def test_an_idempotent_tool_changes_nothing_the_second_time(
        self, twice: dict[str, CalledTwice], subtests: pytest.Subtests
    ) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                called = twice[tool.name]
                assert not called.first["isError"], called.first
                assert not called.second["isError"] or (tool.destructive and is_gone(called.second)), called.second
                unchanged = called.after_second == called.after_first
                assert unchanged is (tool.idempotent or tool.name in IDEMPOTENT_AS_CALLED_HERE)

    @pytest.mark.proves("rules: results-fit-their-schema")
    def test_results_match_their_schema(self, twice: dict[str, CalledTwice], subtests: pytest.Subtests) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                result = twice[tool.name].first
                assert not result["isError"], result
                for schema in (definition(tool).output_schema, json_schema(tool.result)):
                    Draft202012Validator(schema or {}).validate(result["structuredContent"])

    @pytest.mark.proves("rules: scopes-of-tools")
    async def test_a_tool_needs_exactly_its_scope(
        self, gateway: RunningGateway, issue: NewApiKey, tenant_caller: Caller, subtests: pytest.Subtests
    ) -> None:
        """A key with the tool's scope and no other is enough; one with all others is not."""
        for scope in {tool.scope: None for tool in CATALOGUE}:
            enough = await issue(tenant_caller, scopes=frozenset({scope}))
            others = await issue(tenant_caller, scopes=frozenset(Scope) - {scope})
            async with (
                gateway.http(enough.secret, **rpc_headers()) as allowed,
                gateway.http(others.secret, **rpc_headers()) as refused,
            ):
                for tool in [tool for tool in CATALOGUE if tool.scope is scope]:
                    with subtests.test(tool.name):
                        called = {"name": tool.name, "arguments": {"graph": "default", "unheard_of": 1}}
                        assert "result" in await gateway.post(allowed, "tools/call", called, path="/mcp/x/all")
                        answer = await gateway.post(refused, "tools/call", called, path="/mcp/x/all")
                        told = f"Unknown tool: {tool.name}. It is for credentials that have the scope {tool.scope}"
                        assert "result" not in answer
                        assert answer["error"] == {"code": -32602, "message": told}


class TestRefusals:
    """Invalid arguments are refused with their path, and nothing is written."""

    @pytest.mark.proves("rules: wrong-arguments-write-nothing")
    async def test_unknown_arguments_are_refused(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        db: Database,
        tenant_caller: Caller,
        subtests: pytest.Subtests,
    ) -> None:
        """Those that may be misspelt ones of the tool's own; `test_client_arguments.py` has the others."""
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                misspelt = f"{next(iter(definition(tool).input_schema['properties'])).upper()}-"
                arguments = {**EXAMPLES[tool.name], misspelt: 1}
                assert await refusal(gateway, http, tool, arguments) == (misspelt, f"{misspelt}: Unknown argument")
                assert await revision_of(db, tenant_caller) == 0

    @pytest.mark.proves("rules: wrong-arguments-write-nothing")
    async def test_missing_arguments_are_refused(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        db: Database,
        tenant_caller: Caller,
        subtests: pytest.Subtests,
    ) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                for name in definition(tool).input_schema.get("required", ()):
                    arguments = {key: value for key, value in EXAMPLES[tool.name].items() if key != name}
                    assert await refusal(gateway, http, tool, arguments) == (name, f"{name}: Required")
                assert await revision_of(db, tenant_caller) == 0

    @pytest.mark.proves("rules: wrong-arguments-write-nothing")
    async def test_arguments_of_the_wrong_type_are_refused(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        db: Database,
        tenant_caller: Caller,
        subtests: pytest.Subtests,
    ) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                for name, schema in definition(tool).input_schema["properties"].items():
                    wrong = [WRONG] if schema.get("type") == "object" else WRONG
                    path, text = await refusal(gateway, http, tool, {**EXAMPLES[tool.name], name: wrong})
                    is_inside = path.startswith(f"{name}.")  # Of an object, it is what the object lacks.
                    assert path == name or is_inside
                    assert text.startswith(f"{path}: " if is_inside else f"{name}: Expected ")
                assert await revision_of(db, tenant_caller) == 0

    async def test_invalid_graph_names_are_refused(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        db: Database,
        tenant_caller: Caller,
        subtests: pytest.Subtests,
    ) -> None:
        for tool in CATALOGUE:
            if tool.name == "fetch":
                continue  # It has the one argument that OpenAI's contract names.
            with subtests.test(tool.name):
                for name in (" ", "a b", "a/b", "é", "x" * 129, "default\n"):
                    path, _ = await refusal(gateway, http, tool, {**EXAMPLES[tool.name], "graph": name})
                    assert path == "graph"
                assert await revision_of(db, tenant_caller) == 0

    @pytest.mark.proves(
        "rules: wrong-arguments-write-nothing", "enhanced-server: validation", "enhanced-server: wrong-argument-paths"
    )
    @pytest.mark.parametrize(
        ("tool", "arguments", "error_message"),
        [
            (
                "create_entities",
                {"entities": [{"name": "A"}]},
                "entities.0.entityType: Required\nentities.0.observations: Required",
            ),
            (
                "create_entities",
                {"entities": [{"name": "A", "entityType": "", "observations": []}]},
                "entities.0.entityType: String must contain at least 1 character",
            ),
            ("create_entities", {"entities": [{"entityType": "t", "observations": []}]}, "entities.0.name: Required"),
            (
                "create_entities",
                {"entities": [{"name": "A", "entityType": "t", "observations": ["x", 1]}]},
                "entities.0.observations.1: Expected `str`, got `int`",
            ),
            (
                "create_entities",
                {"entities": [{"name": "A", "entityType": "t", "observations": [], "colour": "red"}]},
                "entities.0.colour: Unknown argument",
            ),
            (
                "create_relations",
                {"relations": [{"from": "A", "to": "", "relationType": "r"}]},
                "relations.0.to: String must contain at least 1 character",
            ),
            (
                "add_observations",
                {"observations": [{"entityName": "A", "contents": ["ok", "a\x00b"]}]},
                "observations.0.contents.1: Holds a NUL or half a character (a lone surrogate), which cannot be stored",
            ),
            ("remember", {"items": []}, "items: Array must contain at least 1 element"),
            (
                "remember",
                {"items": [{"text": "x", "at": "last week"}]},
                f"items.0.at: {NEEDED}",
            ),
            ("recall", {"query": "x", "since": "2026-01"}, f"since: {NEEDED}"),
            ("recall", {"query": "x", "until": "2026-01-31T12"}, f"until: {NEEDED}"),
            ("archive_entities", {"olderThan": ""}, f"olderThan: {NEEDED}"),
            ("usage", {"from": "01/31/2026"}, f"from: {NEEDED}"),
            (
                "remember",
                {"items": [{"text": "x"}, {"text": "y", "at": "0001-01-01T00:00:00+12:00"}]},
                "items.1.at: Outside the years 1 to 9999",
            ),
            (
                "remember",
                {"items": [{"text": "x", "metadata": {"big": "x" * 100_001}}]},
                "items.0.metadata: Metadata too large (max 100000 bytes)",
            ),
            (
                "recall",
                {},
                "query: Give query, or queries with 1 to 8 entries, or a filter such as about or tags, which lists",
            ),
            ("recall", {"query": "x", "until": "9999-12-31T23:59:59-12:00"}, "until: Outside the years 1 to 9999"),
        ],
    )
    async def test_invalid_nested_values_are_refused_with_their_paths(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        db: Database,
        tenant_caller: Caller,
        tool: str,
        arguments: Any,
        error_message: str,
    ) -> None:
        result = await gateway.call(http, tool, arguments, path="/mcp/x/all")
        assert result["isError"]
        assert result["content"][0]["text"] == error_message
        paths = [line.split(":")[0] for line in error_message.split("\n")]
        several = {"paths": paths} if len(paths) > 1 else {}
        assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": paths[0]} | several
        assert await revision_of(db, tenant_caller) == 0


def is_gone(result: dict[str, Any]) -> bool:
    """Whether the result of a deletion is that the object does not exist: some dialects say so the second time."""
    code: str = result["_meta"][ERROR_META]["code"]
    return code in ("node_not_found", "entity_not_found")


def token_count(text: str) -> int:
    """Tokens of a text, by the tokenizer of a Llama model, which stands in for those of the agents."""
    pytest.importorskip("wordllama", reason="has that tokenizer, and no wheel for every Python and machine")
    tokenizer = files("wordllama") / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return len(Tokenizer.from_str(tokenizer.read_text(encoding="utf-8")).encode(text, add_special_tokens=False).ids)


def nested(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """A schema and its nested schemas, each with its path."""
    found = [(path, schema)]
    for name, inner in schema.get("properties", {}).items():
        found += nested(inner, f"{path}.{name}")
    return found + (nested(schema["items"], f"{path}[]") if "items" in schema else [])
