"""PostgreSQL and Redis over TLS, with addresses as the Helm chart makes them: a server with another identity is
refused.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from redis.exceptions import RedisError

from recollect.errors import Unavailable
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from tests.support.tls_fronts import tls_front
from tests.support.web_server import CertificateAuthority


@pytest.fixture
def ours(tmp_path: Path) -> CertificateAuthority:
    return authority(tmp_path, "ours")


@pytest.fixture
def others(tmp_path: Path) -> CertificateAuthority:
    return authority(tmp_path, "others")


def authority(folder: Path, name: str) -> CertificateAuthority:
    """An authority whose own certificate is a file, as a pod has it from a Secret."""
    (folder / name).mkdir()
    made = CertificateAuthority(folder / name)
    (folder / name / "ca.crt").write_bytes(made.pem)
    return made


@asynccontextmanager
async def redis_is_up(settings: Settings, by: CertificateAuthority, name: str, trusted: Path) -> AsyncIterator[bool]:
    """Whether a Redis with a certificate for that name answers at `localhost`, for a client that trusts that file."""
    socket = Path(urlsplit(settings.redis_url).path)
    async with tls_front(socket, by.serving(name)) as port:
        url = f"rediss://localhost:{port}/0?ssl_ca_certs={trusted}"
        redis = connect_redis(settings.model_copy(update={"redis_url": url, "redis_timeout_seconds": 5.0}))
        try:
            yield bool(await redis.ping())
        except RedisError:
            yield False
        finally:
            await redis.aclose()


@pytest.mark.proves("security: server-certificates")
async def test_redis_must_have_a_trusted_certificate_for_its_name(
    settings: Settings, ours: CertificateAuthority, others: CertificateAuthority, tmp_path: Path
) -> None:
    trusted = tmp_path / "ours" / "ca.crt"
    found = {}
    for by, name in ((ours, "localhost"), (ours, "cache.example.com"), (others, "localhost")):
        async with redis_is_up(settings, by, name, trusted) as answers:
            found[by is ours, name] = answers
    assert found == {(True, "localhost"): True, (True, "cache.example.com"): False, (False, "localhost"): False}


@pytest.mark.proves("security: server-certificates")
async def test_postgresql_must_have_a_trusted_certificate_for_its_name(
    settings: Settings, ours: CertificateAuthority, others: CertificateAuthority, tmp_path: Path
) -> None:
    [folder] = parse_qs(urlsplit(settings.database_url).query)["host"]
    socket, trusted = Path(folder) / ".s.PGSQL.5432", tmp_path / "ours" / "ca.crt"
    found = {}
    for by, name in ((ours, "localhost"), (ours, "db.example.com"), (others, "localhost")):
        async with tls_front(socket, by.serving(name), is_postgresql=True) as port:
            url = f"postgresql://recollect_app@localhost:{port}/recollect?sslmode=verify-full&sslrootcert={trusted}"
            found[by is ours, name] = await refusal(settings.model_copy(update={"database_url": url}))
    told = "The certificate of the server at RECOLLECT_DATABASE_URL cannot be verified."
    assert found == {(True, "localhost"): None, (True, "db.example.com"): told, (False, "localhost"): told}


async def refusal(settings: Settings) -> str | None:
    """Why the database does not answer, or None if it does."""
    try:
        async with Database.connect(settings.database_url, settings=settings) as db:
            await db.ping()
    except Unavailable as error:
        return str(error)
    return None
