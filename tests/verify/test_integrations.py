"""The adapters of the Python client, in the frameworks themselves with models that repeat what they know.

Each framework is installed with its dependencies in an environment of its own (`make verify`), where a program runs the
page of docs/integrations and more, against the gateway.
"""

import asyncio
import os
from pathlib import Path

import pytest

from recollect.caller import Caller
from tests.support.documented import ROOT
from tests.support.gateway import NewApiKey
from tests.verify.processes import DeployedGateway

HERE = Path(__file__).parent / "integrations"
RUN_SECONDS = 120
QUIET = ("OTEL_SDK_DISABLED", "CREWAI_DISABLE_TELEMETRY", "OPENAI_AGENTS_DISABLE_TRACING")
"""Settings with which frameworks send nobody what they do."""

PROGRAMS = {
    "langgraph": ("langgraph_store", "agents"),
    "openai-agents": ("openai_agents_session", "agents"),
    "google-adk": ("google_adk_memory", "agents"),
    "llama-index": ("llama_index_block", "agents"),
    "pydantic-ai": ("pydantic_ai_toolset", "agents"),
    "crewai": ("crewai_memory", "crewai"),
}
"""The program for each page, and the environment in which it runs."""


def test_every_page_has_a_program() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "integrations").glob("*.md")}
    assert pages - {"index", "ai-sdk"} == PROGRAMS.keys()  # The AI SDK is TypeScript: test_typescript_client.py.


@pytest.mark.parametrize("page", PROGRAMS)
async def test_a_framework_remembers_by_its_own_interface(
    deployed: DeployedGateway, issue: NewApiKey, caller: Caller, tmp_path: Path, page: str
) -> None:
    program, environment = PROGRAMS[page]
    python = HERE / ".venvs" / environment / "bin" / "python"
    if not python.exists():
        pytest.fail(f"The packages of {page} are missing. Run `make verify`, which installs them.")
    key = (await issue(caller)).secret
    variables = {
        **{name: value for name, value in os.environ.items() if name in ("LANG", "LC_ALL", "PATH", "TMPDIR")},
        "HOME": str(tmp_path),
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONPATH": str(ROOT / "shared"),
        "RECOLLECT_URL": deployed.gateway.url,
        "RECOLLECT_API_KEY": key,
        **dict.fromkeys(QUIET, "true"),
    }
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(HERE / "programs" / f"{program}.py"),
        str(ROOT / "docs" / "integrations" / f"{page}.md"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=variables,
        cwd=tmp_path,
    )
    try:
        async with asyncio.timeout(RUN_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode()[-8_000:]
    assert deployed.faults() == []
