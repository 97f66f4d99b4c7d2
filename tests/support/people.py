"""People who sign in: how they are invited and join, and their browsers."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import httpx2
import pytest
from argon2 import PasswordHasher

from recollect.accounts.members import service as members
from recollect.accounts.people import passwords, sessions
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Browser, Person, PersonSession
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from tests.support.gateway import RunningGateway, eventually

T = TypeVar("T")

PASSWORD = "violet tractor under glass"
BROWSER = Browser("tests", "127.0.0.1")

_serial = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[Mapping[str, Any]]:
    """Passwords are kept as argon2id in one pass over the least memory; what `passwords` has in production is yielded.

    There each hash and each comparison is to take 50 ms of a core, and most tests of people need one of each.
    """
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    production = {name: getattr(passwords, name) for name in ("_HASHER", "_NOBODYS")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", cheap)
        patch.setattr(passwords, "_NOBODYS", cheap.hash("the password of nobody"))
        yield production


def new_email() -> str:
    """An unused email address."""
    return f"person-{next(_serial)}@example.com"


async def joined(
    databases: Databases, caller: Caller, role: Role, *, pepper: bytes, email: str | None = None
) -> Person:
    """A new person who is a member of the caller's tenant, with PASSWORD."""
    email = email or new_email()
    async with databases.of(caller.tenant_id).transaction(caller) as tx:
        issued = await members.invite(tx, email, role, pepper=pepper)
    invitation = await members.open_invitation(databases, issued.secret, pepper=pepper)
    person = await people.register(databases, email, "Ada", PASSWORD)
    await members.join(databases, invitation, person)
    return person


async def new_session(databases: Databases, person_id: UUID, *, pepper: bytes) -> PersonSession:
    """A session of a person who has just signed in."""
    issued = await sessions.begin_session(databases, person_id, BROWSER, pepper=pepper)
    session = await sessions.session_of(databases, issued.secret, pepper=pepper)
    assert session is not None
    return session


async def beside_another_password(owner: asyncpg.Connection, person: Person, act: Coroutine[Any, Any, T]) -> T:
    """The outcome of an act that checks the old password, and writes after another password was stored."""
    waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
    async with owner.transaction():
        await owner.execute("UPDATE people SET password_hash = 'another' WHERE id = $1", person.id)
        doing = asyncio.create_task(act)

        async def waits_or_is_done() -> bool:
            return doing.done() or bool(await owner.fetchval(waits))

        await eventually(waits_or_is_done)
    return await doing


@asynccontextmanager
async def browser(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser without scripts: it keeps cookies and follows no redirect by itself."""
    async with gateway.http() as http:
        yield http


async def submit(http: httpx2.AsyncClient, path: str, action: str | None = None, **fields: str) -> httpx2.Response:
    """Open a page, then submit its form with these fields."""
    shown = await http.get(path)
    assert shown.status_code == 200, shown.text
    return await send_form(http, shown.text, action or path, **fields)


async def send_form(http: httpx2.AsyncClient, html: str, action: str, **fields: str) -> httpx2.Response:
    """Submit a form of a page, with its hidden fields and these."""
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
    origin = {"Origin": str(http.base_url).rstrip("/")}
    return await http.post(action, data=hidden | fields, headers=origin)


async def sign_in(http: httpx2.AsyncClient, email: str, password: str = PASSWORD) -> httpx2.Response:
    """Sign in by the form, and return the answer."""
    return await submit(http, "/sign-in", email=email, password=password)
