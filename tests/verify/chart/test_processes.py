"""An installation from the rendered chart by real processes: migration, bootstrap, gateway, worker, operator API."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect_local.address import claimed_port
from recollect_local.postgres import LocalPostgres
from tests.support.gateway import eventually
from tests.support.web_server import CertificateAuthority, plain, web_server
from tests.verify.chart.rendering import ALL, CHART, Manifest, manifests, merged, one
from tests.verify.chart.running import environment, lines, prepared_database, run, running

FILES = CHART / "files"
LOGINS = ("app", "owner", "maintenance", "operator")
URLS = {login: {"urlKey": "url"} for login in LOGINS}
VALUES = merged(
    ALL,
    {
        "settings": {"RECOLLECT_OTLP_ENDPOINT": "", "RECOLLECT_EMBEDDER": "wordllama"},
        "mail": {"secret": ""},
        "postgresql": {**URLS, "host": "", "pooler": {"host": ""}, "replica": {"host": ""}},
        "redis": {"host": "", "urlKey": "url"},
        "test": {"secret": "first"},
    },
)


@dataclass
class Installation:
    """The rendered objects, the Secrets of the namespace, and a folder for logs."""

    folder: Path
    secrets: dict[tuple[str, str], str]
    rendered: list[Manifest] = field(default_factory=lambda: manifests(VALUES))

    def tmp(self, name: str) -> Path:
        """The only folder to which the process of that name can write."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder


@pytest.fixture(scope="module")
async def installation(
    postgres: LocalPostgres, database_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    """A migrated installation; the fixture `database_url` creates the roles of its server."""
    address = await prepared_database(postgres, "of_the_chart")
    secrets = {
        ("cache", "url"): redis_url,
        ("embedder", "api-key"): "none",
        ("model", "api-key"): "none",
        ("recollect-key", "key-secret"): "k" * 32,
    }
    for login in LOGINS:
        secrets[f"db-{login}", "url"] = address(f"recollect_{login}")
    made = Installation(tmp_path_factory.mktemp("chart"), secrets)
    job = one(made.rendered, "Job", "migration")
    tmp = made.tmp("migration")
    migrated = run(job, environment(job, secrets, tmp), tmp)
    assert migrated.returncode == 0, migrated.stderr
    assert "applied 0001" in migrated.stdout
    return made


@pytest.fixture(scope="module")
async def first_key(installation: Installation) -> str:
    """The key that the bootstrap Job stores in the Secret, by a server in place of the Kubernetes API."""
    authority = CertificateAuthority(installation.folder)
    job = one(installation.rendered, "Job", "bootstrap")
    tmp = installation.tmp("bootstrap")
    (tmp / "token").write_text("the-token")
    (tmp / "ca.crt").write_bytes(authority.pem)
    variables = environment(job, installation.secrets, tmp)
    scripts = {"/bootstrap/bootstrap.py": FILES / "bootstrap.py"}
    async with web_server(plain(b"{}", "Content-Type: application/json"), tls=authority.serving("127.0.0.1")) as api:
        kubelet = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
        variables |= kubelet | {"ACCOUNT_FOLDER": str(tmp)}
        done = await asyncio.to_thread(run, job, variables, tmp, scripts)
        again = await asyncio.to_thread(run, job, variables, tmp, scripts)
    assert done.returncode == 0, done.stderr
    (_, tried), (head, body), *_ = api.requests
    assert json.loads(tried) == {"stringData": {}}
    assert head.startswith(b"PATCH /api/v1/namespaces/agents/secrets/memory-recollect-first-tenant HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer the-token\r\n" in head
    stored: dict[str, str] = json.loads(body)["stringData"]
    assert stored["invitation-link"].startswith("https://memory.example.com/")
    assert not any(secret in done.stdout + done.stderr for secret in stored.values())
    assert again.returncode == 0, "an upgrade runs it again"
    assert "There is already a tenant 'acme'." in again.stderr
    assert [json.loads(body) for _, body in api.requests[2:]] == [{"stringData": {}}]
    return stored["api-key"]


async def test_the_job_prints_the_first_key_once_if_no_secret_stores_it(installation: Installation) -> None:
    values = merged(VALUES, {"bootstrap": {"store": "log", "tenant": {"slug": "logged"}}})
    job, tmp = one(manifests(values), "Job", "bootstrap"), installation.tmp("logged")
    variables = environment(job, installation.secrets, tmp)
    scripts = {"/bootstrap/bootstrap.py": FILES / "bootstrap.py"}
    first, again = [await asyncio.to_thread(run, job, variables, tmp, scripts) for _ in range(2)]
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert [line for line in first.stdout.splitlines() if line.startswith(("rcl_", "https://memory.example.com/"))][1:]
    assert "rcl_" not in again.stdout
    assert "There is already a tenant 'logged'." in again.stderr


async def test_the_job_fails_if_the_tenant_cannot_be_created(installation: Installation) -> None:
    values = merged(VALUES, {"bootstrap": {"store": "log", "tenant": {"slug": "planned", "plan": "none-such"}}})
    job, tmp = one(manifests(values), "Job", "bootstrap"), installation.tmp("planned")
    scripts = {"/bootstrap/bootstrap.py": FILES / "bootstrap.py"}
    done = await asyncio.to_thread(run, job, environment(job, installation.secrets, tmp), tmp, scripts)
    assert done.returncode == 1
    assert "none-such" in done.stderr


@dataclass(frozen=True)
class Running:
    """The addresses of the running processes."""

    gateway: str
    operator: str
    metrics: dict[str, str]
    worker_log: Path


@pytest.fixture(scope="module")
async def up(installation: Installation, first_key: str) -> AsyncIterator[Running]:
    """Gateway, worker and operator API, run as their Deployments declare, until SIGTERM ends them."""
    ended: list[tuple[str, Callable[[], Any], Path]] = []
    async with AsyncExitStack() as stack:

        def start(name: str, *ports: str) -> list[int]:
            given = {port: stack.enter_context(claimed_port("127.0.0.1", 0)) for port in ports}
            deployment = one(installation.rendered, "Deployment", name)
            tmp, log = installation.tmp(name), installation.folder / f"{name}.log"
            variables = environment(deployment, installation.secrets, tmp, **given)
            process = stack.enter_context(running(deployment, variables, tmp, log))
            ended.append((name, process.poll, log))
            return list(given.values())

        gateway, metrics = start("gateway", "RECOLLECT_PORT", "RECOLLECT_METRICS_PORT")
        [of_worker] = start("worker", "RECOLLECT_METRICS_PORT")
        [operator] = start("operator", "RECOLLECT_OPERATOR_PORT")
        url = "http://127.0.0.1:{}".format
        told = {"gateway": url(metrics), "worker": url(of_worker)}
        yield Running(url(gateway), url(operator), told, installation.folder / "worker.log")
        for name, poll, log in ended:
            assert poll() is None, f"{name} ended: {log.read_text()}"
    for name, poll, log in ended:
        assert poll() in {0, -15}, f"{name} did not stop as it is told to: {log.read_text()}"


async def answers(address: str) -> httpx2.Response:
    """The answer of that address, once its status is 200."""
    found: list[httpx2.Response] = []

    async def is_well() -> bool:
        async with httpx2.AsyncClient(timeout=5) as client:
            try:
                found.append(await client.get(address))
            except httpx2.TransportError:
                return False
        return found[-1].status_code == 200

    await eventually(is_well)
    return found[-1]


async def test_probes_are_answered_at_the_address_of_a_pod(up: Running) -> None:
    for path in ("/health/live", "/health/ready"):
        assert (await answers(up.gateway + path)).json() == {"status": "ok"}
    assert (await answers(up.operator + "/health/live")).json() == {"status": "ok"}


async def test_metrics_are_served_at_the_ports_for_monitors(up: Running) -> None:
    for address in up.metrics.values():
        assert "target_info" in (await answers(f"{address}/metrics")).text


@pytest.mark.parametrize("keyed", [True, False], ids=["with a key", "without"])
async def test_helm_test_passes(up: Running, installation: Installation, first_key: str, keyed: bool) -> None:
    await answers(f"{up.gateway}/health/ready")
    values = VALUES if keyed else merged(VALUES, {"test": {"secret": ""}})
    pod = one(manifests(values), "Pod", "test")
    tmp = installation.tmp("test")
    secrets = installation.secrets | {("first", "api-key"): first_key}
    variables = environment(pod, secrets, tmp, GATEWAY_URL=up.gateway)
    scripts = {"/test/try_gateway.py": FILES / "try_gateway.py"}
    done = await asyncio.to_thread(run, pod, variables, tmp, scripts)
    assert done.returncode == 0, done.stderr
    assert ("served by recollect" in done.stdout.lower()) is keyed, done.stdout


async def test_helm_test_fails_with_an_invalid_key(up: Running, installation: Installation) -> None:
    await answers(f"{up.gateway}/health/ready")
    pod, tmp = one(installation.rendered, "Pod", "test"), installation.tmp("test")
    variables = environment(pod, {("first", "api-key"): "rcl_none"}, tmp, GATEWAY_URL=up.gateway)
    done = await asyncio.to_thread(run, pod, variables, tmp, {"/test/try_gateway.py": FILES / "try_gateway.py"})
    assert done.returncode == 1
    assert "401" in done.stderr


async def test_the_database_answers_the_queries_of_keda(installation: Installation) -> None:
    keda = {"keda": {"trigger": "postgresql", "connection": {"secret": "keda"}}}
    scaled = one(manifests(merged(ALL, {"worker": {"autoscaling": keda}})), "ScaledObject", "worker")
    connection = await asyncpg.connect(installation.secrets["db-app", "url"])
    for trigger in scaled["spec"]["triggers"]:
        assert await connection.fetchval(trigger["metadata"]["query"]) == 0, trigger["name"]
    await connection.close()


async def test_the_worker_starts_without_warnings_in_its_json_log(up: Running) -> None:
    await answers(f"{up.metrics['worker']}/metrics")

    async def listens() -> bool:
        return any(line["event"] == "listening for wake-ups" for line in lines(up.worker_log))

    await eventually(listens)
    assert [line for line in lines(up.worker_log) if line["level"] in {"warning", "error"}] == []
