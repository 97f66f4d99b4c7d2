"""Every route with ids and names of another tenant reveals nothing, with both guards and with each alone."""

import re
from uuid import uuid4

import asyncpg
import pytest

from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.attacks import NAMED, ROUTES, Attack, admin_of, anonymous, attacks, ids_in, lasting, names_of
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.guards import BOTH, Attacked, ids_of
from tests.support.people import browser, joined, sign_in
from tests.support.routes import QUERY
from tests.support.statements import sent_statements
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]

SECRETS = ("Zuse", "platypus")


@pytest.fixture
async def victim(neighbours: Neighbours) -> Neighbour:
    """A tenant with objects of each kind, some of which the other does not have."""
    _, victim = neighbours
    await victim.observe("Ada", "kept a platypus called Ferdinand")
    await victim.create("Zuse")
    return victim


def test_the_attacks_have_an_id_for_every_path_parameter() -> None:
    placeholders = {name for _, path in ROUTES for name in re.findall(r"\{(\w+)\}", path)}
    assert placeholders == set(NAMED)


@pytest.mark.proves("security: foreign-ids", "security: foreign-timing")
async def test_foreign_ids_look_like_unknown_ones_and_nothing_moves(
    attacked: Attacked,
    issue: NewApiKey,
    db: Database,
    neighbours: Neighbours,
    victim: Neighbour,
    owner: asyncpg.Connection,
) -> None:
    """The answers are equal, and so are the round trips and statements."""
    stranger, _ = neighbours
    names, own = await names_of(owner, victim.caller), await names_of(owner, stranger.caller)
    unknown = {name: str(uuid4()) for name in names}
    before = lasting(await contents(owner, victim))
    hidden = ids_in(before) - ids_in(await contents(owner, stranger)) | set(SECRETS)
    ids = await ids_of(db, stranger.caller), await ids_of(db, victim.caller)
    compared = 0
    async with admin_of(attacked.gateway, issue, stranger.caller) as http:
        with attacked.by(*ids):
            for foreign, other in zip(attacks(names, own), attacks(unknown, own), strict=True):
                await Attack("get", "/v1/graphs/{name}/nodes", own).send(
                    http
                )  # The gateway knows the stranger's graph.
                with sent_statements() as sent:
                    answer = await foreign.send(http)
                where = (foreign, answer.status_code, answer.text)
                assert [word for word in hidden - foreign.requested_ids() if word in answer.text] == [], where
                if foreign.url != other.url:
                    with sent_statements() as sent_of_unknown:
                        assert anonymous(answer, foreign) == anonymous(await other.send(http), other), where
                    if attacked.guards == BOTH:
                        assert sent == sent_of_unknown, where
                        compared += bool(sent)
                if attacked.guards.predicates:
                    assert answer.status_code < 500, where
    assert lasting(await contents(owner, victim)) == before
    assert compared > len(NAMED) or attacked.guards != BOTH


async def test_without_guards_the_same_routes_find_everything(
    unguarded: Attacked,
    issue: NewApiKey,
    db: Database,
    neighbours: Neighbours,
    victim: Neighbour,
    owner: asyncpg.Connection,
) -> None:
    """This shows that each guard alone stops the attacks, and that found objects take other statements."""
    stranger, _ = neighbours
    names, own = await names_of(owner, victim.caller), await names_of(owner, stranger.caller)
    unknown = {name: str(uuid4()) for name in names}
    ids = await ids_of(db, stranger.caller), await ids_of(db, victim.caller)
    hidden = ids_in(await contents(owner, victim)) - ids_in(await contents(owner, stranger)) | set(SECRETS)
    found, told = set(), set()
    async with admin_of(unguarded.gateway, issue, stranger.caller) as http:
        with unguarded.by(*ids):
            for attack, other in zip(attacks(names, own), attacks(unknown, own), strict=True):
                if attack.method != "get":
                    continue
                with sent_statements() as sent:
                    text = (await attack.send(http)).text
                if [word for word in hidden - attack.requested_ids() - {QUERY["q"]} if word in text]:
                    found.add(attack.path)
                with sent_statements() as sent_of_unknown:
                    await other.send(http)
                if sent != sent_of_unknown:
                    told.add(attack.path)
    assert len(found) > 8, sorted(found)
    assert len(told) > 3, sorted(told)


async def test_a_tenant_of_which_one_is_not_a_member_looks_like_an_unknown_one(
    gateway: RunningGateway,
    databases: Databases,
    settings: Settings,
    neighbours: Neighbours,
    owner: asyncpg.Connection,
) -> None:
    """Every route in a browser whose header names the tenant: a foreign tenant looks like an unknown one."""
    stranger, victim = neighbours
    names = await names_of(owner, victim.caller)
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(databases, stranger.caller, Role.OWNER, pepper=pepper)
    async with browser(gateway) as http:
        await sign_in(http, person.email)
        for attack in attacks(names, names):
            told = []
            for tenant in (victim.caller.tenant, "nobodys-name"):
                http.headers["x-recollect-tenant"] = tenant
                with sent_statements() as sent:
                    answer = await attack.send(http)
                told.append((answer.status_code, answer.text, sent))
            assert told[0] == told[1], attack
            assert told[0][0] == 401, attack
