"""The site of the documentation in a browser without a network: its search, from loopback and from the file system."""

import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.verify.browser import Chromium

ROOT = Path(__file__).parents[2]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={"NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture(params=["loopback", "files"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """The base address of the site."""
    if request.param == "files":
        yield site.as_uri()
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_a_search_for_recall_leads_to_its_page(page: Chromium, address: str) -> None:
    await page.open(f"{address}/index.html")
    await page.press("/")
    await page.type("recall")
    await page.do("page.waitForSelector", ".md-search-result__item")
    found = await page.do("page.innerText", ".md-search-result")
    assert "matching documents" in found
    assert "Recall" in found
    await page.do("page.click", ".md-search-result__item a")
    assert (await page.address()).split("?")[0].split("#")[0].startswith(f"{address}/")
    assert "recall" in (await page.text()).lower()
    assert await page.faults() == [], "nothing was asked of anybody else"


async def test_no_page_requests_anything_from_another_host(page: Chromium, address: str) -> None:
    """The browser reaches only this machine, so a request to another would be an error in its console."""
    for name in ("index", "quick-start", "tools", "glossary", "adr/0006-embedders", "runbook/slow-calls"):
        await page.open(f"{address}/{name}.html")
        requested = await page.do("page.evaluate", "performance.getEntriesByType('resource').map(({ name }) => name)")
        assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == [], name
    assert await page.faults() == []
