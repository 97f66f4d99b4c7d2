"""Helpers of drills: settings for a server of their own, a tenant and a key on it, and exports of its graph."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import asyncpg

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.support.clusters import Cluster
from tests.support.gateway import RunningGateway, issue_key
from tests.support.load import Load


def address(role: str, *servers: Cluster) -> str:
    """An address with several servers, for a connection to the one that accepts writes."""
    hosts, ports = ",".join(server.host for server in servers), ",".join("5432" for _ in servers)
    return f"postgresql://{quote(role)}@/recollect?host={hosts}&port={ports}&target_session_attrs=read-write"


def on(settings: Settings, *servers: Cluster, **changed: Any) -> Settings:
    """Settings for these servers."""
    urls = {
        "database_url": address("recollect_app", *servers),
        "owner_database_url": address("recollect_owner", *servers),
        "database_acquire_seconds": 5.0,
    }
    return settings.model_copy(update={**urls, **changed})


async def issued_key(own: Settings, slug: str = "drill") -> str:
    """The key of an administrator of a new tenant."""
    async with Operator.connect(own.migration_url, own) as operator:
        caller = operator_caller(await tenants.create_tenant(operator, slug, slug.title()))
    async with Database.connect(own.database_url, settings=own) as db:
        return (await issue_key(db, own, caller, kind="admin")).secret


@asynccontextmanager
async def calling(gateway: RunningGateway, key: str) -> AsyncIterator[Load]:
    """Calls of one agent."""
    async with gateway.http(key) as http:
        yield Load(http)


async def graph_of(gateway: RunningGateway, key: str, graph: str = "default") -> str:
    """The graph, as JSON."""
    async with gateway.http(key) as http:
        exported = await http.get(f"/v1/graphs/{graph}/export", params={"format": "json"})
        return exported.text


async def embedded(own: Settings) -> bool:
    """Whether every passage has its vector."""
    connection = await asyncpg.connect(own.migration_url, server_settings={"search_path": "recollect, public"})
    try:
        return not await connection.fetchval(
            "SELECT count(*) FROM passages WHERE embedding_model IS NULL AND removed_revision IS NULL AND NOT settled"
        )
    finally:
        await connection.close()
