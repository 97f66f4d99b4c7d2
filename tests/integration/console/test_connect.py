"""Connecting clients: keys that are made, seen in use, rotated and revoked."""

import re
from collections.abc import AsyncIterator

import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.console import Visitor, visiting
from tests.support.gateway import RunningGateway, eventually


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, caller, Role.ADMIN) as visitor:
        yield visitor


@pytest.mark.proves("security: console-secrets")
async def test_a_key_is_made_seen_in_use_rotated_and_revoked(visitor: Visitor, gateway: RunningGateway) -> None:
    page = await visitor.open("connect")
    assert f"{gateway.url}/t/{visitor.tenant}/mcp" in page.text
    made = await visitor.send(page, "connect/keys", name="laptop of Ada", kind="agent")
    secret = made.all("code", id="new-key")[0].text
    assert "Waiting for the first call" in made.text
    lines = [element.text for element in made.all("code") if element.attributes.get("id", "").startswith("lines-")]
    assert not any(secret in line for line in lines), "files that have these lines are shared"
    assert secret not in (await visitor.open("connect")).source, "it is shown once"
    async with gateway.http(secret) as http:
        assert (await http.get("/v1/graphs")).status_code == 200
    used = made.all("p", id="first-call")[0].attributes["hx-get"]

    async def seen() -> bool:
        return "A client has called with it" in (await visitor.open_address(used)).text

    await eventually(seen)
    rotated = await visitor.send(await visitor.open("connect"), "/rotate")
    fresh = rotated.all("code", id="new-key")[0].text
    assert fresh != secret
    revoke = next(e.attributes["hx-get"] for e in rotated.all("a") if e.text == "Revoke")
    gone = await visitor.send(await visitor.open_address(revoke), "/revoke")
    assert "It is revoked" in gone.text
    async with gateway.http(secret) as http:
        assert (await http.get("/v1/graphs")).status_code == 401


async def test_a_refused_key_keeps_what_was_entered(visitor: Visitor) -> None:
    refused = await visitor.send(await visitor.open("connect"), "connect/keys", status=400, name=" ", kind="admin")
    assert "Give the key a name" in refused.all("div", role="alert")[0].text
    assert refused.form("connect/keys").fields["kind"] == "admin"


@pytest.mark.proves("security: console-files")
async def test_a_body_that_is_no_form_brings_the_token_in_a_header(visitor: Visitor) -> None:
    token = (await visitor.open("connect")).form("connect/keys").fields["form_token"]
    headers = {"Origin": str(visitor.http.base_url).rstrip("/"), "Content-Type": "application/octet-stream"}
    path = visitor.path("connect/keys")
    for given, status in (
        ({"X-Recollect-Form-Token": token}, 400),
        ({"X-Recollect-Form-Token": "0" * 64}, 403),
        ({}, 403),
    ):
        answer = await visitor.http.post(path, content=b"\x00", headers=headers | given)
        assert answer.status_code == status, answer.text


async def test_members_see_how_to_connect_and_no_keys(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    async with visiting(gateway, databases, settings, caller, Role.MEMBER) as member:
        page = await member.open("connect")
        assert "Claude Code" in page.text
        assert not re.search("Make a key|Last used", page.text)
