"""The client for TypeScript (`shared/recollect_client_ts`): its tests against a gateway process, and its package."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from recollect.accounts.people.model import Person
from tests.support.documented import ROOT, fences_of
from tests.support.gateway import NewApiKey
from tests.support.oauth import HandClient, Visitor
from tests.support.people import browser
from tests.support.rates import NewLimited
from tests.verify.node import node
from tests.verify.processes import DeployedGateway

PACKAGE = ROOT / "shared" / "recollect_client_ts"
TSC = PACKAGE / "node_modules" / "typescript" / "bin" / "tsc"
PAGES = ("docs/typescript.md", "docs/integrations/ai-sdk.md", "shared/recollect_client_ts/README.md")
RUN_SECONDS = 300
LIMIT = 20
"""Requests that a key of the limited tenant may send in a minute; the test of errors sends more at once."""

NODE_PROJECT = {"name": "somebody", "private": True, "type": "module"}
STRICT = {
    "strict": True,
    "module": "nodenext",
    "target": "es2022",
    "noEmit": True,
    "lib": ["esnext", "dom"],
    "types": [],
}
WITH_NODE = STRICT | {"types": ["node"], "allowImportingTsExtensions": True, "skipLibCheck": True}
"""`skipLibCheck`: the types of the AI SDK import some that it does not bring."""


async def run(*command: object, folder: Path, **variables: str) -> str:
    """The output of a command, which has our Node.js on its PATH and nothing of Recollect; fails with it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    path = {"PATH": f"{Path(node()).parent}:{os.environ['PATH']}", "NO_PROXY": "127.0.0.1"}
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=folder,
        env=kept | path | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(RUN_SECONDS):
            output = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="module")
async def built() -> Path:
    """The folder of the package, after `npm run build`."""
    if not TSC.exists():
        pytest.fail("The packages of the client for TypeScript are missing. Run `make verify`, which installs them.")
    await run("npm", "run", "build", folder=PACKAGE)
    return PACKAGE


@pytest.fixture(scope="module")
async def packed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that would be published."""
    folder = tmp_path_factory.mktemp("packed")
    await run("npm", "pack", "--ignore-scripts", "--pack-destination", folder, folder=built)
    (file,) = folder.iterdir()
    return file


@pytest.fixture
def access(deployed: DeployedGateway, admin_key: str) -> dict[str, str]:
    """The variables by which a client finds the gateway."""
    return {"RECOLLECT_URL": deployed.gateway.url, "RECOLLECT_API_KEY": admin_key}


@pytest.fixture
async def token(deployed: DeployedGateway, person: Person) -> str:
    """An access token of a member of the test's tenant."""
    async with browser(deployed.gateway) as web, deployed.gateway.http() as http:
        client = await HandClient.register(deployed.gateway, http)
        return str((await client.tokens(Visitor(web, person.email)))["access_token"])


def project(folder: Path, settings: Mapping[str, object]) -> Path:
    """An empty project for TypeScript."""
    (folder / "package.json").write_text(json.dumps(NODE_PROJECT))
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": settings}))
    return folder


def program_of(page: str) -> str:
    """All blocks of a page marked `typescript` as one program, from top to bottom."""
    blocks = fences_of((ROOT / page).read_text())
    return "".join(block.content for block in blocks if block.info == "typescript")


def printed_by(program: str) -> list[str]:
    """The lines that a program says it prints: `// → …`, after what prints them."""
    return re.findall(r"// → (.*)", program)


async def test_it_works_with_a_gateway(
    built: Path,
    deployed: DeployedGateway,
    access: Mapping[str, str],
    token: str,
    issue: NewApiKey,
    new_limited: NewLimited,
) -> None:
    limited = await issue(await new_limited(key_requests_per_minute=LIMIT))
    await run("npm", "run", "check", folder=built)
    others = {"LIMITED_API_KEY": limited.secret, "ACCESS_TOKEN": token}
    await run("npm", "test", folder=built, **access, **others)
    assert deployed.faults() == []


EXAMPLE = """
import { Recollect, type RecallArguments, type RecalledMemory } from "recollect-client";

const memory = new Recollect();
await memory.remember("Ada prefers tea to coffee.");
const { memories } = await memory.recall({ query: "What does Ada prefer?" });
const best: RecalledMemory | undefined = memories[0];
console.log(best?.text);
// @ts-expect-error: the tool has no such argument
const wrong: RecallArguments = { question: "What does Ada prefer?" };
"""


async def test_the_package_is_installed_in_an_empty_project(
    packed: Path, access: Mapping[str, str], tmp_path: Path
) -> None:
    folder = project(tmp_path, STRICT)
    await run("npm", "install", "--prefer-offline", "--no-audit", "--no-fund", packed, folder=folder)
    assert sorted(path.name for path in (folder / "node_modules").iterdir() if path.name[0] != ".") == [
        "openapi-fetch",
        "openapi-typescript-helpers",
        "recollect-client",
    ]
    (folder / "example.ts").write_text(EXAMPLE)
    await run(node(), TSC, "-p", ".", folder=folder)
    output = await run(node(), "example.ts", folder=folder, **access)
    assert output.strip() == "Ada prefers tea to coffee."


async def test_only_what_is_needed_is_published(packed: Path) -> None:
    listed = (await run("tar", "-tf", packed, folder=packed.parent)).splitlines()
    others = [name for name in listed if not re.fullmatch(r"package/dist/(generated/)?[\w-]+(\.d)?\.[jt]s", name)]
    assert sorted(others) == ["package/LICENSE", "package/README.md", "package/package.json"]


@pytest.mark.parametrize("page", PAGES)
async def test_the_programs_of_the_documentation_work(
    built: Path, access: Mapping[str, str], page: str, tmp_path: Path
) -> None:
    """Where a page imports `./model.ts`, it gets the AI SDK's own model for tests."""
    folder = project(tmp_path, WITH_NODE)
    (folder / "node_modules").mkdir()
    for installed in (*(built / "node_modules").iterdir(), built):
        name = "recollect-client" if installed == built else installed.name
        (folder / "node_modules" / name).symlink_to(installed)
    shutil.copy(Path(__file__).parent / "typescript" / "model.ts", folder)
    program = program_of(page)
    (folder / "page.ts").write_text(program)
    await run(node(), TSC, "-p", ".", folder=folder)
    output = await run(node(), "page.ts", folder=folder, **access)
    assert printed_by(program), "a page shows what comes out"
    assert output.splitlines() == printed_by(program)
