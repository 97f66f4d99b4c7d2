"""Two sessions of each program with its plugin, against a gateway, with a model that answers what the test says.

None of it needs an account: the model is `agents/model.py`, by the setting that each program has for another address.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plugins.recollect.hooks import recollect_hooks as hooks
from tests.support.gateway import RunningGateway, eventually
from tests.verify.agents.model import Model, model
from tests.verify.node import node

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "shared" / "plugins"
MODULES = Path(__file__).parent / "agents" / "node_modules"
RUN_SECONDS = 240
PROMPT = "Which database do the invoices get?"
ANSWER = "Mira decided that the invoices get CockroachDB."
QUESTION = "What did Mira decide about the invoices?"


@dataclass
class Agent:
    """A program in a home and a project of its own."""

    name: str
    home: Path
    project: Path
    variables: dict[str, str]

    def run(self, *command: str, given: str = "") -> str:
        """Run it, and return what it printed; fails if it does not end well."""
        done = subprocess.run(
            [*program(self.name), *command],
            input=given,
            capture_output=True,
            text=True,
            env=self.variables,
            cwd=self.project,
            timeout=RUN_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


def program(name: str) -> list[str]:
    """The command of a program; fails if npm has not installed it."""
    paths = {
        "claude": "@anthropic-ai/claude-code-linux-*/claude",
        "codex": "@openai/codex/bin/codex.js",
        "gemini": "@google/gemini-cli/bundle/gemini.js",
        "opencode": "opencode-linux-x64-baseline/bin/opencode",
        "install.py": "",
    }
    if name == "install.py":
        return [sys.executable, str(PLUGINS / name)]
    found = sorted(MODULES.glob(paths[name]))
    if not found:
        pytest.fail(f"{name} is missing. Run `make verify`, which installs it.")
    return [node(), str(found[0])] if found[0].suffix == ".js" else [str(found[0])]


def install_claude(agent: Agent, _: Model) -> None:
    assert "Validation passed" in agent.run("plugin", "validate", "--strict", str(PLUGINS / "recollect"))
    assert "Validation passed" in agent.run("plugin", "validate", str(ROOT))
    agent.run("plugin", "marketplace", "add", str(ROOT))
    agent.run("plugin", "install", "recollect")
    assert "enabled" in agent.run("plugin", "list")
    assert "Connected" in agent.run("mcp", "list")


def ask_claude(agent: Agent, prompt: str) -> str:
    return agent.run("-p", prompt)


def install_codex(agent: Agent, served: Model) -> None:
    agent.run("plugin", "marketplace", "add", str(ROOT))
    agent.run("plugin", "add", "recollect@recollect")
    assert "RECOLLECT_API_KEY" in agent.run("mcp", "list")
    address = f"{agent.variables['RECOLLECT_URL']}/mcp"
    agent.run("mcp", "add", "recollect", "--url", address, "--bearer-token-env-var", "RECOLLECT_API_KEY")
    assert address in agent.run("mcp", "list")


def ask_codex(agent: Agent, prompt: str) -> str:
    address = agent.variables["MODEL_URL"]
    provider = f'{{name="test",base_url="{address}/v1",wire_api="responses",env_key="MODEL_KEY"}}'
    settings = ("model_provider=test", f"model_providers.test={provider}")
    chosen = [word for setting in settings for word in ("-c", setting)]
    return agent.run("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", *chosen, "-m", "test", prompt)


def install_gemini(agent: Agent, _: Model) -> None:
    settings = agent.home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    assert "successfully validated" in agent.run("extensions", "validate", str(PLUGINS))
    agent.run("extensions", "install", str(PLUGINS), "--consent", given="y\n")
    assert "recollect" in agent.run("extensions", "list")


def ask_gemini(agent: Agent, prompt: str) -> str:
    return agent.run("--skip-trust", "-m", "gemini-2.5-pro", "-p", prompt)


def install_opencode(agent: Agent, served: Model) -> None:
    installer = Agent("install.py", agent.home, agent.project, agent.variables)
    installer.run("opencode")
    options = {"baseURL": f"{served.url}/v1", "apiKey": "none"}
    test = {"npm": "@ai-sdk/openai-compatible", "name": "test", "options": options, "models": {"m": {"name": "m"}}}
    settings = {"provider": {"test": test}, "model": "test/m", "small_model": "test/m"}
    (agent.project / "opencode.json").write_text(json.dumps(settings))


def ask_opencode(agent: Agent, prompt: str) -> str:
    return agent.run("run", prompt)


AGENTS: dict[str, tuple[Callable[[Agent, Model], None], Callable[[Agent, str], str]]] = {
    "claude": (install_claude, ask_claude),
    "codex": (install_codex, ask_codex),
    "gemini": (install_gemini, ask_gemini),
    "opencode": (install_opencode, ask_opencode),
}


@pytest.fixture
def served() -> Iterator[Model]:
    with model(ANSWER) as served:
        yield served


@pytest.fixture
def new_agent(gateway: RunningGateway, key: str, served: Model, tmp_path: Path) -> Callable[[str], Agent]:
    """Makes an agent whose home is empty, and whose project is a repository."""

    def make(name: str) -> Agent:
        home, project = tmp_path / "home", tmp_path / "invoices"
        home.mkdir()
        project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        python = shutil.which("python3") or sys.executable
        path = os.pathsep.join([str(Path(node()).parent), str(Path(python).parent), "/usr/bin", "/bin"])
        variables = {
            "PATH": path,
            "HOME": str(home),
            "NO_PROXY": "127.0.0.1,localhost",
            "RECOLLECT_URL": gateway.url,
            "RECOLLECT_API_KEY": key,
            "RECOLLECT_HOOKS_SECONDS": "9",
            "MODEL_URL": served.url,
            "MODEL_KEY": "none",
            "ANTHROPIC_BASE_URL": served.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": served.url,
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }
        return Agent(name, home, project, variables)

    return make


@pytest.mark.parametrize("name", sorted(AGENTS))
async def test_the_second_session_knows_what_the_first_learned(
    new_agent: Callable[[str], Agent], served: Model, gateway: RunningGateway, key: str, name: str
) -> None:
    agent = new_agent(name)
    install, ask = AGENTS[name]
    install(agent, served)
    assert ANSWER in ask(agent, PROMPT)
    assert not any(hooks.FRAME in asked for asked in served.asked), "nothing is known yet"
    await until_kept(gateway, key, hooks.graph_of(str(agent.project)))
    served.asked.clear()
    ask(agent, QUESTION)
    known = [asked for asked in served.asked if QUESTION in asked]
    assert any(hooks.FRAME in asked and f"Assistant: {ANSWER}" in asked for asked in known)
    if name == "claude":
        served.asked.clear()
        ask(agent, "/recollect:recall the invoices")
        [asked] = [asked for asked in served.asked if "Find the following with Recollect" in asked]
        assert "${CLAUDE_PLUGIN_ROOT}" not in asked


async def until_kept(gateway: RunningGateway, key: str, graph: str) -> None:
    """Wait until the prompt and the answer are kept: opencode does not wait for that before it ends."""
    async with gateway.http(key) as http:

        async def are_kept() -> bool:
            body = {"kinds": ["turn"], "order": "newest"}
            found = (await http.post(f"/v1/graphs/{graph}/recall", json=body)).json()["memories"]
            return len(found) == 2 and found[0]["text"] == f"Assistant: {ANSWER}" and PROMPT in found[1]["text"]

        await eventually(are_kept)
