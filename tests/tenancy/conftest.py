"""Two tenants with equal rows in every table."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey, NewKey, operator_caller
from recollect.accounts.members import service as members
from recollect.caller import Caller, Role
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.leases import claim_job, record_step
from recollect.jobs.model import Job, JobBounds, NewJob, StepResult
from recollect.memory.model import NewMemory
from recollect.postgres.connections import APP_ROLE, session_settings
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work

PEPPER = b"pepper"
NOBODYS_KIND = "of_nobody"
"""A kind of job that no worker knows, so that the job stays as it is."""


@dataclass(frozen=True)
class Neighbour(Agent):
    """A tenant with a key, an entity, a relation, a placeholder, a fact, an observation, and an alias.

    It has jobs, too: one on hold with its input, one with an output, and one that is due.
    """

    key: IssuedKey | None = None
    jobs: tuple[Job, ...] = ()

    @property
    def held(self) -> Job:
        return self.jobs[0]

    @property
    def done(self) -> Job:
        return self.jobs[1]

    @property
    def due(self) -> Job:
        return self.jobs[2]


@pytest.fixture
async def temporary_objects(postgres: LocalPostgres, database_url: str) -> AsyncIterator[None]:
    """Let the application make temporary objects, as an operator might: this tests the guards behind that one."""
    superuser = await asyncpg.connect(postgres.url())
    await superuser.execute("GRANT TEMPORARY ON DATABASE recollect TO recollect_app")
    yield
    await superuser.execute("REVOKE TEMPORARY ON DATABASE recollect FROM recollect_app")
    await superuser.close()


@pytest.fixture
async def attacker(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """A connection for arbitrary SQL as the application, without a tenant."""
    connection = await asyncpg.connect(settings.database_url, server_settings=session_settings(APP_ROLE, settings))
    yield connection
    await connection.close()


@pytest.fixture
async def tables(owner: asyncpg.Connection) -> list[str]:
    """Every table that belongs to tenants."""
    return await tables_of_tenants(owner)


async def tables_of_tenants(owner: asyncpg.Connection) -> list[str]:
    """The names of the tables with a tenant for each row."""
    rows = await owner.fetch(
        """SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition
        ORDER BY 1"""
    )
    return [row["relname"] for row in rows]


async def contents(owner: asyncpg.Connection, neighbour: Neighbour) -> list[str]:
    """Every row of the tenant, as text."""
    rows = []
    for table in await tables_of_tenants(owner):
        rows += await owner.fetch(
            f"SELECT to_jsonb(x)::text AS row FROM {table} x WHERE tenant_id = $1", neighbour.caller.tenant_id
        )
    return sorted(row["row"] for row in rows)


@pytest.fixture
async def neighbours(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> AsyncIterator[tuple[Neighbour, Neighbour]]:
    async with _two_neighbours(db, new_tenant, owner) as two:
        yield two


@pytest.fixture(scope="module")
async def unchanged_neighbours(
    db: Database, new_tenant: NewTenant, owner_connections: asyncpg.Pool
) -> AsyncIterator[tuple[Neighbour, Neighbour]]:
    """Two for all tests of a file that change nothing of theirs. That they do not is verified at the end."""
    async with owner_connections.acquire() as lent:
        owner = cast("asyncpg.Connection", lent)
        async with _two_neighbours(db, new_tenant, owner) as two:
            before = [await contents(owner, neighbour) for neighbour in two]
            yield two
            assert [await contents(owner, neighbour) for neighbour in two] == before


@asynccontextmanager
async def _two_neighbours(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> AsyncIterator[tuple[Neighbour, Neighbour]]:
    callers = [operator_caller(await new_tenant()) for _ in range(2)]
    async with at_work(db, callers[0]) as mine, at_work(db, callers[1]) as other:
        for agent in (mine, other):
            await _remember(agent)
        await _insert_the_rest(owner, [agent.caller.tenant_id for agent in (mine, other)])
        yield await _as_neighbour(mine), await _as_neighbour(other)


async def _remember(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    await agent.relate(("Ada", "Babbage", "knows"))
    await agent.remember("the engine was never built", NewMemory("likes tea", about=("Ada",)))


async def _insert_the_rest(owner: asyncpg.Connection, tenants: list[UUID]) -> None:
    """Insert rows of both tenants into the tables that are still empty, in one statement for each table."""
    await owner.execute(
        """INSERT INTO aliases SELECT DISTINCT ON (tenant_id) tenant_id, graph_id, id, 'Countess', 1 FROM nodes
        WHERE tenant_id = ANY ($1)""",
        tenants,
    )
    for table in (
        "passage_vectors SELECT tenant_id, id, 'model', '[1, 0]' FROM passages",
        "passage_evidence SELECT tenant_id, id, 'model', 1, 'bits', '{}' FROM passages",
        "searched_vectors SELECT tenant_id, graph_id, id, 'model', '[1, 0]' FROM passages",
        "terms SELECT tenant_id, id, 'tea', 2 FROM graphs",
    ):
        await owner.execute(f"INSERT INTO {table} WHERE tenant_id = ANY ($1)", tenants)
    await owner.execute(
        """WITH ends AS (SELECT tenant_id, graph_id, min(id::text)::uuid AS one, max(id::text)::uuid AS other
            FROM nodes WHERE tenant_id = ANY ($1) GROUP BY 1, 2)
        INSERT INTO duplicates SELECT tenant_id, graph_id, one, other, 0.9, now() FROM ends""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO dismissals (tenant_id, graph_id, node_id, other_id, likeness, dismissed_by)
        SELECT tenant_id, graph_id, node_id, other_id, 0.9, 'person' FROM duplicates WHERE tenant_id = ANY ($1)""",
        tenants,
    )
    await owner.execute(
        "INSERT INTO deduplications SELECT tenant_id, id, now() FROM graphs WHERE tenant_id = ANY ($1)", tenants
    )
    await owner.execute(
        "INSERT INTO autolinks SELECT tenant_id, min(id::text)::uuid, graph_id, 0.8 FROM nodes "
        "WHERE tenant_id = ANY ($1) GROUP BY tenant_id, graph_id",
        tenants,
    )
    await owner.execute(
        "INSERT INTO language_models (tenant_id, url, model, api_key, created_by) "
        "SELECT t, 'https://example.com/v1', 'model', 'sealed', 'person' FROM unnest($1::uuid[]) AS t",
        tenants,
    )
    for table, columns, values in (
        ("distilled_threads", "sequence, until_turn", "md5('thread')::uuid, id"),
        ("derived_facts", "fact_id, turn_id, sequence, job_id, version", "id, id, md5('thread')::uuid, id, 0"),
    ):
        await owner.execute(
            f"INSERT INTO {table} (tenant_id, graph_id, {columns}) SELECT tenant_id, graph_id, {values} FROM nodes "
            "WHERE tenant_id = ANY ($1) AND name IS NULL",
            tenants,
        )
    await owner.execute(
        """WITH person AS (INSERT INTO people (id, email, name)
            SELECT gen_random_uuid(), gen_random_uuid() || '@example.com', 'Ada' FROM unnest($1::uuid[]) RETURNING id)
        INSERT INTO members SELECT t, p.id, 'owner'
        FROM unnest($1::uuid[]) WITH ORDINALITY AS i (t, number)
        JOIN (SELECT id, row_number() OVER () AS number FROM person) AS p USING (number)""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO oauth_grants (tenant_id, id, person_id, client_id, client_name, scopes, resource, created_by,
            expires_at)
        SELECT tenant_id, gen_random_uuid(), person_id, 'https://client.example.com/x', 'Client', '{memory:read}',
            'https://memory.example.com/mcp', 'person', now() + interval '1 hour'
        FROM members WHERE tenant_id = ANY ($1)""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO sessions (id, person_id, hash, expires_at, user_agent, address)
        SELECT gen_random_uuid(), person_id, sha256(person_id::text::bytea), now() + interval '1 hour', '', ''
        FROM members WHERE tenant_id = ANY ($1)""",
        tenants,
    )
    for table, columns, values in (
        ("oauth_codes", "redirect_uri, code_challenge", "'https://client.example.com/cb', 'challenge'"),
        ("oauth_access_tokens", "id, scopes", "gen_random_uuid(), '{memory:read}'"),
        ("oauth_refresh_tokens", "id, generation", "gen_random_uuid(), 0"),
    ):
        await owner.execute(
            f"INSERT INTO {table} (tenant_id, grant_id, hash, expires_at, {columns}) "
            f"SELECT tenant_id, id, sha256(('{table}' || id)::bytea), expires_at, {values} FROM oauth_grants "
            "WHERE tenant_id = ANY ($1)",
            tenants,
        )
    await owner.execute(
        """INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, created_by)
        SELECT t, gen_random_uuid(), 'Login', 'https://login.example.com', 'x', 'sealed', 'RS256', 'person'
        FROM unnest($1::uuid[]) AS t""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO email_domains (tenant_id, id, domain, secret, role, created_by)
        SELECT t, gen_random_uuid(), 'example.com', repeat('x', 43), 'member', 'person' FROM unnest($1::uuid[]) AS t""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO trusted_issuers (tenant_id, id, name, issuer, algorithm, claim, rules, created_by)
        SELECT t, gen_random_uuid(), 'Tokens', 'https://login.example.com', 'RS256', 'scope', '[]', 'person'
        FROM unnest($1::uuid[]) AS t""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO provider_identities (tenant_id, provider_id, subject, person_id)
        SELECT tenant_id, i.id, 'ada', m.person_id FROM identity_providers i JOIN members m USING (tenant_id)
        WHERE tenant_id = ANY ($1)""",
        tenants,
    )
    await owner.execute(
        """INSERT INTO provider_sign_ins (tenant_id, id, provider_id, hash, browser, place, expires_at)
        SELECT tenant_id, gen_random_uuid(), id, sha256(id::text::bytea), 'browser', '/account', now() + interval '1 h'
        FROM identity_providers WHERE tenant_id = ANY ($1)""",
        tenants,
    )
    await owner.execute(
        """WITH hook AS (INSERT INTO webhooks (tenant_id, id, url, description, event_types, secret, created_by,
                enabled, disabled_reason, disabled_at)
            SELECT t, gen_random_uuid(), 'https://example.com/', '', '{graph.changed}', 'x', 'key',
                false, 'asked', now()
            FROM unnest($1::uuid[]) AS t
            RETURNING tenant_id, id), cursors AS (
            INSERT INTO webhook_cursors SELECT h.tenant_id, h.id, g.id, 1 FROM hook h JOIN graphs g USING (tenant_id))
        INSERT INTO webhook_deliveries (tenant_id, id, webhook_id, event_type, source, occurred_at, data)
        SELECT tenant_id, gen_random_uuid(), id, 'webhook.test', 'webhook.test', now(), '{}' FROM hook""",
        tenants,
    )
    await owner.execute(
        "INSERT INTO idempotency_keys (tenant_id, key_hash, request_hash, rights_hash, sender_hash, expires_at) "
        "SELECT t, sha256('k'), sha256('k'), sha256('k'), sha256('k'), now() + interval '1 hour' "
        "FROM unnest($1::uuid[]) AS t",
        tenants,
    )
    await owner.execute(
        "INSERT INTO usage_hourly SELECT t, '2026-01-01Z', 'tool', 'recall', 1 FROM unnest($1::uuid[]) AS t", tenants
    )
    await owner.execute(
        "INSERT INTO deletion_requests (tenant_id, requested_by) "
        "SELECT DISTINCT ON (tenant_id) tenant_id, person_id FROM members WHERE tenant_id = ANY ($1)",
        tenants,
    )


async def settled(agent: Agent, owner: asyncpg.Connection) -> Neighbour:
    """Give an agent's tenant a row in every table."""
    await _remember(agent)
    await _insert_the_rest(owner, [agent.caller.tenant_id])
    return await _as_neighbour(agent)


async def _as_neighbour(agent: Agent) -> Neighbour:
    db, caller = agent.db, agent.caller
    async with db.transaction(caller) as tx:
        default = await graphs.get_graph(tx, "default")
        key = await identity.create_key(tx, NewKey("laptop", default_graph_id=default.id), pepper=PEPPER)
        await members.invite(tx, "grace@example.com", Role.MEMBER, pepper=PEPPER)
    return Neighbour(db, caller, key=key, jobs=await _employed(db, caller))


async def _employed(db: Database, caller: Caller) -> tuple[Job, ...]:
    bounds = JobBounds.of(Settings())
    async with db.transaction(caller) as tx:
        default = await graphs.get_graph(tx, "default")
        held = await jobs.schedule(tx, NewJob(NOBODYS_KIND, default.id, is_held=True))
        await jobs.append_input(tx, held.id, [b"what is to be read"], bounds)
        done = await jobs.schedule(tx, NewJob(NOBODYS_KIND, default.id, unique=False))
        claimed = await claim_job(tx, [NOBODYS_KIND], bounds)
        assert claimed is not None
        await record_step(tx, claimed, StepResult({}, 1, 1, finished=True, output=(b"what was found",)), bounds)
        due = await jobs.schedule(tx, NewJob(NOBODYS_KIND, default.id, {"why": "due"}))
    return held, done, due
