"""Every route answers as the OpenAPI document says, for any generated request from any caller (schemathesis)."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, CheckFunction, GenerationMode, Response, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from recollect.accounts.identity.model import operator_caller
from recollect.caller import ROLE_SCOPES, Role, Scope
from recollect.cells.databases import Databases
from recollect.settings import Settings
from recollect_gateway.callers.browser_sessions import TENANT_HEADER
from tests.conftest import NewTenant
from tests.support.documents import DOCUMENT, OF_TENANTS, OPERATIONS, responses_of
from tests.support.examples import examples
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import browser, joined, sign_in
from tests.support.routes import OPEN_TO_ALL
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.long


def without_credentials(document: dict[str, Any]) -> dict[str, Any]:
    """The document without security: otherwise schemathesis replaces the given credentials by generated ones."""
    told = copy.deepcopy(document)
    del told["components"]["securitySchemes"]
    for operation in (each for methods in told["paths"].values() for each in methods.values()):
        operation.pop("security", None)
    return told


HEADERS = {
    "content-disposition",
    "etag",
    "idempotency-replayed",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "recollect-facts-left-out",
    "recollect-revision",
    "retry-after",
    "www-authenticate",
}
"""Headers that mean something to a client of the API."""

SCHEMA = openapi.from_dict(without_credentials(DOCUMENT))


def can_be_invalid(method: str, path: str) -> bool:
    """Whether a request of the route can be invalid: in its path, its query, or its body."""
    told = DOCUMENT["paths"][path][method]
    return "requestBody" in told or any(each["in"] in ("path", "query") for each in told.get("parameters", ()))


def has_documented_headers(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """Each header of ours is listed with the response that has it; `response_headers_conformance` checks the values.

    Other errors than 429 have those about rates, too: the head of the document says so for all of them.
    """
    operation = DOCUMENT["paths"][case.operation.path][case.operation.method]
    told = responses_of(DOCUMENT, operation)[str(response.status_code)]
    listed = {name.lower() for name in told.get("headers", {})}
    implied = {"ratelimit", "ratelimit-policy"} if response.status_code >= 400 else set()
    assert {name.lower() for name in response.headers} & HEADERS <= listed | implied


AS_DOCUMENTED: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    has_documented_headers,
]


def is_refused(context: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """`negative_data_rejection`, except that a body may be refused as too large, and that any bytes are a file."""
    parts = case.meta.components if case.meta else {}
    wrong = {place for place, part in parts.items() if part.mode.is_negative}
    is_file = wrong == {ParameterLocation.BODY} and takes_files(case.operation.method, case.operation.path)
    return None if response.status_code == 413 or is_file else negative_data_rejection(context, response, case)


def takes_files(method: str, path: str) -> bool:
    """Whether the body of a request is a file of any bytes."""
    content = DOCUMENT["paths"][path][method].get("requestBody", {}).get("content", {})
    return any(told["schema"].get("type") == "string" for told in content.values())


def cases(method: str, path: str, mode: GenerationMode, **path_parameters: str) -> st.SearchStrategy[Case[Any]]:
    return SCHEMA[path][method].as_strategy(generation_mode=mode, path_parameters=path_parameters or None)


def named(path: str) -> dict[str, str]:
    """Known names for the path: generated ones are refused before anything else is tested."""
    return {name: known for name, known in (("name", "default"), ("node", "Ada")) if f"{{{name}}}" in path}


@dataclass(frozen=True)
class Who:
    """A caller with its credentials and scopes. An unknown caller may not even use routes without a scope."""

    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    scopes: frozenset[Scope] = frozenset()

    @property
    def known(self) -> bool:
        return bool(self.headers)

    def may(self, method: str, path: str) -> bool:
        """Whether the document allows the route to this caller."""
        return self.known and DOCUMENT["paths"][path][method]["x-recollect-scope"] in {None, *self.scopes}

    def is_known_to(self, gateway: RunningGateway) -> bool:
        """Whether the credentials are still valid: otherwise the answers would prove nothing."""
        with httpx2.Client(base_url=gateway.url, headers=dict(self.headers), cookies=dict(self.cookies)) as http:
            return http.get("/v1/plan").status_code == 200


def send(gateway: RunningGateway, case: Case[Any], checks: list[CheckFunction], who: Who) -> int:
    """Send the request, check the answer, and return its status."""
    response = case.call(
        base_url=gateway.url, headers=dict(who.headers), cookies=dict(who.cookies), timeout=MAX_WAIT_SECONDS
    )
    case.validate_response(response, checks=checks)
    return response.status_code


@pytest.fixture(scope="module")
async def everybody(
    gateway: RunningGateway, databases: Databases, settings: Settings, new_tenant: NewTenant, issue: NewApiKey
) -> list[Who]:
    """An unknown caller, a signed-in person of each role, and an admin's key, in the order of their rights."""
    caller, pepper = operator_caller(await new_tenant()), settings.key_secret.get_secret_value().encode()
    found = [Who()]
    for role in (Role.READER, Role.MEMBER, Role.ADMIN, Role.OWNER):
        person = await joined(databases, caller, role, pepper=pepper)
        async with browser(gateway) as http:
            assert (await sign_in(http, person.email)).status_code == 303
            cookies = {cookie.name: str(cookie.value) for cookie in http.cookies.jar}
        found.append(Who({TENANT_HEADER: caller.tenant}, cookies, ROLE_SCOPES[role]))
    key = (await issue(caller, kind="admin")).secret
    return [*found, Who({"Authorization": f"Bearer {key}"}, {}, frozenset(Scope))]


@pytest.mark.proves("security: no-route-without-a-key")
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_valid_request_is_answered_as_documented(
    gateway: RunningGateway, everybody: list[Who], method: str, path: str
) -> None:
    """For every caller. Lists answer all that may read them; other objects may exist or not."""
    told: list[set[int]] = [set() for _ in everybody]

    @examples(2)
    @given(cases(method, path, GenerationMode.POSITIVE, **named(path)))
    def check(case: Case[Any]) -> None:
        for who, statuses in zip(everybody, told, strict=True):
            statuses.add(send(gateway, case, AS_DOCUMENTED, who))

    check()
    if not path.startswith("/v1/") or path in OPEN_TO_ALL:
        return
    assert told[0] == {401}, "without a credential"
    for who, statuses in zip(everybody[1:], told[1:], strict=True):
        assert 401 not in statuses
        assert who.is_known_to(gateway)
        assert method != "get" or "{" in path or (200 in statuses) == who.may(method, path)


@pytest.mark.parametrize(("method", "path"), [route for route in OF_TENANTS if can_be_invalid(*route)])
def test_an_invalid_request_is_refused_as_documented(
    gateway: RunningGateway, everybody: list[Who], method: str, path: str
) -> None:
    @examples(2)
    @given(cases(method, path, GenerationMode.NEGATIVE))
    def check(case: Case[Any]) -> None:
        for who in everybody:
            send(gateway, case, [*AS_DOCUMENTED, is_refused], who)

    check()
    assert all(who.is_known_to(gateway) for who in everybody if who.known)
