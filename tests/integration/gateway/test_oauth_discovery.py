"""Discovery before a client has a token: challenges, metadata documents, registration."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from pydantic import SecretStr

from recollect.caller import Caller
from recollect.settings import Settings
from tests.support.gateway import RunningGateway, rpc_headers, serving
from tests.support.oauth import METADATA
from tests.support.timeouts import MAX_WAIT_SECONDS

KEPT = {"content-type", "cache-control", "access-control-allow-origin", "ratelimit-policy"}
"""Headers of a document that depend neither on the time nor on the number of requests."""


@pytest.fixture
async def web(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http() as http:
        yield http


class TestChallenges:
    @pytest.mark.parametrize("path", ["/mcp", "/mcp/x/memory", "/t/{}/mcp", "/t/{}/mcp/x/all"])
    async def test_a_401_names_the_metadata_and_the_scopes(
        self, web: httpx2.AsyncClient, gateway: RunningGateway, caller: Caller, path: str
    ) -> None:
        for tenant in (caller.tenant, f"nobody-{uuid4()}"):
            answer = await web.post(path.format(tenant), json={})
            metadata = f"{gateway.url}/.well-known/oauth-protected-resource{path.format(tenant)}"
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == (
                f'Bearer realm="recollect", scope="memory:read memory:write", resource_metadata="{metadata}"'
            )
            assert (await web.get(metadata)).json()["resource"] == gateway.url + path.format(tenant)

    async def test_an_invalid_token_is_reported_as_such(self, web: httpx2.AsyncClient) -> None:
        for secret in ("x", "rcl_access_" + "0" * 38, "rcl_refresh_" + "0" * 38):
            answer = await web.post("/mcp", json={}, headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code == 401
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]

    @pytest.mark.proves("security: token-resource")
    async def test_a_token_in_the_address_is_ignored(self, web: httpx2.AsyncClient, key: str) -> None:
        assert (await web.post(f"/mcp?access_token={key}", json={})).status_code == 401

    async def test_an_invalid_tenant_name_is_not_repeated(self, web: httpx2.AsyncClient) -> None:
        for hostile in ("%22", "A", "-", "x" * 64):
            answer = await web.post(f"/t/{hostile}/mcp", json={}, headers=rpc_headers())
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].endswith('/.well-known/oauth-protected-resource/mcp"')

    async def test_the_management_api_asks_for_a_key(self, web: httpx2.AsyncClient) -> None:
        assert (await web.get("/v1/graphs")).headers["www-authenticate"] == 'Bearer realm="recollect"'


class TestMetadata:
    async def test_the_resource_names_its_authorization_server(
        self, web: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        documents = [(await web.get(f"/.well-known/oauth-protected-resource{path}")).json() for path in ("", "/mcp")]
        assert documents[0] == documents[1]
        assert documents[0]["resource"] == f"{gateway.url}/mcp"
        assert documents[0]["authorization_servers"] == [gateway.url]
        assert documents[0]["bearer_methods_supported"] == ["header"]
        assert "offline_access" not in documents[0]["scopes_supported"]

    @pytest.mark.proves("security: foreign-tokens")
    async def test_no_document_tells_whether_a_tenant_exists(self, web: httpx2.AsyncClient, caller: Caller) -> None:
        told = []
        for tenant in (caller.tenant, "nobody-has-this-one"):
            answer = await web.get(f"/.well-known/oauth-protected-resource/t/{tenant}/mcp")
            headers = {name: value for name, value in answer.headers.items() if name in KEPT}
            told.append((answer.status_code, answer.text.replace(tenant, "…"), headers))
        assert told[0] == told[1]
        for hostile in ("A", "-", "x" * 64, "%22"):
            assert (await web.get(f"/.well-known/oauth-protected-resource/t/{hostile}/mcp")).status_code == 404

    async def test_the_authorization_server_describes_its_capabilities(
        self, web: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        names = ("oauth-authorization-server", "openid-configuration")
        documents = [(await web.get(f"/.well-known/{name}")).json() for name in names]
        assert documents[0] == documents[1]
        document = documents[0]
        assert document["issuer"] == gateway.url
        assert document["code_challenge_methods_supported"] == ["S256"]
        assert document["token_endpoint_auth_methods_supported"] == ["none"]
        assert document["client_id_metadata_document_supported"] is True
        assert document["authorization_response_iss_parameter_supported"] is True
        for name, address in document.items():
            if name.endswith(("_endpoint", "_uri")):
                answer = await web.request("OPTIONS", address)
                assert answer.status_code != 404, name

    async def test_documents_use_the_configured_public_address(self, settings: Settings) -> None:
        changed = {"public_url": "https://memory.example.com", "oauth_issuer_parameter": False}
        with serving(settings.model_copy(update=changed)) as gateway:
            async with gateway.http() as http:
                document = (await http.get("/.well-known/oauth-authorization-server")).json()
                resource = (await http.get("/.well-known/oauth-protected-resource/t/acme/mcp")).json()
        assert document["token_endpoint"] == "https://memory.example.com/oauth/token"
        assert document["authorization_response_iss_parameter_supported"] is False
        assert resource["resource"] == "https://memory.example.com/t/acme/mcp"

    async def test_pages_of_other_origins_can_read_public_documents(self, web: httpx2.AsyncClient) -> None:
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/openid-configuration", "/oauth/jwks.json"):
            answer = await web.get(path, headers={"Origin": "https://inspector.example"})
            assert answer.headers.get_list("access-control-allow-origin") == ["*"]

    async def test_pages_of_other_origins_can_register_and_request_tokens(self, web: httpx2.AsyncClient) -> None:
        origin = {"Origin": "https://inspector.example"}
        for path in ("/oauth/register", "/oauth/token", "/oauth/revoke"):
            asked = {
                **origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type",
            }
            assert (await web.options(path, headers=asked)).headers["access-control-allow-origin"] == "*"
            answer = await web.post(path, json={}, headers=origin)
            assert answer.status_code in (400, 401)
            assert answer.headers.get_list("access-control-allow-origin") == ["*"]


class TestRegistration:
    async def test_a_registered_client_gets_an_id_and_no_secret(self, web: httpx2.AsyncClient) -> None:
        asked = METADATA | {
            "client_uri": "https://client.example.com",
            "token_endpoint_auth_method": "client_secret_post",
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "logo_uri": "https://client.example.com/logo.png",
        }
        answer = await web.post("/oauth/register", json=asked)
        assert answer.status_code == 201
        assert answer.headers["cache-control"] == "no-store"
        registered = answer.json()
        assert registered.pop("client_id").startswith("rcl_client_")
        assert registered == {
            "client_name": "Test client",
            "client_uri": "https://client.example.com",
            "redirect_uris": METADATA["redirect_uris"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }

    @pytest.mark.parametrize(
        "uris",
        [
            None,
            [],
            "http://localhost/cb",
            [1],
            ["http://evil.example/cb"],
            ["https://ok.example/cb", "javascript:alert(1)"],
            ["https://ok.example/cb#fragment"],
            ["https://user:pass@ok.example/cb"],
            ["https:///cb"],
            ["https://ok.example/\r\nSet-Cookie: x"],
            ["https://exämple.com/cb"],
            ["file:///callback"],
            ["http://localhost.evil.example/cb"],
            ["http://127.0.0.1@evil.example/"],
            ["http://127.0.0.1\\@evil.example/"],
            ["https://ok.example/" + "x" * 2000],
            [f"https://ok.example/{n}" for n in range(11)],
        ],
    )
    async def test_unsafe_redirect_addresses_are_refused(self, web: httpx2.AsyncClient, uris: Any) -> None:
        answer = await web.post("/oauth/register", json=METADATA | {"redirect_uris": uris})
        assert answer.status_code == 400
        assert answer.json()["error"] == "invalid_redirect_uri"
        assert "redirect_uris" in answer.json()["error_description"]

    @pytest.mark.parametrize(
        "changed",
        [
            {"client_name": "x" * 201},
            {"client_name": "a\nb"},
            {"client_name": 1},
            {"client_uri": "javascript:alert(1)"},
            {"client_uri": 1},
            {"grant_types": ["client_credentials"]},
            {"grant_types": "authorization_code"},
            {"response_types": ["token"]},
        ],
    )
    async def test_other_invalid_metadata_is_refused(self, web: httpx2.AsyncClient, changed: dict[str, Any]) -> None:
        answer = await web.post("/oauth/register", json=METADATA | changed)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
        assert next(iter(changed)) in answer.json()["error_description"]

    @pytest.mark.parametrize("body", [b"", b"[]", b"null", b"\xff", b"{" * 30_000, b'{"a": NaN}'])
    async def test_an_invalid_body_is_refused(self, web: httpx2.AsyncClient, body: bytes) -> None:
        answer = await web.post("/oauth/register", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")

    async def test_registrations_of_one_address_are_limited(self, settings: Settings) -> None:
        bounds = {
            "oauth_registrations_per_minute": 3,
            "oauth_requests_per_minute": 9,
            "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
        }
        own_counts = {"key_secret": SecretStr(str(uuid4()))}  # Other tests use this address, too.
        with serving(settings.model_copy(update=bounds | own_counts)) as gateway:
            async with gateway.http() as http:
                answers = [await http.post("/oauth/register", json=METADATA) for _ in range(5)]
                others = [await http.get("/.well-known/oauth-authorization-server") for _ in range(9)]
        assert [answer.status_code for answer in answers] == [201] * 3 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert {answer.status_code for answer in others} == {200, 429}, "each of them counts"

    async def test_a_long_body_is_not_read(self, web: httpx2.AsyncClient) -> None:
        answer = await web.post("/oauth/register", json=METADATA | {"x": "x" * 40_000})
        assert answer.status_code == 413
