"""Rules for every request and every answer of a gateway on the internet, whatever the route."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError

from recollect.settings import Settings
from recollect_http.server.public_edge import METHODS, page_policy
from tests.support.gateway import RunningGateway, rpc_headers, serving

READ = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
EVERYWHERE = ["/mcp", "/t/other/mcp", "/v1/graphs", "/v1/keys", "/v1/openapi.json", "/nothing", "/.well-known/nothing"]
PAGE = "https://app.example.com"
EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def public(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway behind a proxy with TLS, with one page elsewhere that may call."""
    told: dict[str, Any] = {
        "public_url": "https://memory.example.com",
        "allowed_hosts": ["127.0.0.1:*", "memory.internal"],
        "allowed_origins": [PAGE],
        "trusted_proxies": ["127.0.0.1/32"],
    }
    with serving(settings.model_copy(update=told)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def open_to_pages(settings: Settings) -> Iterator[RunningGateway]:
    with serving(settings.model_copy(update={"allowed_origins": ["*"]})) as gateway:
        yield gateway


async def ask(
    gateway: RunningGateway, method: str, path: str, *, key: str | None = None, **headers: str
) -> httpx2.Response:
    """`access_control_…` stands for the header Access-Control-…."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with gateway.http(key) as http:
        return await http.request(method, path, headers=named)


def raw(gateway: RunningGateway, request: str, *headers: str) -> tuple[int, str]:
    """Status and whole text of the answer to a request that is sent as written."""
    lines = "".join(f"{line}\r\n" for line in (f"{request} HTTP/1.1", *headers, "Connection: close"))
    said = gateway.write(f"{lines}\r\n".encode("latin-1")).decode("latin-1")
    return int(said.split(" ", 2)[1]), said


class TestHosts:
    @pytest.mark.proves("security: hosts")
    def test_another_host_is_refused_everywhere(self, gateway: RunningGateway, subtests: pytest.Subtests) -> None:
        for path in EVERYWHERE:
            for host in [
                "evil.example",
                "127.0.0.1.evil.example",
                "127.0.0.1:80@evil.example",
                "127.0.0.1:",
                "127.0.0.1:8x",
                "",
            ]:
                with subtests.test(f"{host} {path}"):
                    status, said = raw(gateway, f"GET {path}", f"Host: {host}")
                    assert status == 421
                    assert '"host_not_allowed"' in said

    @pytest.mark.proves("security: hosts")
    def test_exactly_one_host_is_required(self, gateway: RunningGateway) -> None:
        assert raw(gateway, "GET /v1/graphs")[0] == 400
        assert raw(gateway, "GET /v1/graphs", "Host: 127.0.0.1:1", "Host: evil.example")[0] == 400

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "LOCALHOST:8787", "[::1]:8787"])
    def test_this_machine_is_an_allowed_host(self, gateway: RunningGateway, host: str) -> None:
        assert raw(gateway, "GET /v1/graphs", f"Host: {host}")[0] == 401

    @pytest.mark.parametrize(
        "host", ["memory.example.com", "Memory.Example.Com", "memory.example.com:443", "memory.internal"]
    )
    def test_the_public_host_is_allowed(self, public: RunningGateway, host: str) -> None:
        assert raw(public, "GET /v1/graphs", f"Host: {host}")[0] == 401

    def test_another_port_of_the_public_host_is_refused(self, public: RunningGateway) -> None:
        assert raw(public, "GET /v1/graphs", "Host: memory.example.com:8443")[0] == 421

    def test_a_forwarded_host_is_ignored(self, public: RunningGateway) -> None:
        assert raw(public, "GET /v1/graphs", "Host: evil.example", "X-Forwarded-Host: memory.example.com")[0] == 421

    def test_health_checks_need_no_host_name(self, gateway: RunningGateway) -> None:
        assert raw(gateway, "GET /health/live", "Host: 10.1.2.3:8787")[0] == 200


class TestOrigins:
    @pytest.mark.proves("security: origins")
    async def test_other_pages_are_refused(
        self, gateway: RunningGateway, admin_key: str, subtests: pytest.Subtests
    ) -> None:
        for path in [path for path in EVERYWHERE if not path.startswith("/.well-known")]:
            for origin in [EVIL, "null", "", "http://127.0.0.1.evil.example", "file://", "http://localhost:3000"]:
                with subtests.test(f"{origin} {path}"):
                    for method in ("GET", "POST", "DELETE"):
                        response = await ask(gateway, method, path, key=admin_key, origin=origin)
                        assert (response.status_code, response.json()["code"]) == (403, "origin_not_allowed")
                        assert "access-control-allow-origin" not in response.headers

    async def test_our_own_pages_are_allowed(self, gateway: RunningGateway, admin_key: str) -> None:
        response = await ask(gateway, "GET", "/v1/graphs", key=admin_key, origin=gateway.url)
        assert response.status_code == 200
        assert "access-control-allow-origin" not in response.headers

    @pytest.mark.proves("security: tls-only")
    async def test_our_own_pages_must_use_tls_if_we_do(self, public: RunningGateway, admin_key: str) -> None:
        for origin, status in [("https://memory.example.com", 200), ("http://memory.example.com", 403)]:
            response = await ask(public, "GET", "/v1/graphs", key=admin_key, origin=origin, host="memory.example.com")
            assert response.status_code == status

    def test_several_origins_are_refused(self, public: RunningGateway) -> None:
        assert raw(public, "GET /v1/graphs", "Host: 127.0.0.1", f"Origin: {PAGE}", f"Origin: {PAGE}")[0] == 403

    @pytest.mark.proves("security: origins")
    async def test_an_allowed_page_can_call(self, public: RunningGateway, admin_key: str) -> None:
        response = await ask(public, "GET", "/v1/graphs", key=admin_key, origin=PAGE)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == PAGE
        assert response.headers["access-control-expose-headers"] == "*"
        assert "origin" in response.headers["vary"].lower()
        assert "access-control-allow-credentials" not in response.headers
        unnamed = await ask(public, "GET", "/v1/graphs", key=admin_key)
        assert "origin" in unnamed.headers["vary"].lower()

    async def test_an_allowed_page_can_read_refusals(self, public: RunningGateway) -> None:
        """A browser's MCP client finds the way to sign in in `WWW-Authenticate`."""
        async with public.http() as http:
            response = await http.post("/mcp", json=READ, headers={**rpc_headers(), "Origin": PAGE})
        assert response.status_code == 401
        assert "www-authenticate" in response.headers
        assert response.headers["access-control-allow-origin"] == PAGE
        assert response.headers["access-control-expose-headers"] == "*"

    @pytest.mark.parametrize("path", ["/mcp", "/t/other/mcp/x/agent", "/v1/graphs/g/imports", "/sign-in"])
    async def test_preflight_needs_no_credential(self, public: RunningGateway, path: str) -> None:
        asked = "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-param-graph"
        response = await ask(
            public,
            "OPTIONS",
            path,
            origin=PAGE,
            access_control_request_method="POST",
            access_control_request_headers=asked,
        )
        assert (response.status_code, response.content) == (204, b"")
        assert response.headers["access-control-allow-origin"] == PAGE
        assert response.headers["access-control-allow-headers"] == "Authorization, *"
        assert {"POST", "DELETE"} <= set(response.headers["access-control-allow-methods"].split(", "))
        assert "access-control-allow-credentials" not in response.headers

    async def test_preflight_of_another_page_is_refused(self, public: RunningGateway) -> None:
        response = await ask(public, "OPTIONS", "/mcp", origin=EVIL, access_control_request_method="POST")
        assert response.status_code == 403
        assert not any(name.startswith("access-control") for name in response.headers)

    async def test_options_without_an_origin_is_not_a_preflight(self, public: RunningGateway) -> None:
        response = await ask(public, "OPTIONS", "/v1/graphs", access_control_request_method="POST")
        assert response.status_code == 401

    async def test_public_documents_are_allowed_for_every_page(self, gateway: RunningGateway) -> None:
        path = "/.well-known/oauth-protected-resource"
        for response in [
            await ask(gateway, "GET", path, origin=EVIL),
            await ask(gateway, "OPTIONS", path, origin=EVIL, access_control_request_method="GET"),
        ]:
            assert response.status_code != 403
            assert response.headers["access-control-allow-origin"] == "*"

    async def test_every_page_is_allowed_if_configured(self, open_to_pages: RunningGateway, admin_key: str) -> None:
        response = await ask(open_to_pages, "GET", "/v1/graphs", key=admin_key, origin=EVIL)
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, "*")
        assert "access-control-allow-credentials" not in response.headers

    @pytest.mark.proves("security: cookies")
    async def test_cookies_are_accepted_from_our_own_pages_only(
        self, public: RunningGateway, open_to_pages: RunningGateway, admin_key: str
    ) -> None:
        for gateway, origin in [(public, PAGE), (open_to_pages, EVIL)]:
            response = await ask(gateway, "GET", "/v1/graphs", key=admin_key, origin=origin, cookie="session=a")
            assert (response.status_code, response.json()["code"]) == (403, "origin_not_allowed")
        response = await ask(
            open_to_pages, "GET", "/v1/graphs", key=admin_key, origin=open_to_pages.url, cookie="session=a"
        )
        assert response.status_code == 200

    @pytest.mark.parametrize("origin", ["null", "app.example.com", "https://app.example.com/", "https://", "https://*"])
    def test_an_invalid_origin_setting_is_refused(self, origin: str) -> None:
        with pytest.raises(ValidationError, match="allowed_origins"):
            Settings(allowed_origins=[origin])


class TestHeaders:
    @pytest.mark.proves("security: response-headers")
    @pytest.mark.parametrize("path", [*EVERYWHERE, "/health/live"])
    async def test_every_answer_has_security_headers(self, gateway: RunningGateway, admin_key: str, path: str) -> None:
        for key in (None, admin_key):
            headers = (await ask(gateway, "GET", path, key=key)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["cross-origin-opener-policy"] == "same-origin"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
            assert headers["cache-control"] == "no-store"
            assert "strict-transport-security" not in headers

    async def test_answers_of_tools_have_security_headers(self, gateway: RunningGateway, key: str) -> None:
        async with gateway.http(key) as http:
            response = await http.post("/mcp", json=READ, headers=rpc_headers())
        assert response.status_code == 200
        assert response.headers["x-content-type-options"] == "nosniff"
        assert re.search("no-store|no-cache", response.headers["cache-control"])

    @pytest.mark.proves("security: response-headers")
    @pytest.mark.parametrize(
        "request_line", ["GET /v1/graphs?a=%00 HTTP/9.9", "GET /v1 HTTP/1.1\r\nA: " + "a" * 40_000]
    )
    def test_answers_of_the_http_server_have_security_headers(self, gateway: RunningGateway, request_line: str) -> None:
        said = gateway.write(f"{request_line}\r\nHost: 127.0.0.1\r\n\r\n".encode()).decode()
        assert said.split(" ", 2)[1] in ("400", "431")
        assert "x-content-type-options: nosniff\r\n" in said
        assert "cache-control: no-store\r\n" in said

    @pytest.mark.proves("security: tls-only")
    async def test_hsts_is_sent_if_the_public_address_uses_tls(self, public: RunningGateway) -> None:
        for path in EVERYWHERE:
            headers = (await ask(public, "GET", path)).headers
            assert headers["strict-transport-security"] == "max-age=31536000"

    @pytest.mark.proves("security: no-server-header")
    async def test_no_header_names_the_server(self, gateway: RunningGateway, admin_key: str) -> None:
        for path in [*EVERYWHERE, "/health/live"]:
            headers = (await ask(gateway, "GET", path, key=admin_key)).headers
            assert "server" not in headers
            assert "x-powered-by" not in headers


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """An application that returns what it received, as a page if its path contains `page`, with headers of its own
    if it contains `own`.
    """
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"text/html; charset=utf-8" if "page" in scope["path"] else b"application/json")]
    if "own" in scope["path"]:
        headers += [(b"Content-Security-Policy", b"sandbox"), (b"Cache-Control", b"max-age=60")]
    said = json.dumps({name: scope[name] for name in ("method", "path", "scheme", "client")}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said, "more_body": False})


@pytest.fixture(scope="module")
def echoing(settings: Settings) -> Iterator[RunningGateway]:
    with serving(settings, echo) as gateway:
        yield gateway


class TestPages:
    @pytest.mark.proves("security: page-scripts")
    async def test_a_page_may_use_its_own_files_and_nothing_inline(self, echoing: RunningGateway) -> None:
        policy = (await ask(echoing, "GET", "/page")).headers["content-security-policy"]
        assert policy == page_policy()
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
        assert rules["script-src"] == rules["style-src"] == rules["form-action"] == "'self'"
        assert "unsafe" not in policy

    def test_a_policy_may_allow_form_targets(self) -> None:
        assert "form-action 'self' https://client.example cursor:;" in page_policy(
            form_targets=["https://client.example", "cursor:"]
        )

    async def test_headers_of_a_route_replace_the_defaults(self, echoing: RunningGateway) -> None:
        headers = (await ask(echoing, "GET", "/own/page")).headers
        assert headers.get_list("content-security-policy") == ["sandbox"]
        assert headers.get_list("cache-control") == ["max-age=60"]
        assert headers["x-content-type-options"] == "nosniff"


class TestProxies:
    @pytest.mark.proves("security: trusted-proxies")
    async def test_forwarded_scheme_and_client_are_accepted_from_a_trusted_proxy_only(
        self, echoing: RunningGateway, settings: Settings
    ) -> None:
        claimed = {"x_forwarded_proto": "https", "x_forwarded_for": "192.0.2.7"}
        told = (await ask(echoing, "GET", "/", **claimed)).json()
        assert (told["scheme"], told["client"][0]) == ("http", "127.0.0.1")
        trusting = settings.model_copy(update={"trusted_proxies": ["127.0.0.1/32"]})
        with serving(trusting, echo) as behind:
            told = (await ask(behind, "GET", "/", **claimed)).json()
            assert (told["scheme"], told["client"][0]) == ("https", "192.0.2.7")
            assert (await ask(behind, "GET", "/", x_forwarded_proto="javascript")).json()["scheme"] == "http"


class TestMethods:
    @pytest.mark.proves("security: paths-and-methods")
    def test_an_odd_method_is_refused_everywhere(self, gateway: RunningGateway, subtests: pytest.Subtests) -> None:
        for method in ["TRACE", "CONNECT", "PROPFIND", "QUERY", "LINK", "PURGE"]:
            for path in ["/v1/graphs", "/mcp", "/health/live"]:
                with subtests.test(f"{method} {path}"):
                    target = "127.0.0.1:80" if method == "CONNECT" else path
                    status, said = raw(gateway, f"{method} {target}", "Host: 127.0.0.1", "Secret: a-secret")
                    assert status in (400, 405)
                    assert "a-secret" not in said
                    assert status == 400 or f"allow: {', '.join(METHODS)}\r\n" in said

    async def test_no_header_overrides_the_method(self, echoing: RunningGateway) -> None:
        response = await ask(echoing, "POST", "/", x_http_method_override="DELETE", x_method_override="DELETE")
        assert response.json()["method"] == "POST"

    async def test_head_is_get_without_a_body(self, gateway: RunningGateway, admin_key: str) -> None:
        for path in ("/health/live", "/v1/graphs", "/v1/openapi.json", "/nothing", "/mcp"):
            head, whole = [await ask(gateway, method, path, key=admin_key) for method in ("HEAD", "GET")]
            assert head.status_code == whole.status_code
            assert head.content == b""
            for name in ("content-type", "content-length", "x-content-type-options"):
                assert head.headers.get(name) == whole.headers.get(name), name

    async def test_head_of_a_stream_returns_headers_and_takes_no_place(
        self, gateway: RunningGateway, settings: Settings, admin_key: str
    ) -> None:
        async with gateway.http(admin_key) as http:
            await http.post("/v1/graphs", json={"name": "told"})
            for _ in range(settings.streams_per_key + 1):
                head = await http.head("/v1/graphs/told/changes", headers={"Accept": "text/event-stream"})
                assert (head.status_code, head.content) == (200, b"")
                assert head.headers["content-type"].startswith("text/event-stream")
                assert (await http.get("/v1/graphs")).status_code == 200  # On the same connection.


class TestPaths:
    @pytest.mark.proves("security: paths-and-methods")
    def test_an_ambiguous_path_is_refused(
        self, gateway: RunningGateway, admin_key: str, subtests: pytest.Subtests
    ) -> None:
        for path in [
            "//v1/graphs",
            "/v1//graphs",
            "/v1/graphs//",
            "/v1/./graphs",
            "/v1/../v1/graphs",
            "/v1/%2e%2e/v1/graphs",
            "/v1/%2E./graphs",
            "/v1/graphs/..",
            "/v1%2fgraphs",
            "/v1/graphs/a%2Fexport",
            "/v1\\graphs",
            "/v1/graphs/a%5cexport",
            "/v1/graphs/%00",
            "/v1/graphs/a%0d%0aSet-Cookie:a",
            "/v1/graphs/%7f",
            "/v1/graphs/%",
            "/v1/graphs/%zz",
            "/v1/graphs/%c0%ae",
            "/v1/graphs/%ff",
            "/v1/graphs/\xe4",
            "*",
        ]:
            with subtests.test(ascii(path)):
                for method in ("GET", "POST"):
                    credential = f"Authorization: Bearer {admin_key}"
                    status, said = raw(gateway, f"{method} {path}", "Host: 127.0.0.1", credential, "Content-Length: 0")
                    assert status == 400
                    assert "set-cookie:a" not in said.lower()

    @pytest.mark.parametrize(
        "path", ["/v1/graphs", "/v1/graphs/", "/v1/graphs/a%40b", "/v1/graphs/%C3%A4", "/v1/graphs?a=/../%00"]
    )
    def test_an_unambiguous_path_is_served(self, gateway: RunningGateway, path: str) -> None:
        assert raw(gateway, f"GET {path}", "Host: 127.0.0.1")[0] == 401
