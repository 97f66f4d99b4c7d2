"""Exports, read by the programs for which they are made: Graphviz, Mermaid, and the official memory server."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from tests.support.gateway import LEGACY
from tests.support.memories import Agent
from tests.unit.transfer.test_transfer_formats import NASTY
from tests.verify.node import node
from tests.verify.processes import DeployedGateway
from tests.verify.side_by_side import side_by_side

READER = Path(__file__).with_name("read_exports.mjs")
NAMES = list(dict.fromkeys(text for text in NASTY if text.strip() and text.isprintable()))
WORDS = ["end", "graph", "subgraph", "style", "class", "click", "default", "direction", "href", "call", "o", "x", "v"]
WORDS += [
    "style a:#b;",
    "linkStyle 0 stroke:#f00;",
    "n0 --> n1",
    "%% comment",
    "---",
    "knows",
    "works_at",
    "a|b",
    "ﬂ°°60¶ß",
]
SECONDS = 60


def normalized(text: str) -> str:
    return " ".join(text.split())


async def exported(agent: Agent, deployed: DeployedGateway, key: str, format_name: str) -> str:
    async with deployed.gateway.http(key) as http:
        answer = await http.get(f"/v1/graphs/{agent.graph or 'default'}/export", params={"format": format_name})
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    """An agent with a graph of names and types of relations that have a meaning in some format."""
    agent = Agent(db, caller)
    texts = [*NAMES, *(word for word in WORDS if word not in NAMES)]
    await agent.create(*[NewEntity(text, "thing", (text, f"{text} again")) for text in texts])
    await agent.relate(*[(text, texts[0], text) for text in texts])
    return agent


def read(dot: str, mermaid: str) -> dict[str, Any]:
    """Parse both drawings with Graphviz and Mermaid."""
    given = json.dumps({"dot": dot, "mermaid": mermaid})
    command = [node(), str(READER)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_graphviz_and_mermaid_read_every_text(agent: Agent, deployed: DeployedGateway, key: str) -> None:
    found = read(await exported(agent, deployed, key, "dot"), await exported(agent, deployed, key, "mermaid"))
    texts = [*NAMES, *(word for word in WORDS if word not in NAMES)]
    assert [normalized(text) for text in found["mermaid"]["nodes"]] == [normalized(text) for text in texts]
    edges = found["mermaid"]["edges"]
    assert [(end, normalized(said)) for _, end, said in edges] == [(edges[0][0], normalized(text)) for text in texts]
    assert len({start for start, _, _ in edges}) == len(texts)
    assert [unescaped(text) for text in found["dot"]["nodes"]] == texts
    assert [unescaped(said) for _, _, said in found["dot"]["edges"]] == texts


def unescaped(label: str) -> str:
    """The drawn text of a label of Graphviz."""
    drawn = re.sub(r"\\(.)", lambda escape: {"n": "\n"}.get(escape[1], escape[1]), label)
    return drawn.replace("&amp;", "&")


async def test_the_official_memory_server_reads_jsonl(
    agent: Agent, deployed: DeployedGateway, key: str, tmp_path: Path
) -> None:
    (tmp_path / "memory.jsonl").write_text(await exported(agent, deployed, key, "jsonl"))
    async with side_by_side(deployed.gateway, key, tmp_path, LEGACY) as pair:
        official, recollect = await pair.ask(("read_graph", {}))
        assert len(official.structured["entities"]) == len({*NAMES, *WORDS})
        assert official == recollect
