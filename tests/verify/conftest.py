"""A gateway process for the official clients and suites that need Node.js, and for people at a browser."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.dns_server import NameServer, name_server
from tests.support.people import joined
from tests.support.web_server import CertificateAuthority, plain, trusted_authority, web_server
from tests.support.workers import WorkerProcess, working
from tests.verify.browser import Chromium, Keyboarder, chromium
from tests.verify.processes import DeployedGateway, gateway_process

LANDED = b'<!doctype html><html lang="en"><title>Back</title><link rel="icon" href="data:,">Back at the client'


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-conformance", action="store_true", help="write docs/conformance.md anew where it differs")


@pytest.fixture(scope="session")
def deployed(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedGateway]:
    """The gateway as `python -m recollect_gateway`, on the run's PostgreSQL and Valkey."""
    log: Path = tmp_path_factory.mktemp("gateway") / "gateway.log"
    with gateway_process(settings, log) as deployed:
        yield deployed


@pytest.fixture(scope="session")
def with_examples(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedGateway]:
    """A gateway that also has the tools which the conformance suite needs on a server, and a worker."""
    folder = tmp_path_factory.mktemp("examples")
    several = settings.model_copy(update={"jobs_per_tenant": 20, "max_jobs": 20})
    with (
        gateway_process(several, folder / "gateway.log", "tests.support.example_gateway") as with_examples,
        working(several, folder, "tests.support.example_tasks"),
    ):
        yield with_examples


@pytest.fixture(scope="module")
def worker(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """Does the jobs that pages of the console start."""
    with working(settings, tmp_path_factory.mktemp("worker")) as worker:
        yield worker


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CertificateAuthority]:
    """A certificate authority that the reaching gateway trusts."""
    with pytest.MonkeyPatch.context() as patch:
        yield trusted_authority(tmp_path_factory.mktemp("authority"), patch)


@pytest.fixture(scope="session")
async def dns() -> AsyncIterator[NameServer]:
    """The name server of the reaching gateway."""
    async with name_server() as server:
        yield server


@pytest.fixture(scope="session")
def reaching(
    settings: Settings, authority: CertificateAuthority, dns: NameServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeployedGateway]:
    """A gateway that may send requests to addresses on this machine, such as those of documents of clients."""
    log: Path = tmp_path_factory.mktemp("reaching") / "gateway.log"
    changed = {"outbound_networks": ["127.0.0.0/8", "::1/128"], "dns_servers": [dns.address]}
    with gateway_process(settings.model_copy(update=changed), log) as reaching:
        yield reaching


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def person(databases: Databases, caller: Caller, pepper: bytes) -> Person:
    """A member of the test's tenant."""
    return await joined(databases, caller, Role.MEMBER, pepper=pepper)


@pytest.fixture
async def page() -> AsyncIterator[Chromium]:
    """A new browser."""
    async with chromium() as page:
        yield page


@pytest.fixture
async def keyboarder(page: Chromium, person: Person) -> AsyncIterator[Keyboarder]:
    """That person at the browser; clients send it back to an address at which a server listens."""
    async with web_server(plain(LANDED, "Content-Type: text/html")) as client:
        yield Keyboarder(page, person.email, f"http://127.0.0.1:{client.port}/callback")
