"""What tests of moves share."""

from dataclasses import replace

import pytest

from recollect.caller import Caller
from recollect.platform.db import Database
from tests.support.memories import Agent


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    """Of a tenant that has remembered something; one that a tenant may stop, and not an operator."""
    agent = Agent(db, replace(caller, of_service=False))
    await agent.create("Ada", "Grace")
    await agent.relate(("Ada", "Grace", "knows"))
    await agent.embed()
    return agent
