"""A gateway process for the official clients and suites that need Node.js."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.settings import Settings
from tests.verify.processes import DeployedGateway, gateway_process


@pytest.fixture(scope="session")
def deployed(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedGateway]:
    """The gateway as `python -m recollect_gateway`, on the run's PostgreSQL and Valkey."""
    log: Path = tmp_path_factory.mktemp("gateway") / "gateway.log"
    with gateway_process(settings, log) as deployed:
        yield deployed
