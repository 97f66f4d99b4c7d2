"""/oauth/authorize: who is asked, what the page shows and lets choose, and where browsers are sent."""

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import Grant
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway, serving
from tests.support.oauth import CALLBACK, HandClient, Visitor, consent
from tests.support.people import browser, joined, sign_in

REFUSALS = [
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": None}, "unsupported_response_type"),
    ({"response_type": 'code"é'}, "unsupported_response_type"),
    ({"code_challenge": None}, "invalid_request"),
    ({"code_challenge": "short"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"scope": "everything"}, "invalid_scope"),
    ({"scope": "profile claudeai"}, "invalid_scope"),
    ({"resource": "https://elsewhere.example.com/mcp"}, "invalid_target"),
    ({"resource": "/mcp"}, "invalid_target"),
    ({"prompt": "none"}, "consent_required"),
]
"""Faults of a request, and the error for its client."""


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def person(databases: Databases, caller: Caller, pepper: bytes) -> Person:
    return await joined(databases, caller, Role.MEMBER, pepper=pepper)


@pytest.fixture
async def http(gateway: RunningGateway, person: Person) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser in which the person is signed in."""
    async with browser(gateway) as http:
        await sign_in(http, person.email)
        yield http


@pytest.fixture
def visitor(http: httpx2.AsyncClient, person: Person) -> Visitor:
    return Visitor(http, person.email)


@pytest.fixture
async def client(gateway: RunningGateway, http: httpx2.AsyncClient) -> HandClient:
    return await HandClient.register(gateway, http)


def parameters_of(location: str) -> dict[str, str]:
    """The parameters for a client in an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def way_back(answer: httpx2.Response) -> str:
    """The address of a client to which a page offers a link, without sending anybody there."""
    assert (answer.status_code, answer.headers.get("location")) == (400, None), answer.text
    (link,) = re.findall(r'<a href="([^"]*)" rel="noreferrer">', answer.text)
    return unescape(link)


async def shown(http: httpx2.AsyncClient, address: str) -> str:
    """The page at this address."""
    answer = await http.get(address)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


async def granted(db: Database, caller: Caller) -> list[Grant]:
    async with db.transaction(caller, read_only=True) as tx:
        return await grants.list_grants(tx)


class TestBeforeConsent:
    async def test_a_person_who_is_not_signed_in_signs_in_first_and_returns(
        self, gateway: RunningGateway, client: HandClient
    ) -> None:
        address = client.request()
        async with browser(gateway) as stranger:
            answer = await stranger.get(address)
            assert answer.status_code == 303
            assert answer.headers["location"] == "/sign-in?next=" + quote(address.removeprefix(gateway.url), safe="")

    async def test_prompt_none_tells_the_client_that_nobody_is_signed_in_by_a_link(
        self, gateway: RunningGateway, visitor: Visitor, client: HandClient
    ) -> None:
        await client.code(visitor)
        async with browser(gateway) as stranger:
            answer = await stranger.get(client.request(prompt="none"))
        assert parameters_of(way_back(answer))["error"] == "login_required"

    async def test_a_person_in_several_organisations_chooses_one(
        self,
        http: httpx2.AsyncClient,
        client: HandClient,
        person: Person,
        db: Database,
        databases: Databases,
        new_tenant: NewTenant,
        pepper: bytes,
        caller: Caller,
    ) -> None:
        second = operator_caller(await new_tenant())
        async with db.transaction(second) as tx:
            invited = await members.invite(tx, person.email, Role.READER, pepper=pepper)
        await members.join(databases, await members.open_invitation(databases, invited.secret, pepper=pepper), person)
        page = await shown(http, client.request())
        links = dict(re.findall(r'<a href="([^"]*)">([^<]*)</a>', page))
        assert set(links.values()) == {caller.tenant.title(), second.tenant.title()}
        (chosen,) = [link for link, name in links.items() if name == second.tenant.title()]
        page = await shown(http, chosen.replace("&amp;", "&"))
        assert "memory:write, which your role does not have" in page
        answer = await consent(http, page, {"decision": "allow"})
        assert "code" in parameters_of(answer.headers["location"])
        assert [grant.scopes for grant in await granted(db, second)] == [("memory:read",)]
        assert await granted(db, caller) == []

    async def test_a_tenants_own_address_determines_the_organisation(
        self, gateway: RunningGateway, visitor: Visitor, client: HandClient, caller: Caller, db: Database
    ) -> None:
        resource = f"{gateway.url}/t/{caller.tenant}/mcp"
        await client.code(visitor, resource=resource)
        (grant,) = await granted(db, caller)
        assert grant.resource == resource

    async def test_another_tenant_looks_like_one_that_does_not_exist(
        self,
        http: httpx2.AsyncClient,
        gateway: RunningGateway,
        client: HandClient,
        new_tenant: NewTenant,
        owner: asyncpg.Connection,
        caller: Caller,
    ) -> None:
        foreign = (await new_tenant()).slug
        pages = []
        for tenant in (foreign, "nobody-has-this-one"):
            for address in (client.request(resource=f"{gateway.url}/t/{tenant}/mcp"), client.request(tenant=tenant)):
                answer = await http.get(address)
                assert answer.status_code == 400
                pages.append(re.sub(r'value="\w+"', "", answer.text))
        assert len(set(pages)) == 1
        await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", caller.tenant_id)
        answer = await http.get(client.request())
        assert re.sub(r'value="\w+"', "", answer.text) == pages[0]


class TestConsentPage:
    @pytest.mark.proves("security: consent")
    async def test_the_page_shows_who_asks_for_what_and_where_it_leads(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, person: Person, caller: Caller
    ) -> None:
        client = await HandClient.register(
            gateway,
            http,
            client_name="<script>alert(1)</script>",
            client_uri="https://client.example.com",
            redirect_uris=["https://client.example.com/cb?x=1"],
        )
        answer = await http.get(client.request(scope="memory:read openid tenant:admin"))
        page = answer.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>" not in page
        for said in ("Nobody has checked", "client.example.com", caller.tenant, person.email, "memory:read"):
            assert said in page
        assert "tenant:admin, which your role does not have" in page
        assert "memory:write" not in page
        assert "your own machine" not in page
        policy = answer.headers["content-security-policy"]
        assert "form-action 'self' https:;" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"

    async def test_the_page_warns_of_clients_on_the_own_machine(
        self, http: httpx2.AsyncClient, client: HandClient
    ) -> None:
        answer = await http.get(client.request())
        assert "your own machine" in answer.text
        assert "127.0.0.1:3000" in answer.text
        assert "form-action 'self' https: http://127.0.0.1:3000;" in answer.headers["content-security-policy"]

    async def test_graphs_and_toolsets_can_be_chosen(
        self, visitor: Visitor, client: HandClient, db: Database, caller: Caller
    ) -> None:
        async with db.transaction(caller) as tx:
            work = await graphs.create_graph(tx, NewGraph("work"))
        visitor.chosen = {
            "decision": "allow",
            "scope": "memory:read",
            "graphs": "some",
            "graph": str(work.id),
            "toolsets": "some",
            "toolset": ["agent", "memory"],
        }
        await client.code(visitor)
        (grant,) = await granted(db, caller)
        assert (grant.scopes, grant.graph_ids) == (("memory:read",), (work.id,))
        assert grant.toolsets == ("agent", "memory")

    @pytest.mark.parametrize(
        ("chosen", "said"),
        [
            ({"scope": []}, "Choose what it may do"),
            ({"scope": "tenant:admin"}, "Choose what it may do"),
            ({"graphs": "some"}, "Choose at least one graph"),
            ({"graphs": "some", "graph": "not-an-id"}, "Choose at least one graph"),
            ({"toolsets": "some"}, "Choose at least one toolset"),
            ({"toolsets": "some", "toolset": "nothing"}, "Unknown toolset"),
        ],
    )
    async def test_an_invalid_choice_is_asked_for_again(
        self, http: httpx2.AsyncClient, client: HandClient, db: Database, caller: Caller, chosen: Any, said: str
    ) -> None:
        answer = await consent(http, await shown(http, client.request()), {"decision": "allow", **chosen})
        assert answer.status_code == 400
        assert said in answer.text
        assert await granted(db, caller) == []

    async def test_another_tenants_graphs_cannot_be_chosen(
        self, http: httpx2.AsyncClient, client: HandClient, db: Database, new_tenant: NewTenant
    ) -> None:
        async with db.transaction(operator_caller(await new_tenant()), read_only=True) as tx:
            foreign = (await graphs.get_graph(tx, "default")).id
        page = await shown(http, client.request())
        assert str(foreign) not in page
        answer = await consent(http, page, {"decision": "allow", "graphs": "some", "graph": str(foreign)})
        assert "Choose at least one graph" in answer.text

    @pytest.mark.proves("security: consent")
    async def test_a_form_of_another_site_grants_nothing(
        self, http: httpx2.AsyncClient, client: HandClient, db: Database, caller: Caller
    ) -> None:
        address = client.request()
        page = await shown(http, address)
        fields = {"decision": "allow", "scope": "memory:read", "graphs": "all", "toolsets": "all"}
        token = re.search(r'name="form_token" value="(\w+)"', page)
        assert token
        forged = [
            await http.post(address, data=fields),
            await http.post(address, data=fields | {"form_token": "x"}),
            await http.post(
                address, data=fields | {"form_token": token[1]}, headers={"Origin": "https://evil.example"}
            ),
        ]
        assert [answer.status_code for answer in forged] == [403] * 3
        assert await granted(db, caller) == []

    async def test_a_person_whose_role_allows_nothing_of_it_is_told_so(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes, client: HandClient
    ) -> None:
        reader = await joined(databases, caller, Role.READER, pepper=pepper)
        async with browser(gateway) as http:
            await sign_in(http, reader.email)
            answer = await http.get(client.request(scope="memory:write"))
        assert answer.status_code == 400
        assert "which allows nothing that the client asks for" in answer.text


class TestRedirect:
    async def test_consent_returns_a_code_the_state_and_the_issuer(
        self, visitor: Visitor, client: HandClient, gateway: RunningGateway
    ) -> None:
        location = await visitor.visit(client.request())
        assert location.startswith(f"{CALLBACK}?")
        said = parameters_of(location)
        assert said.pop("code").startswith("rcl_code_")
        assert said == {"state": "the state", "iss": gateway.url}

    async def test_refusal_returns_an_error_and_grants_nothing(
        self, visitor: Visitor, client: HandClient, gateway: RunningGateway, db: Database, caller: Caller
    ) -> None:
        visitor.chosen = {"decision": "deny"}
        said = parameters_of(await visitor.visit(client.request()))
        assert (said["error"], said["state"], said["iss"]) == ("access_denied", "the state", gateway.url)
        assert await granted(db, caller) == []

    @pytest.mark.parametrize(("changed", "error"), REFUSALS)
    async def test_a_client_with_a_grant_of_the_person_gets_the_error_of_its_request(
        self, visitor: Visitor, client: HandClient, gateway: RunningGateway, changed: Any, error: str
    ) -> None:
        await client.code(visitor)
        answer = await visitor.http.get(client.request(**changed))
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"].startswith(f"{CALLBACK}?")
        said = parameters_of(answer.headers["location"])
        assert (said["error"], said["state"], said["iss"]) == (error, "the state", gateway.url)

    @pytest.mark.proves("security: error-redirects")
    @pytest.mark.parametrize(("changed", "error"), REFUSALS)
    async def test_for_another_client_the_person_decides_whether_to_go_there(
        self, http: httpx2.AsyncClient, client: HandClient, gateway: RunningGateway, changed: Any, error: str
    ) -> None:
        """Otherwise, whoever registers a client could send browsers anywhere by a link to this server."""
        answer = await http.get(client.request(**changed))
        location = way_back(answer)
        assert "127.0.0.1:3000" in re.sub(r'href="[^"]*"', "", answer.text)
        assert location.startswith(f"{CALLBACK}?")
        said = parameters_of(location)
        assert (said["error"], said["state"], said["iss"]) == (error, "the state", gateway.url)

    @pytest.mark.proves("security: error-redirects")
    async def test_a_client_with_a_grant_of_another_person_only_gets_no_redirect(
        self,
        gateway: RunningGateway,
        visitor: Visitor,
        client: HandClient,
        databases: Databases,
        caller: Caller,
        pepper: bytes,
    ) -> None:
        await client.code(visitor)
        other = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        async with browser(gateway) as http:
            await sign_in(http, other.email)
            assert parameters_of(way_back(await http.get(client.request(prompt="none"))))["error"] == "consent_required"

    @pytest.mark.proves("security: redirect-addresses")
    @pytest.mark.parametrize(
        "changed",
        [
            {"client_id": None},
            {"client_id": "rcl_client_unknown"},
            {"client_id": "https://127.0.0.1/x"},
            {"redirect_uri": "https://evil.example/cb"},
            {"redirect_uri": "http://127.0.0.1:3000/other"},
            {"redirect_uri": "http://127.0.0.1:3000/callback?x=1"},
            {"redirect_uri": "http://localhost:3000/callback"},
            {"redirect_uri": "http://127.0.0.1:3000@evil.example/callback"},
            {"redirect_uri": 'http://127.0.0.1/"é'},
            {"redirect_uri": "javascript:alert(1)"},
        ],
    )
    async def test_no_browser_is_sent_to_an_address_that_is_not_the_clients(
        self, http: httpx2.AsyncClient, client: HandClient, changed: Any
    ) -> None:
        answer = await http.get(client.request(**changed))
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert answer.headers["content-type"].startswith("text/html")
        assert "evil.example" not in answer.text

    async def test_a_repeated_or_unreadable_parameter_is_refused(
        self, http: httpx2.AsyncClient, client: HandClient
    ) -> None:
        address = client.request()
        for more in ("&state=x", "&resource=https://x.example/mcp", "&x=%ff", "&x=%00", "&x=" + "y" * 4001):
            answer = await http.get(address + more)
            assert (answer.status_code, answer.headers.get("location")) == (400, None), more[:20]

    @pytest.mark.parametrize("port", ["", ":1", ":54321"])
    async def test_a_program_on_the_own_machine_may_listen_on_any_port(
        self, visitor: Visitor, client: HandClient, port: str
    ) -> None:
        client.redirect_uri = f"http://127.0.0.1{port}/callback"
        issued = await client.tokens(visitor)
        assert issued["access_token"]
        assert visitor.landed.startswith(f"{client.redirect_uri}?")

    async def test_the_only_redirect_address_of_a_client_need_not_be_given(
        self, visitor: Visitor, client: HandClient
    ) -> None:
        assert "code" in parameters_of(await visitor.visit(client.request(redirect_uri=None)))

    async def test_the_issuer_parameter_can_be_disabled(self, settings: Settings, person: Person) -> None:
        with serving(settings.model_copy(update={"oauth_issuer_parameter": False})) as gateway:
            async with browser(gateway) as http:
                client = await HandClient.register(gateway, http)
                assert "iss" not in parameters_of(await Visitor(http, person.email).visit(client.request()))
