"""Requests with an idempotency key over real HTTP: done once, and answered the same."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.audit.model import Action
from recollect.accounts.idempotency import service as idempotency
from recollect.accounts.idempotency.model import (
    MAX_ANSWER_BYTES,
    MAX_KEYS,
    MAX_KEYS_OF_SENDER,
    AnswerVault,
    IdempotentRequest,
    SavedAnswer,
    idempotency_key,
)
from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, operator_caller
from recollect.accounts.members import service as members
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict, InvalidInput
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.callers.browser_sessions import TENANT_HEADER
from recollect_gateway.requests.idempotency import Claim, IdempotencyMiddleware
from recollect_workers.jobs import cleanup
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway
from tests.support.jobs import employed
from tests.support.people import browser, joined, sign_in

PEPPER = b"pepper"
VAULT = AnswerVault.of(PEPPER)
KEYS = "SELECT count(*) FROM api_keys WHERE tenant_id = $1"
REPLAYED = "idempotency-replayed"


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as client:
        yield client


async def make_key(http: httpx2.AsyncClient, key: str = "one", name: str = "laptop", **headers: str) -> httpx2.Response:
    return await http.post("/v1/keys", json={"name": name}, headers={"Idempotency-Key": key} | headers)


def refused(response: httpx2.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    assert REPLAYED not in response.headers


def request_of(caller: Caller, key: str = "one", body: bytes = b"{}") -> IdempotentRequest:
    return IdempotentRequest.of(caller, key, "POST", "/v1/keys?", body, pepper=PEPPER)


class TestRepeats:
    async def test_a_repeated_request_gets_the_first_answer_and_does_nothing(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        before = await owner.fetchval(KEYS, caller.tenant_id)
        first = await make_key(http)
        again = [await make_key(http) for _ in range(2)]
        assert (first.status_code, first.headers.get(REPLAYED)) == (201, None)
        for each in again:
            assert (each.status_code, each.content, each.headers[REPLAYED]) == (201, first.content, "true")
            assert each.headers["content-type"] == first.headers["content-type"]
        assert await owner.fetchval(KEYS, caller.tenant_id) == before + 1

    async def test_a_repeated_request_is_logged_once(self, http: httpx2.AsyncClient) -> None:
        for _ in range(3):
            await make_key(http)
        listed = (await http.get("/v1/audit", params={"action": Action.KEY_CREATED})).json()["items"]
        assert len(listed) == 2  # The key of this client, and the new one.

    async def test_without_an_idempotency_key_each_request_is_done(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        for _ in range(2):
            assert REPLAYED not in (await http.post("/v1/keys", json={"name": "laptop"})).headers
        assert await owner.fetchval(KEYS, caller.tenant_id) == 3

    async def test_another_idempotency_key_is_another_act(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        assert (await make_key(http, "one")).json()["id"] != (await make_key(http, "two")).json()["id"]

    @pytest.mark.parametrize("quoted", ['"one"', "one"])
    async def test_a_quoted_idempotency_key_is_the_same_as_an_unquoted_one(
        self, http: httpx2.AsyncClient, quoted: str
    ) -> None:
        first = await make_key(http, "one")
        assert (await make_key(http, quoted)).content == first.content

    async def test_other_methods_are_done_once_too(self, http: httpx2.AsyncClient) -> None:
        made = (await make_key(http)).json()
        answers = [await http.delete(f"/v1/keys/{made['id']}", headers={"Idempotency-Key": "two"}) for _ in range(2)]
        assert answers[0].content == answers[1].content
        assert [each.headers.get(REPLAYED) for each in answers] == [None, "true"]

    async def test_an_answer_without_a_body_is_repeated(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller
    ) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        answers = [await http.delete(f"/v1/members/{person.id}", headers={"Idempotency-Key": "one"}) for _ in range(2)]
        assert [(each.status_code, each.content) for each in answers] == [(204, b"")] * 2

    async def test_memories_are_stored_once(self, http: httpx2.AsyncClient) -> None:
        for _ in range(2):
            answer = await http.post(
                "/v1/graphs/default/memories",
                json={"items": [{"text": "tea is hot"}]},
                headers={"Idempotency-Key": "one"},
            )
            assert answer.is_success, answer.text
        assert answer.headers[REPLAYED] == "true"
        assert (await http.get("/v1/graphs/default")).json()["revision"] == 1

    async def test_requests_that_only_read_are_repeated(self, http: httpx2.AsyncClient) -> None:
        for _ in range(2):
            answer = await http.post(
                "/v1/graphs/default/recall", json={"query": "tea"}, headers={"Idempotency-Key": "one"}
            )
            assert answer.is_success
            assert REPLAYED not in answer.headers


class TestRefusals:
    async def test_an_idempotency_key_of_another_request_is_refused(self, http: httpx2.AsyncClient) -> None:
        await make_key(http)
        refused(await make_key(http, name="another"), 422, "idempotency_mismatch")
        elsewhere = await http.post("/v1/invitations", json={"name": "laptop"}, headers={"Idempotency-Key": "one"})
        refused(elsewhere, 422, "idempotency_mismatch")
        refused(await http.request("DELETE", "/v1/keys/x", headers={"Idempotency-Key": "one"}), 404, "not_found")

    async def test_an_idempotency_key_of_a_request_with_another_query_is_refused(
        self, http: httpx2.AsyncClient
    ) -> None:
        await http.post("/v1/graphs", json={"name": "notes"})
        headers = {"Idempotency-Key": "one"}
        assert (await http.delete("/v1/graphs/notes?dry_run=false", headers=headers)).status_code == 200
        for query in ("?dry_run=true", ""):
            other = await http.delete(f"/v1/graphs/notes{query}", headers=headers)
            refused(other, 422, "idempotency_mismatch")

    async def test_a_failed_request_can_be_repeated(self, http: httpx2.AsyncClient) -> None:
        for _ in range(2):
            answer = await http.post("/v1/graphs", json={"name": "default"}, headers={"Idempotency-Key": "one"})
            refused(answer, 409, "graph_exists")
        made = await http.post("/v1/graphs", json={"name": "notes"}, headers={"Idempotency-Key": "one"})
        assert made.status_code == 201

    @pytest.mark.parametrize("key", ["", '""', "x" * 256, "é"])
    async def test_an_invalid_idempotency_key_is_refused(self, http: httpx2.AsyncClient, key: str) -> None:
        headers = [(b"idempotency-key", key.encode()), (b"content-type", b"application/json")]
        answer = await http.post("/v1/keys", content=b'{"name": "laptop"}', headers=headers)
        refused(answer, 400, "invalid_input")
        assert answer.json()["path"] == "Idempotency-Key"

    async def test_several_idempotency_keys_are_refused(self, http: httpx2.AsyncClient) -> None:
        headers = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
        refused(await http.post("/v1/keys", json={"name": "laptop"}, headers=headers), 400, "invalid_input")

    async def test_a_route_for_bodies_of_any_length_accepts_no_idempotency_key(self, http: httpx2.AsyncClient) -> None:
        headers = {"Idempotency-Key": "one", "Content-Type": "application/x-ndjson"}
        answer = await http.post("/v1/graphs/default/imports", content=b"{}", headers=headers)
        refused(answer, 400, "invalid_input")

    async def test_a_body_over_the_limit_is_refused(self, http: httpx2.AsyncClient, settings: Settings) -> None:
        body = b'{"name": "' + b"x" * settings.max_request_bytes + b'"}'
        headers = {"Idempotency-Key": "one", "Content-Type": "application/json"}
        refused(await http.post("/v1/keys", content=body, headers=headers), 413, "request_too_large")

    @pytest.mark.proves("security: idempotency-keys-per-credential")
    async def test_a_repeated_request_with_other_rights_is_refused_and_not_done_again(
        self,
        gateway: RunningGateway,
        db: Database,
        databases: Databases,
        caller: Caller,
        settings: Settings,
        owner: asyncpg.Connection,
    ) -> None:
        pepper = settings.key_secret.get_secret_value().encode()
        await joined(databases, caller, Role.OWNER, pepper=pepper)
        person = await joined(databases, caller, Role.ADMIN, pepper=pepper)
        async with browser(gateway) as http:
            await sign_in(http, person.email)
            as_member = {TENANT_HEADER: caller.tenant}
            assert (await make_key(http, **as_member)).status_code == 201
            for role in (Role.READER, Role.OWNER):
                async with db.transaction(caller) as tx:
                    await members.change_role(tx, person.id, role)
                refused(await make_key(http, **as_member), 409, "idempotency_done")
        assert await owner.fetchval(KEYS, caller.tenant_id) == 1


class TestAtomicity:
    @pytest.mark.proves("security: acts-once")
    async def test_one_of_concurrent_requests_is_done(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        answers = await asyncio.gather(*(make_key(http) for _ in range(8)))
        done = [each for each in answers if each.status_code == 201]
        assert len({each.content for each in done}) == 1
        for each in answers:
            if each.status_code != 201:
                refused(each, 409, "idempotency_conflict")
        assert await owner.fetchval(KEYS, caller.tenant_id) == 2

    async def test_a_repeated_request_during_the_first_is_refused(self, db: Database, caller: Caller) -> None:
        first, second = (db.with_participant(Claim(request_of(caller), VAULT)) for _ in range(2))
        async with first.transaction(caller) as tx:
            await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER)
            with pytest.raises(Conflict) as error:
                async with second.transaction(caller):
                    pytest.fail("it began")
        assert error.value.code == "idempotency_conflict"

    @pytest.mark.proves("security: acts-once")
    async def test_an_act_whose_answer_was_lost_is_not_done_again(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        """After the commit and before its answer is stored, there is a row without an answer."""
        await make_key(http)
        died = "UPDATE idempotency_keys SET answer = NULL, created_at = now() - $2::interval WHERE tenant_id = $1"
        await owner.execute(died, caller.tenant_id, timedelta(0))
        refused(await make_key(http), 409, "idempotency_conflict")
        await owner.execute(died, caller.tenant_id, timedelta(minutes=2))
        refused(await make_key(http), 409, "idempotency_done")
        assert await owner.fetchval(KEYS, caller.tenant_id) == 2

    @pytest.mark.proves("security: acts-once")
    async def test_a_key_is_claimed_only_if_the_act_commits(self, db: Database, caller: Caller) -> None:
        claim = Claim(request_of(caller), VAULT)
        database = db.with_participant(claim)
        with pytest.raises(InvalidInput):
            async with database.transaction(caller) as tx:
                await identity.create_key(tx, NewKey(""), pepper=PEPPER)
        assert not claim.is_committed
        assert await idempotency.find_answer(db, caller, claim.request, VAULT) is None
        async with database.transaction(caller, commit=False), database.transaction(caller, read_only=True):
            pass
        assert await idempotency.find_answer(db, caller, claim.request, VAULT) is None
        async with database.transaction(caller) as tx:
            await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER)
        with pytest.raises(Conflict):
            await idempotency.find_answer(db, caller, claim.request, VAULT)

    async def test_an_act_of_several_transactions_claims_its_key_in_the_first(
        self, db: Database, caller: Caller
    ) -> None:
        claim = Claim(request_of(caller), VAULT)
        database = db.with_participant(claim)
        for _ in range(3):
            async with database.transaction(caller) as tx:
                await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER)
        with pytest.raises(Conflict):
            async with db.with_participant(Claim(request_of(caller), VAULT)).transaction(caller):
                pytest.fail("it began")

    async def test_an_undone_act_releases_its_key(self, db: Database, caller: Caller) -> None:
        """In the transaction that undoes it: if that is rolled back, the key stays claimed."""
        claim = Claim(request_of(caller), VAULT)
        database = db.with_participant(claim)
        async with database.transaction(caller) as tx:
            await identity.create_key(tx, NewKey("laptop"), pepper=PEPPER)
        async with database.transaction(caller, commit=False) as tx:
            tx.undo_act()
        with pytest.raises(Conflict):
            await idempotency.find_answer(db, caller, claim.request, VAULT)
        async with database.transaction(caller) as tx:
            tx.undo_act()
        assert not claim.is_committed
        assert await idempotency.find_answer(db, caller, claim.request, VAULT) is None

    async def test_a_claim_that_finds_the_act_done_gets_its_answer(self, db: Database, caller: Caller) -> None:
        request, answer = request_of(caller), SavedAnswer(201, [("content-type", "application/json")], b"{}")
        async with db.with_participant(Claim(request, VAULT)).transaction(caller):
            pass
        await idempotency.save_answer(db, caller, request, answer, VAULT)
        late = Claim(request, VAULT)
        with pytest.raises(Conflict):
            async with db.with_participant(late).transaction(caller):
                pytest.fail("it began")
        assert late.found == answer


class TestLeaving:
    async def test_a_request_whose_client_leaves_during_the_body_is_not_done(
        self, db: Database, caller: Caller, settings: Settings
    ) -> None:
        """Half of an import would be a valid import, too."""
        state = SimpleNamespace(db=db, settings=settings, pepper=PEPPER, answer_vault=VAULT)
        scope: Any = {
            "method": "POST",
            "path": "/v1/graphs/default/import",
            "query_string": b"",
            "headers": [(b"idempotency-key", b"one")],
            "user": caller,
            "state": {},
            "route_handler": SimpleNamespace(opt={}),
            "litestar_app": SimpleNamespace(state=state),
        }
        arriving = [
            {"type": "http.request", "body": b'{"type":"entity"}\n', "more_body": True},
            {"type": "http.disconnect"},
        ]
        begun: list[Any] = []

        async def receive() -> Any:
            return arriving.pop(0)

        async def act(*of: Any) -> None:
            begun.append(of)

        await IdempotencyMiddleware().handle(scope, receive, act, act)
        assert begun == []


class TestAnswers:
    @pytest.mark.proves("security: stored-answers-are-encrypted")
    async def test_secrets_in_answers_are_stored_encrypted(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        made = (await make_key(http)).json()
        invited = await http.post(
            "/v1/invitations", json={"email": "grace@example.com"}, headers={"Idempotency-Key": "two"}
        )
        stored = await owner.fetch(
            "SELECT i.*, i::text AS told FROM idempotency_keys i WHERE tenant_id = $1", caller.tenant_id
        )
        assert len(stored) == 2
        for row in stored:
            told = row["told"].encode() + row["answer"] + row["key_hash"] + row["request_hash"]
            for secret in (made["secret"], invited.json()["link"].rpartition("/")[2], "laptop", "grace"):
                assert secret.encode() not in told
                assert secret.encode().hex().encode() not in told

    @pytest.mark.proves("security: stored-answers-are-encrypted")
    async def test_a_stored_answer_cannot_be_decrypted_for_another_request(
        self, caller: Caller, new_tenant: NewTenant
    ) -> None:
        other = operator_caller(await new_tenant())
        closed = VAULT.close(SavedAnswer(200, [], b"secret"), caller.tenant_id, request_of(caller))
        assert VAULT.open(closed, caller.tenant_id, request_of(caller)) == SavedAnswer(200, [], b"secret")
        assert VAULT.open(closed, caller.tenant_id, request_of(caller, "two")) is None
        assert VAULT.open(closed, other.tenant_id, request_of(caller)) is None
        assert AnswerVault.of(b"another").open(closed, caller.tenant_id, request_of(caller)) is None

    async def test_an_answer_that_is_too_large_is_not_stored(
        self, db: Database, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        for size, kept in ((MAX_ANSWER_BYTES, True), (MAX_ANSWER_BYTES + 1, False)):
            request = request_of(caller, f"{size}")
            async with db.with_participant(Claim(request, VAULT)).transaction(caller):
                pass
            await idempotency.save_answer(db, caller, request, SavedAnswer(200, [], b"x" * size), VAULT)
            if kept:
                assert await idempotency.find_answer(db, caller, request, VAULT) is not None
            else:
                with pytest.raises(Conflict, match="Its response was not kept"):
                    await idempotency.find_answer(db, caller, request, VAULT)

    @pytest.mark.proves("security: stored-answers-are-encrypted")
    async def test_erased_data_does_not_stay_in_answers(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        body = {"items": [{"text": "likes tea", "about": ["Ada"]}]}
        kept = await http.post("/v1/graphs/default/memories", json=body, headers={"Idempotency-Key": "one"})
        assert kept.is_success
        for again in (False, True):
            erased = await http.post(
                "/v1/graphs/default/erase", json={"name": "Ada"}, headers={"Idempotency-Key": "two"}
            )
            if again:
                refused(erased, 409, "idempotency_done")
            else:
                assert erased.is_success, erased.text
        answers = await owner.fetch("SELECT answer FROM idempotency_keys WHERE tenant_id = $1", caller.tenant_id)
        assert [row["answer"] for row in answers] == [b"", b""]
        repeat = await http.post("/v1/graphs/default/memories", json=body, headers={"Idempotency-Key": "one"})
        refused(repeat, 409, "idempotency_done")


class TestLimits:
    async def test_number_of_idempotency_keys_of_a_tenant_is_limited(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        first = await make_key(http)
        await owner.execute(
            "INSERT INTO idempotency_keys (tenant_id, key_hash, request_hash, rights_hash, sender_hash, expires_at) "
            "SELECT $1, sha256(n::text::bytea), sha256('x'), sha256('x'), sha256('other'), now() + interval '1 hour' "
            "FROM generate_series(1, $2 - 1) AS n",
            caller.tenant_id,
            MAX_KEYS,
        )
        refused(await make_key(http, "two"), 429, "too_many_idempotency_keys")
        assert (await make_key(http)).content == first.content
        assert (await http.post("/v1/keys", json={"name": "laptop"})).status_code == 201

    @pytest.mark.proves("security: idempotency-key-quota")
    async def test_one_credential_leaves_keys_to_the_others_of_its_tenant(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        first = await make_key(http)
        await owner.execute(
            "INSERT INTO idempotency_keys (tenant_id, key_hash, request_hash, rights_hash, sender_hash, expires_at) "
            "SELECT $1, sha256(n::text::bytea), sha256('x'), sha256('x'), k.sender_hash, now() + interval '1 hour' "
            "FROM idempotency_keys k, generate_series(1, $2 - 1) AS n WHERE k.tenant_id = $1",
            caller.tenant_id,
            MAX_KEYS_OF_SENDER,
        )
        full = await make_key(http, "two")
        refused(full, 429, "too_many_idempotency_keys")
        assert f"This credential has {MAX_KEYS_OF_SENDER} idempotency keys" in full.json()["detail"]
        assert (await make_key(http)).content == first.content
        scopes = {"scopes": ["memory:read", "memory:write", "tenant:admin"]}
        admin = await http.post("/v1/keys", json={"name": "other"} | scopes)
        async with gateway.http(admin.json()["secret"]) as other:
            assert (await make_key(other, "two")).status_code == 201

    async def test_an_expired_key_is_new_and_the_worker_deletes_it(
        self,
        http: httpx2.AsyncClient,
        owner: asyncpg.Connection,
        caller: Caller,
        settings: Settings,
        db: Database,
    ) -> None:
        expire = "UPDATE idempotency_keys SET expires_at = now() WHERE tenant_id = $1"
        first = await make_key(http)
        await owner.execute(expire, caller.tenant_id)
        second = await make_key(http)
        assert first.json()["id"] != second.json()["id"]
        assert (await make_key(http)).content == second.content
        left = "SELECT count(*) FROM idempotency_keys WHERE tenant_id = $1"
        async with employed(settings, db) as context:
            await cleanup.delete_expired_idempotency_keys(context)
            assert await owner.fetchval(left, caller.tenant_id) == 1
            await owner.execute(expire, caller.tenant_id)
            await cleanup.delete_expired_idempotency_keys(context)
        assert await owner.fetchval(left, caller.tenant_id) == 0


def test_valid_idempotency_keys() -> None:
    assert idempotency_key("x" * 255) == "x" * 255
    assert idempotency_key('"a b"') == "a b"
    for given in ("", '""', '"', "x" * 256, "a\tb", "\x7f", "ü"):
        if given == '"':
            assert idempotency_key(given) == '"'
        else:
            with pytest.raises(InvalidInput):
                idempotency_key(given)


async def test_any_answer_survives_encryption(caller: Caller) -> None:
    headers: list[tuple[str, Any]] = [("etag", '"x"'), ("content-type", "application/json")]
    answer = SavedAnswer(201, headers, json.dumps({"ä": "\x00"}).encode())
    assert (
        VAULT.open(VAULT.close(answer, caller.tenant_id, request_of(caller)), caller.tenant_id, request_of(caller))
        == answer
    )


async def test_each_writing_route_documents_its_idempotency_key(http: httpx2.AsyncClient) -> None:
    document = (await http.get("/v1/openapi.json")).json()
    without = set()
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            if path.startswith("/v1/") and method in ("post", "put", "patch", "delete"):
                names = {parameter["name"] for parameter in told.get("parameters", [])}
                assert ("Idempotency-Key" in names) == ("422" in told["responses"])
                assert ("If-Match" in names) == ("412" in told["responses"])
                if "Idempotency-Key" not in names:
                    without.add(f"{method} {path}")
    assert without == {
        "post /v1/keys/report",
        "delete /v1/sessions/{session_id}",
        "post /v1/graphs/{name}/explore",
        "post /v1/graphs/{name}/imports",
        "post /v1/graphs/{name}/recall",
    }
