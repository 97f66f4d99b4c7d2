"""Passkeys over real HTTP, with an authenticator in software: the correct ceremony, and every wrong one."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.passkeys.model import MAX_PASSKEYS
from recollect.accounts.passkeys.service import NOT_ADDED, REFUSAL
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.authenticator import Authenticator
from tests.support.gateway import RunningGateway
from tests.support.people import PASSWORD, beside_another_password, browser, joined, sign_in

ACCOUNT, SIGN_IN = "/account/passkeys", "/passkeys/sign-in"


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(gateway) as client:
        yield client


@dataclass(frozen=True)
class Holder:
    """A person with a passkey, signed in in a browser of their own."""

    person: Person
    http: httpx2.AsyncClient
    device: Authenticator


@pytest.fixture
async def holder(gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes) -> AsyncIterator[Holder]:
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    async with browser(gateway) as client:
        await sign_in(client, person.email)
        device, answer = await add(client, Authenticator(gateway.url))
        assert answer.status_code == 200, answer.text
        yield Holder(person, client, device)


async def token_of(http: httpx2.AsyncClient, path: str) -> str:
    return str(re.findall(r'name="form_token" value="(\w+)"', (await http.get(path)).text)[0])


async def options_for(http: httpx2.AsyncClient, path: str, token: str) -> dict[str, Any]:
    """The options that our server sends to the browser."""
    answer = await http.post(f"{path}/options", data={"form_token": token})
    assert answer.status_code == 200, answer.text
    options: dict[str, Any] = json.loads(answer.text)
    return options


async def add(
    http: httpx2.AsyncClient, device: Authenticator, *, password: str = PASSWORD, name: str = "Laptop"
) -> tuple[Authenticator, httpx2.Response]:
    token = await token_of(http, "/account")
    device, credential = device.make(await options_for(http, ACCOUNT, token))
    fields = {"form_token": token, "credential": credential, "name": name, "password": password}
    return device, await http.post(ACCOUNT, data=fields)


async def sign_in_with(http: httpx2.AsyncClient, device: Authenticator, *, count: int | None = None) -> httpx2.Response:
    token = await token_of(http, "/sign-in")
    return await send_credential(http, token, device.sign(await options_for(http, SIGN_IN, token), count=count))


async def send_credential(http: httpx2.AsyncClient, token: str, credential: str) -> httpx2.Response:
    return await http.post(SIGN_IN, data={"form_token": token, "credential": credential, "next": "/account"})


def assert_refused(answer: httpx2.Response) -> None:
    """The refusal is the same for every reason."""
    assert (answer.status_code, REFUSAL in answer.text) == (401, True)
    assert "recollect_session" not in answer.cookies


REMOVE = r'action="(/account/passkeys/[0-9a-f-]+/remove)"'


async def account_of(holder: Holder) -> str:
    return (await holder.http.get("/account")).text


class TestSigningIn:
    async def test_signing_in_needs_neither_address_nor_password(
        self, holder: Holder, http: httpx2.AsyncClient
    ) -> None:
        answer = await sign_in_with(http, holder.device)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        account = (await http.get("/account")).text
        assert holder.person.email in account
        assert "Laptop" in account

    async def test_user_verification_is_required_and_no_credential_is_named(self, http: httpx2.AsyncClient) -> None:
        options = await options_for(http, SIGN_IN, await token_of(http, "/sign-in"))
        assert options["userVerification"] == "required"
        assert options["rpId"] == "127.0.0.1"
        assert options.get("allowCredentials", []) == []

    @pytest.mark.proves("security: passkeys")
    async def test_a_page_of_another_origin_cannot_sign_in(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        evil = replace(holder.device, origin="https://evil.example", host="127.0.0.1")
        assert_refused(await sign_in_with(http, evil))

    @pytest.mark.proves("security: passkeys")
    async def test_a_credential_of_another_host_is_refused(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        assert_refused(await sign_in_with(http, replace(holder.device, host="evil.example")))

    @pytest.mark.proves("security: passkeys")
    async def test_a_device_that_did_not_verify_its_user_is_refused(
        self, holder: Holder, http: httpx2.AsyncClient
    ) -> None:
        assert_refused(await sign_in_with(http, replace(holder.device, verifies=False)))

    @pytest.mark.proves("security: passkeys")
    async def test_another_key_is_refused(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        other = Authenticator(holder.device.origin)
        assert_refused(await sign_in_with(http, replace(holder.device, key=other.key)))
        assert_refused(await sign_in_with(http, replace(other, user_handle=holder.device.user_handle)))

    @pytest.mark.proves("security: passkey-challenges")
    async def test_a_challenge_is_answered_once(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        token = await token_of(http, "/sign-in")
        credential = holder.device.sign(await options_for(http, SIGN_IN, token))
        assert (await send_credential(http, token, credential)).status_code == 303
        http.cookies.delete("recollect_session")
        assert_refused(await send_credential(http, token, credential))

    async def test_a_challenge_is_used_up_by_a_wrong_answer(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        token = await token_of(http, "/sign-in")
        options = await options_for(http, SIGN_IN, token)
        assert_refused(await send_credential(http, token, replace(holder.device, verifies=False).sign(options)))
        assert_refused(await send_credential(http, token, holder.device.sign(options)))

    @pytest.mark.proves("security: passkey-challenges")
    async def test_a_challenge_belongs_to_its_browser(
        self, holder: Holder, http: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        async with browser(gateway) as other:
            options = await options_for(other, SIGN_IN, await token_of(other, "/sign-in"))
        assert_refused(await send_credential(http, await token_of(http, "/sign-in"), holder.device.sign(options)))

    @pytest.mark.proves("security: passkey-challenges")
    async def test_a_challenge_expires(
        self, holder: Holder, http: httpx2.AsyncClient, owner: asyncpg.Connection
    ) -> None:
        token = await token_of(http, "/sign-in")
        options = await options_for(http, SIGN_IN, token)
        await owner.execute("UPDATE passkey_challenges SET expires_at = now() - interval '1 second'")
        assert_refused(await send_credential(http, token, holder.device.sign(options)))

    @pytest.mark.proves("security: passkey-owners")
    async def test_a_counter_that_goes_back_is_refused_as_a_copy(
        self, holder: Holder, http: httpx2.AsyncClient
    ) -> None:
        assert (await sign_in_with(http, holder.device, count=7)).status_code == 303
        http.cookies.delete("recollect_session")
        assert_refused(await sign_in_with(http, holder.device, count=7))
        assert_refused(await sign_in_with(http, holder.device, count=6))
        assert (await sign_in_with(http, holder.device, count=8)).status_code == 303

    async def test_a_device_without_a_counter_is_accepted(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        for _ in range(2):
            assert (await sign_in_with(http, holder.device, count=0)).status_code == 303
            http.cookies.delete("recollect_session")

    @pytest.mark.proves("security: passkey-owners")
    async def test_a_passkey_does_not_sign_in_another_person(
        self, holder: Holder, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        victim = await joined(databases, caller, Role.OWNER, pepper=pepper)
        assert_refused(await sign_in_with(http, replace(holder.device, user_handle=victim.id.bytes)))
        assert_refused(await sign_in_with(http, replace(holder.device, user_handle=b"")))

    @pytest.mark.parametrize(
        "credential", ["", "{}", "[]", "null", "x" * 20_000, '{"id": "AA", "rawId": "AA", "response": {}}']
    )
    async def test_an_invalid_credential_is_refused(self, http: httpx2.AsyncClient, credential: str) -> None:
        assert_refused(await send_credential(http, await token_of(http, "/sign-in"), credential))

    async def test_a_form_of_another_site_is_refused(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        token = await token_of(http, "/sign-in")
        credential = holder.device.sign(await options_for(http, SIGN_IN, token))
        assert (await http.post(f"{SIGN_IN}/options")).status_code == 400
        assert (await send_credential(http, "0" * 64, credential)).status_code == 403


class TestAdding:
    @pytest.mark.proves("security: stolen-sessions")
    async def test_adding_a_passkey_requires_the_password(self, holder: Holder, gateway: RunningGateway) -> None:
        _, answer = await add(holder.http, Authenticator(gateway.url), password="wrong")
        assert (answer.status_code, "not your current password" in answer.text) == (400, True)

    @pytest.mark.proves("security: password-changes")
    async def test_a_password_changed_concurrently_prevents_adding_a_passkey(
        self, holder: Holder, gateway: RunningGateway, owner: asyncpg.Connection
    ) -> None:
        adding = add(holder.http, Authenticator(gateway.url), name="Late")
        _, answer = await beside_another_password(owner, holder.person, adding)
        assert (answer.status_code, "not your current password" in answer.text) == (400, True)
        assert "Late" not in await account_of(holder)

    @pytest.mark.parametrize(
        "change", [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"verifies": False}]
    )
    async def test_a_wrong_ceremony_adds_nothing(
        self, holder: Holder, gateway: RunningGateway, change: dict[str, Any]
    ) -> None:
        device = replace(Authenticator(gateway.url, host="127.0.0.1"), **change)
        _, answer = await add(holder.http, device, name="Wrong")
        assert (answer.status_code, NOT_ADDED in answer.text) == (400, True)
        assert "Wrong" not in (await holder.http.get("/account")).text

    @pytest.mark.proves("security: passkey-challenges")
    async def test_a_challenge_is_valid_for_the_person_who_asked(
        self, holder: Holder, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        """Even in the same browser. A challenge for signing in is not valid for adding."""
        token = await token_of(holder.http, "/account")
        options = await options_for(holder.http, ACCOUNT, token)
        other = await joined(databases, caller, Role.READER, pepper=pepper)
        holder.http.cookies.delete("recollect_session")
        await sign_in(holder.http, other.email)
        for challenge in (options, await options_for(holder.http, SIGN_IN, token)):
            _, credential = Authenticator(gateway.url).make(options | {"challenge": challenge["challenge"]})
            fields = {"form_token": token, "credential": credential, "name": "x", "password": PASSWORD}
            answer = await holder.http.post(ACCOUNT, data=fields)
            assert (answer.status_code, NOT_ADDED in answer.text) == (400, True)

    @pytest.mark.proves("security: passkey-owners")
    async def test_a_credential_belongs_to_one_person(
        self, holder: Holder, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        other = await joined(databases, caller, Role.READER, pepper=pepper)
        await sign_in(http, other.email)
        _, answer = await add(http, holder.device)
        assert (answer.status_code, "already registered" in answer.text) == (400, True)

    async def test_number_of_passkeys_of_a_person_is_limited(
        self, holder: Holder, gateway: RunningGateway, owner: asyncpg.Connection
    ) -> None:
        await owner.execute(
            """INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, name)
            SELECT gen_random_uuid(), $1, gen_random_uuid()::text::bytea, 'x', 0, 'x' FROM generate_series(2, $2)""",
            holder.person.id,
            MAX_PASSKEYS,
        )
        _, answer = await add(holder.http, Authenticator(gateway.url))
        assert (answer.status_code, f"{MAX_PASSKEYS} passkeys" in answer.text) == (400, True)

    async def test_a_person_who_is_not_signed_in_is_asked_to_sign_in(self, http: httpx2.AsyncClient) -> None:
        token = await token_of(http, "/sign-in")
        assert (await http.post(f"{ACCOUNT}/options", data={"form_token": token})).status_code == 401
        assert (await http.post(ACCOUNT, data={"form_token": token})).headers["location"] == "/sign-in"


class TestOwn:
    async def test_passkeys_are_renamed_and_removed(self, holder: Holder, http: httpx2.AsyncClient) -> None:
        shown = await holder.http.get("/account")
        [action] = re.findall(r'action="(/account/passkeys/[0-9a-f-]+)/remove"', shown.text)
        token = await token_of(holder.http, "/account")
        await holder.http.post(f"{action}/name", data={"form_token": token, "name": "<Old> laptop"})
        assert "&lt;Old&gt; laptop" in (await holder.http.get("/account")).text
        assert (await holder.http.post(f"{action}/name", data={"form_token": token, "name": ""})).status_code == 400
        assert (await holder.http.post(f"{action}/remove", data={"form_token": "0" * 64})).status_code == 403
        assert (await holder.http.post(f"{action}/remove", data={"form_token": token})).status_code == 303
        assert_refused(await sign_in_with(http, holder.device))

    async def test_the_last_way_to_sign_in_cannot_be_removed(
        self, holder: Holder, http: httpx2.AsyncClient, owner: asyncpg.Connection
    ) -> None:
        """A person without a password can remove one of two passkeys, and not the other."""
        await add(holder.http, Authenticator(holder.device.origin), name="Key")
        await owner.execute("UPDATE people SET password_hash = NULL WHERE email = $1", holder.person.email)
        token, statuses = await token_of(holder.http, "/account"), []
        first, second = re.findall(REMOVE, await account_of(holder))
        for action in (first, second):
            answer = await holder.http.post(action, data={"form_token": token})
            statuses.append(answer.status_code)
        assert statuses == [303, 409]
        assert "your only way to sign in" in answer.text
        assert re.findall(REMOVE, await account_of(holder)) == [second]

    @pytest.mark.proves("security: passkey-owners")
    async def test_another_persons_passkeys_cannot_be_reached(
        self, holder: Holder, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        [action] = re.findall(
            r'action="(/account/passkeys/[0-9a-f-]+)/remove"', (await holder.http.get("/account")).text
        )
        await sign_in(http, (await joined(databases, caller, Role.OWNER, pepper=pepper)).email)
        token = await token_of(http, "/account")
        for what in ("name", "remove"):
            answer = await http.post(f"{action}/{what}", data={"form_token": token, "name": "Stolen"})
            assert answer.status_code == 404
        assert "Laptop" in (await holder.http.get("/account")).text


@pytest.mark.proves("security: stolen-sessions")
async def test_the_script_is_ours_and_the_policy_allows_no_other(http: httpx2.AsyncClient) -> None:
    page = await http.get("/sign-in", headers={"Host": f"localhost:{http.base_url.port}"})  # It needs a name.
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert set(re.findall(r"<script[^>]*>(.*?)</script>", page.text)) == {""}
    script = await http.get("/assets/passkeys.js")
    assert (script.status_code, script.headers["content-type"].partition(";")[0]) == (200, "text/javascript")
    assert "navigator.credentials" in script.text
