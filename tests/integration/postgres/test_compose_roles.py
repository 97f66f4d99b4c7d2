"""infra/compose/make_roles.sh, which PostgreSQL's image runs when it makes the cluster, before the first migration."""

import asyncio
import os
import subprocess
from pathlib import Path

import asyncpg
import pytest

from recollect.postgres.migrate import migrate
from recollect_local import postgres as local
from recollect_local.postgres import LocalPostgres

SCRIPT = Path(__file__).parents[3] / "infra" / "compose" / "make_roles.sh"
ROLES = {"recollect_app": "app", "recollect_maintenance": "maintenance", "recollect_operator": "operator"}


@pytest.fixture
def cluster(tmp_path: Path) -> LocalPostgres:
    """A new cluster, without our roles."""
    return LocalPostgres(tmp_path, settings={"fsync": "off"})


def make_roles(cluster: LocalPostgres, secrets: Path) -> None:
    psql = local._program("psql").parent  # The wheel's program, which is not on PATH.
    where = cluster.url().split("host=")[1].split("&")[0]
    variables = {"PGHOST": where, "PGPORT": "5432", "POSTGRES_USER": "postgres", "POSTGRES_DB": "recollect"}
    path = {"PATH": f"{psql}:{os.environ['PATH']}", "SECRETS": str(secrets)}
    subprocess.run(["sh", SCRIPT], env=path | variables, check=True)


async def test_the_script_makes_roles_with_passwords_on_which_migrations_build(
    cluster: LocalPostgres, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ROLES.values():
        (secrets / f"{name}_password").write_text(f"it's {name}")
    cluster.start()
    try:
        await asyncio.to_thread(make_roles, cluster, secrets)
        await migrate(cluster.url())
        connection = await asyncpg.connect(cluster.url())
        found = await connection.fetch(
            "SELECT rolname, rolpassword, rolsuper FROM pg_authid WHERE rolname = ANY($1)", [*ROLES]
        )
        member = await connection.fetchval("SELECT pg_has_role('recollect_maintenance', 'recollect_owner', 'USAGE')")
        await connection.close()
    finally:
        cluster.stop()
    assert {row["rolname"] for row in found} == set(ROLES)
    assert all(row["rolpassword"].startswith("SCRAM-SHA-256$") and not row["rolsuper"] for row in found)
    assert member
