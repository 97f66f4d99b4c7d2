"""Gateways behind PgBouncer in transaction mode, with `RECOLLECT_DATABASE_POOLED`: two share two connections."""

import asyncio
from pathlib import Path

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import Unavailable
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, answer
from tests.verify.pgbouncer import pgbouncer
from tests.verify.processes import gateway_process

CALLS = 12


async def test_two_gateways_share_two_connections_and_keep_their_tenants_apart(
    settings: Settings, caller: Caller, new_tenant: NewTenant, issue: NewApiKey, tmp_path: Path
) -> None:
    keys = [(await issue(each)).secret for each in (caller, operator_caller(await new_tenant()))]
    with pgbouncer(settings.database_url, connections=2) as url:
        pooled = settings.model_copy(update={"database_url": url, "database_pooled": True})
        with (
            gateway_process(pooled, tmp_path / "one.log") as one,
            gateway_process(pooled, tmp_path / "two.log") as two,
        ):

            async def work(number: int) -> None:
                tenant = number % 2
                deployed = (one, two)[number // 2 % 2]
                async with deployed.gateway.client(keys[tenant], "/mcp/x/all") as client:
                    said = f"Lighthouse {number} of tenant {tenant}"
                    await answer(client, "remember", items=[{"text": said, "about": ["Lighthouse"]}])
                    recalled = await answer(client, "recall", query="lighthouse", limit=50)
                    misspelt = await answer(client, "fuzzy_search", query="Lighthuose")  # by a cursor
                    for found in (str(recalled), str(misspelt)):
                        assert said in found
                        assert f"of tenant {1 - tenant}" not in found

            await asyncio.gather(*(work(number) for number in range(CALLS)))
            assert one.faults() == two.faults() == []


async def test_without_the_setting_pgbouncer_refuses_the_connection(settings: Settings) -> None:
    """PgBouncer refuses the settings of a session, so the setting is required."""
    with pgbouncer(settings.database_url, connections=2) as url:
        direct = settings.model_copy(update={"database_url": url})
        async with Database.connect(url, settings=direct) as db:
            with pytest.raises(Unavailable, match="set RECOLLECT_DATABASE_POOLED") as raised:
                await db.ping()
    assert "unsupported startup parameter" in str(raised.value.__cause__)
