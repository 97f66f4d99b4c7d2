"""The OpenAPI document describes each route: scope and role, errors, valid examples, and pages."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from recollect.accounts.email_domains.model import MAX_DOMAINS
from recollect.accounts.identity_providers.model import MAX_PROVIDERS
from recollect.accounts.oauth.issuers.model import MAX_ISSUERS
from recollect.caller import ROLE_SCOPES, Caller, Role, Scope
from recollect.transfer.formats import FORMATS
from recollect_gateway.management.guards import takes_tokens
from tests.contract.test_route_toolsets import answered, handlers_by_name, toolsets_of_routes
from tests.support.documents import DOCUMENT, resolved, responses_of
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.routes import OPEN_TO_ALL

ROOT = Path(__file__).parents[2]
PROBLEM = "application/problem+json"
ERRORS = {"400", "401", "403", "404", "409", "413", "429", "503"}
ASKED_FOR = {"412", "422", "428"}
"""Statuses that only conditional or missing headers cause."""

OPERATIONS = {
    f"{method.upper()} {path}": told
    for path, methods in DOCUMENT["paths"].items()
    if path.startswith("/v1/")
    for method, told in methods.items()
}
OF_TENANTS = {name: told for name, told in OPERATIONS.items() if name.partition(" ")[2] not in OPEN_TO_ALL}
ON_ONE_PAGE = {
    "GET /v1/email-domains": f"{MAX_DOMAINS} at most",
    "GET /v1/identity-providers": f"{MAX_PROVIDERS} at most",
    "GET /v1/trusted-issuers": f"{MAX_ISSUERS} at most",
}
"""Lists that always are one page, and the reason why it is bounded."""

UNPAGED = {
    "GET /v1/plan": "one entry for each quota that there is",
    "GET /v1/usage/series": "from and to bound it",
}
"""Answers that contain a list without pages, and the reason why it is bounded."""


def faults(value: Any, schema: dict[str, Any]) -> list[str]:
    """The errors of a value by its schema."""
    whole = schema | {"components": DOCUMENT["components"]}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def bodies() -> list[tuple[str, str, dict[str, Any]]]:
    """Every JSON body: its operation, request or status, and its description."""
    found = []
    for name, told in OPERATIONS.items():
        parts = {"request": told.get("requestBody", {})}
        responses = responses_of(DOCUMENT, told)
        parts |= {status: response for status, response in responses.items() if status.startswith("2")}
        for part, described in parts.items():
            if content := described.get("content", {}).get("application/json"):
                found.append((name, part, content))
    return found


BODIES = [body for body in bodies() if body[2]["schema"].get("type") != "string"]
"""The bodies except files, which have formats of their own."""


def roles_of_the_table() -> dict[str, Role]:
    """The least role that the table in docs/people.md gives each scope."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "people.md").read_text().splitlines()
        if line.startswith("|")
    ]
    roles = [Role(name) for name in rows[0][1:]]
    least = {}
    for what, *cells in rows[2:]:
        if scope := re.search(r"`(\w+:\w+)`", what):
            least[scope[1]] = next(role for role, cell in zip(roles, cells, strict=True) if cell == "yes")
    return least


def lacks_scope(answer: httpx2.Response) -> bool:
    """Whether the answer refuses a missing scope; other answers may be files."""
    return answer.status_code == 403 and answer.json()["code"] == "scope_required"


async def test_each_export_matches_the_document(
    gateway: RunningGateway, admin_key: str, subtests: pytest.Subtests
) -> None:
    """JSON is an object, every other format is text."""
    told = responses_of(DOCUMENT, OPERATIONS["GET /v1/graphs/{name}/export"])["200"]["content"]
    async with gateway.http(admin_key) as http:
        for format_ in FORMATS:
            with subtests.test(format_):
                answer = await http.get("/v1/graphs/default/export", params={"format": format_})
                media_type = answer.headers["content-type"].partition(";")[0]
                body = answer.json() if media_type == "application/json" else answer.text
                assert faults(body, told[media_type]["schema"]) == []


class TestScopesAndRoles:
    def test_every_route_states_its_scope_and_role(self) -> None:
        assert len(OF_TENANTS) > 40
        for name, told in OF_TENANTS.items():
            assert told["x-recollect-scope"] in (None, *Scope), name
            assert told["x-recollect-role"] in list(Role), name
            assert told["description"].count("equires the scope") == (told["x-recollect-scope"] is not None), name
            ways: list[dict[str, list[str]]] = [{"apiKey": []}, {"accessToken": []}, {"session": [], "tenant": []}]
            assert told["security"] == (ways if takes_tokens(handlers_by_name()[name]) else [ways[0], ways[2]]), name
        for name in set(OPERATIONS) - set(OF_TENANTS):
            assert (OPERATIONS[name]["x-recollect-role"], OPERATIONS[name]["security"]) == (None, [{}]), name

    def test_the_role_of_each_route_is_that_of_the_table(self) -> None:
        table = roles_of_the_table()
        assert set(table) == set(Scope)
        for scope, role in table.items():
            below = [other for other in Role if Scope(scope) not in ROLE_SCOPES[other]]
            assert Scope(scope) in ROLE_SCOPES[role]
            assert role not in below
        for name, told in OF_TENANTS.items():
            scope = told["x-recollect-scope"]
            assert told["x-recollect-role"] == ("reader" if scope is None else table[scope]), name

    def test_each_security_scheme_is_described(self) -> None:
        schemes = DOCUMENT["components"]["securitySchemes"]
        assert {name for told in OPERATIONS.values() for way in told["security"] for name in way} == set(schemes)

    @pytest.mark.proves("security: stated-scopes")
    async def test_the_stated_scope_is_the_required_one(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        """A route refuses a key with every other scope, and accepts a key with this scope alone."""
        for scope in Scope:
            others = (await issue(caller, kind="admin", scopes=frozenset(set(Scope) - {scope}))).secret
            alone = (await issue(caller, kind="admin", scopes=frozenset({scope}))).secret
            async with gateway.http(others) as without, gateway.http(alone) as only:
                for name in toolsets_of_routes():
                    asked = OF_TENANTS[name]["x-recollect-scope"]
                    refused = lacks_scope(await answered(without, name))
                    assert refused == (asked == scope), (name, scope)
                    refused = lacks_scope(await answered(only, name))
                    assert refused == (asked not in (None, scope)), (name, scope)


class TestErrors:
    def test_each_error_is_a_problem_with_an_example(self, subtests: pytest.Subtests) -> None:
        for name, told in OPERATIONS.items():
            with subtests.test(name):
                responses = responses_of(DOCUMENT, told)
                assert set(responses) >= ERRORS
                assert "content" not in responses.get("304", {})
                for status in set(responses) - {"200", "201", "202", "204", "304"}:
                    assert set(responses[status]["content"]) == {PROBLEM}
                    assert len(responses[status]["description"]) > 20 or status == "415"
                    content = responses[status]["content"][PROBLEM]
                    assert resolved(DOCUMENT, content["schema"])["title"] == "Problem"
                    if status in ERRORS | ASKED_FOR:
                        assert faults(content["example"], content["schema"]) == []
                        assert content["example"]["status"] == int(status)


class TestExamples:
    def test_each_body_has_a_valid_example(self, subtests: pytest.Subtests) -> None:
        assert len(BODIES) > 80
        for name, part, content in BODIES:
            with subtests.test(f"{name} {part}"):
                assert faults(content["example"], content["schema"]) == []

    def test_an_invalid_example_is_found(self) -> None:
        schema = {"$ref": "#/components/schemas/CreateGraphBody"}
        assert faults({"name": "people"}, schema) == []
        assert faults({"name": 7}, schema) != []

    def test_each_example_belongs_to_a_route(self) -> None:
        told = ROOT / "services" / "recollect_gateway" / "management" / "openapi" / "assets" / "examples.json"
        assert set(json.loads(told.read_text())) <= set(OPERATIONS)


class TestLists:
    def test_each_list_is_bounded_and_in_pages(self) -> None:
        unpaged, paged, single = set(), set(), set()
        for name, told in OPERATIONS.items():
            content = responses_of(DOCUMENT, told).get("200", {}).get("content", {}).get("application/json")
            properties = resolved(DOCUMENT, content["schema"]).get("properties", {}) if content else {}
            if not name.startswith("GET "):
                continue
            if "next_cursor" in properties and name in ON_ONE_PAGE:
                assert "parameters" not in told, name
                single.add(name)
            elif "next_cursor" in properties:
                parameters = {parameter["name"]: parameter["schema"] for parameter in told["parameters"]}
                assert (parameters["limit"]["minimum"], parameters["limit"]["maximum"] <= 200) == (1, True), name
                assert "cursor" in parameters, name
                paged.add(name)
            elif any(resolved(DOCUMENT, of.get("items", {})).get("type") == "object" for of in properties.values()):
                unpaged.add(name)
        assert (unpaged, single) == (set(UNPAGED), set(ON_ONE_PAGE))
        assert len(paged) > 12
