"""Clients that published generators make of /v1/openapi.json: every operation compiles, and a first call works."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import DOCUMENT, OPERATIONS
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.verify.node import MODULES, node
from tests.verify.processes import DeployedGateway

FOLDER = Path(__file__).parent / "generated_clients"
PYTHON_BIN = FOLDER / ".venv" / "bin"

UPLOADS = {"application/x-ndjson", "text/csv", "application/graphml+xml"}
"""Media types of imports that the Python generator does not know: it makes these operations for JSON alone."""

CALL = """
{{ const answer = await client.{method}({path}, {options}); void answer.data; void answer.error; }}"""
CALLS = """import createClient from "openapi-fetch";
import type {{ paths }} from "./recollect";

const client = createClient<paths>({{ baseUrl: "http://127.0.0.1" }});
export async function callAll(): Promise<void> {{{calls}
}}
"""


def run(command: list[Any], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a program said; it must succeed."""
    ran = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, "PATH": f"{PYTHON_BIN}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def script(package: str, path: str) -> Path:
    """A script of an npm package; fails if the package is not installed."""
    found = MODULES / package / path
    if not found.exists():
        pytest.fail(f"The npm package {package} is missing. Run `make verify`, which installs it (npm is needed).")
    return found


def call_of(path: str, method: str) -> str:
    """A call of an operation in TypeScript, with the example of its body and nothing that may be left out."""
    told = DOCUMENT["paths"][path][method]
    given: dict[str, dict[str, Any]] = {}
    for parameter in told.get("parameters", ()):
        if parameter.get("required"):
            given.setdefault(parameter["in"], {})[parameter["name"]] = example_of(parameter["schema"])
    options: dict[str, Any] = {"params": given} if given else {}
    content = told.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "example" in content:
        options["body"] = content["example"]
    elif content:
        options["body"] = {}
    return CALL.format(method=method.upper(), path=json.dumps(path), options=json.dumps(options))


def example_of(schema: dict[str, Any]) -> Any:
    """A value of a parameter's type."""
    if "enum" in schema:
        return schema["enum"][0]
    return 1 if schema.get("type") in ("integer", "number") else "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the types that openapi-typescript makes, by its defaults, and with the packages."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "openapi.json").write_text(json.dumps(versioned()))
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to(MODULES)
    generator = script("openapi-typescript", "bin/cli.js")
    run([node(), generator, "openapi.json", "--output", "recollect.d.ts"], folder)
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the package that openapi-python-client makes, by its defaults; and what it complained of."""
    if not PYTHON_BIN.exists():
        pytest.fail("The generator of Python clients is missing. Run `make verify`, which installs it.")
    folder = tmp_path_factory.mktemp("python")
    (folder / "openapi.json").write_text(json.dumps(versioned()))
    command = [PYTHON_BIN / "openapi-python-client", "generate", "--path", "openapi.json"]
    ran = run([*command, "--meta", "none", "--output-path", "recollect_api"], folder)
    return folder, ran.stdout + ran.stderr


def versioned() -> dict[str, Any]:
    """The document as it is served: the snapshot has no version."""
    return DOCUMENT | {"info": DOCUMENT["info"] | {"version": "0"}}


def compiler(folder: Path, *options: str) -> list[Any]:
    """The command that checks TypeScript strictly."""
    flags = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "--target", "es2022", "--module", "es2022"]
    flags += ["--moduleResolution", "bundler"]
    return [node(), script("typescript", "bin/tsc"), *flags, *options]


class TestTypeScript:
    def test_every_operation_compiles_with_its_example(self, typescript: Path) -> None:
        """What a body may leave out, its example does: a field that is demanded all the same is a fault of types."""
        calls = [call_of(path, method) for method, path in OPERATIONS]
        assert len(calls) > 80
        (typescript / "calls.ts").write_text(CALLS.format(calls="".join(calls)))
        run(compiler(typescript, "--noEmit", "calls.ts"), typescript)

    def test_a_call_without_a_needed_field_does_not_compile(self, typescript: Path) -> None:
        """Otherwise the test above could not fail."""
        call = CALL.format(method="POST", path=json.dumps("/v1/keys"), options='{"body": {}}')
        (typescript / "wrong.ts").write_text(CALLS.format(calls=call))
        with pytest.raises(AssertionError, match="Property 'name' is missing"):
            run(compiler(typescript, "--noEmit", "wrong.ts"), typescript)

    def test_a_first_recall(self, typescript: Path, deployed: DeployedGateway, key: str) -> None:
        source = (FOLDER / "first_recall.ts").read_text()
        (typescript / "first_recall.ts").write_text(source)
        run(compiler(typescript, "first_recall.ts"), typescript)
        asked = {"RECOLLECT_URL": deployed.gateway.url, "RECOLLECT_API_KEY": key}
        assert run([node(), "first_recall.js"], typescript, **asked).stdout == "Ada drinks tea\nnode_not_found\n"


class TestPython:
    def test_every_operation_is_there_and_can_be_imported(self, python: tuple[Path, str]) -> None:
        folder, _ = python
        modules = [path.relative_to(folder).with_suffix("") for path in folder.glob("recollect_api/api/*/*.py")]
        names = {path.name for path in modules} - {"__init__"}
        wanted = {snake(told["operationId"]) for path in DOCUMENT["paths"].values() for told in path.values()}
        assert names == wanted
        imports = "; ".join(f"import {'.'.join(path.parts)}" for path in modules)
        run([PYTHON_BIN / "python", "-W", "error", "-c", imports], folder)

    def test_nothing_is_left_out_but_media_types_of_imports(self, python: tuple[Path, str]) -> None:
        _, said = python
        warnings = re.findall(r"WARNING parsing (\S+ \S+) within \w[\w ]*\.\s+(.*)", said)
        assert said.count("WARNING") == len(warnings)
        assert {reason.removeprefix("Unsupported content type ") for _, reason in warnings} == UPLOADS
        assert {name for name, _ in warnings} == {"POST /v1/graphs/{name}/import", "POST /v1/graphs/{name}/imports"}

    def test_a_first_recall(self, python: tuple[Path, str], deployed: DeployedGateway, key: str) -> None:
        folder, _ = python
        command = [PYTHON_BIN / "python", FOLDER / "first_recall.py"]
        asked = {"RECOLLECT_URL": deployed.gateway.url, "RECOLLECT_API_KEY": key, "PYTHONPATH": str(folder)}
        assert run(command, folder, **asked).stdout == "Ada drinks tea\nnode_not_found\n"


def snake(name: str) -> str:
    """The name of an operation as the Python generator writes it."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
