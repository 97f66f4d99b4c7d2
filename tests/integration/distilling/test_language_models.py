"""/v1/language-model: a tenant's own model, its key, who may set it, and which addresses it may have."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.outbound.http_client import Outbound
from recollect.settings import Settings
from recollect_workers import job_loop
from tests.integration.distilling.conftest import Conversations
from tests.support.chat_server import ChatServer, facts, serving_model
from tests.support.gateway import NewApiKey, RunningGateway, serving

KEY = "sk-of-the-tenant"
NONE = {"set_by": "operator", "url": None, "model": None, "has_api_key": False, "created_at": None, "created_by": None}


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as admin:
        yield admin


async def set_model(admin: httpx2.AsyncClient, url: str, **more: Any) -> dict[str, Any]:
    response = await admin.put("/v1/language-model", json={"url": url, "model": "own", **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.proves("security: model-keys")
async def test_a_tenants_own_model_is_asked_with_its_key(
    talk: Conversations, model: ChatServer, admin: httpx2.AsyncClient, owner: asyncpg.Connection
) -> None:
    assert (await admin.get("/v1/language-model")).json() == NONE
    await talk.say("I moved to Berlin")
    with serving_model() as own:
        own.model = lambda turns: [("Ada lives in Berlin.", [1])]
        told = await set_model(admin, own.url, api_key=KEY)
        assert (told["set_by"], told["url"], told["model"], told["has_api_key"]) == ("tenant", own.url, "own", True)
        assert (await admin.get("/v1/language-model")).json() == told
        await talk.distil()
        [request] = own.requests
    assert (request["path"], request["model"], request["key"]) == ("/v1/chat/completions", "own", f"Bearer {KEY}")
    assert model.requests == []
    tenant_id = talk.desk.caller.tenant_id
    stored = await owner.fetchval("SELECT language_models::text FROM language_models WHERE tenant_id = $1", tenant_id)
    assert KEY not in stored
    used = await owner.fetch("SELECT name, calls FROM usage_hourly WHERE tenant_id = $1 AND kind = 'work'", tenant_id)
    assert ("distil_thread_own", 1) in [tuple(row) for row in used]
    assert "distil_thread" not in [row["name"] for row in used]
    assert (await admin.delete("/v1/language-model")).status_code == 204
    assert (await admin.get("/v1/language-model")).json() == NONE
    acts = await owner.fetch("SELECT action, details::text FROM audit_log WHERE tenant_id = $1 ORDER BY at", tenant_id)
    assert [row["action"] for row in acts][-2:] == ["language_model.set", "language_model.removed"]
    assert KEY not in str(acts)


@pytest.mark.proves("security: model-keys")
async def test_a_new_address_has_no_key_of_the_one_before(admin: httpx2.AsyncClient) -> None:
    await set_model(admin, "https://one.example.com/v1", api_key=KEY)
    assert not (await set_model(admin, "https://other.example.com/v1"))["has_api_key"]


@pytest.mark.proves("security: model-addresses")
async def test_addresses_of_our_network_are_refused(
    talk: Conversations, model: ChatServer, admin: httpx2.AsyncClient, settings: Settings, distilling: Settings
) -> None:
    """Where an operator allows no loopback: refused in form by the gateway, and by its addresses in the worker."""
    refused = ["http://example.com/v1", "https://example.com:8443/v1", "https://u:p@example.com/v1", "ftp://x/v1", "x"]
    with serving(settings) as gateway:
        async with gateway.http(admin.headers["Authorization"].removeprefix("Bearer ")) as strict:
            for url in refused:
                response = await strict.put("/v1/language-model", json={"url": url, "model": "own"})
                assert (response.status_code, response.json()["path"]) == (400, "url"), url
    await talk.say("I moved to Berlin")
    for url in (model.url, "https://127.0.0.1/v1", "https://169.254.169.254/v1", "https://[::1]/v1"):
        await set_model(admin, url)
        job = await talk.start()
        outbound = Outbound(settings)
        await job_loop.sweep(replace(talk.worker, outbound=outbound))
        await outbound.close()
        job = (await talk.http.get(f"/v1/jobs/{job['id']}")).json()
        assert (job["status"], job["error"]["code"]) == ("running", "model_unavailable"), url
        await talk.http.post(f"/v1/jobs/{job['id']}/cancel")
    assert model.requests == []


async def test_what_cannot_be_a_model_is_refused(admin: httpx2.AsyncClient) -> None:
    good = {"url": "https://example.com/v1", "model": "own"}
    bad: list[tuple[dict[str, Any], str]] = [
        ({"url": "https://example.com/v1?version=1"}, "url"),
        ({"model": "a\nb"}, "model"),
        ({"model": ""}, "model"),
        ({"api_key": "a\r\nX-Other: 1"}, "api_key"),
        ({"api_key": "ключ"}, "api_key"),
    ]
    for changed, path in bad:
        response = await admin.put("/v1/language-model", json=good | changed)
        assert (response.status_code, response.json()["path"]) == (400, path), changed


@pytest.mark.proves("security: model-owners")
async def test_only_admins_without_an_allow_list_see_and_set_it(
    http: httpx2.AsyncClient, gateway: RunningGateway, issue: NewApiKey, talk: Conversations, owner: asyncpg.Connection
) -> None:
    await talk.say("Hello")
    graph = await owner.fetchval("SELECT id FROM graphs WHERE tenant_id = $1", talk.desk.caller.tenant_id)
    confined = (await issue(talk.desk.caller, kind="admin", graph_ids=(graph,))).secret
    async with gateway.http(confined) as limited:
        for client, code in ((http, "scope_required"), (limited, "graph_not_allowed")):
            for method, body in (
                ("GET", None),
                ("PUT", {"url": "https://a.example/v1", "model": "x"}),
                ("DELETE", None),
            ):
                response = await client.request(method, "/v1/language-model", json=body)
                assert (response.status_code, response.json()["code"]) == (403, code), (method, code)


async def test_an_operator_may_allow_no_models_of_tenants(
    talk: Conversations, model: ChatServer, admin: httpx2.AsyncClient, distilling: Settings, admin_key: str
) -> None:
    model.answers = [facts(("Ada lives in Berlin.", [1]))]
    await talk.say("I moved to Berlin")
    await set_model(admin, "https://own.example.com/v1", api_key=KEY)
    forbidden = distilling.model_copy(update={"distil_tenant_models": False})
    with serving(forbidden) as gateway:
        async with gateway.http(admin_key) as strict:
            response = await strict.put("/v1/language-model", json={"url": "https://a.example/v1", "model": "x"})
            assert (response.status_code, response.json()["code"]) == (409, "distilling_off")
            assert (await strict.get("/v1/language-model")).json() == NONE
    job = await talk.start()
    await job_loop.sweep(replace(talk.worker, settings=forbidden))
    assert (await talk.http.get(f"/v1/jobs/{job['id']}")).json()["status"] == "succeeded"
    assert len(model.requests) == 1


async def test_a_key_of_another_secret_fails_the_job_with_advice(
    talk: Conversations, admin: httpx2.AsyncClient, distilling: Settings
) -> None:
    await talk.say("I moved to Berlin")
    await set_model(admin, "https://own.example.com/v1", api_key=KEY)
    job = await talk.start()
    other = distilling.model_copy(
        update={"key_secret": type(distilling.key_secret)("another secret of 32 bytes......")}
    )
    await job_loop.sweep(replace(talk.worker, settings=other))
    job = (await talk.http.get(f"/v1/jobs/{job['id']}")).json()
    assert (job["status"], job["error"]["code"]) == ("failed", "model_refused")
    assert "RECOLLECT_KEY_SECRET" in job["error"]["message"]
