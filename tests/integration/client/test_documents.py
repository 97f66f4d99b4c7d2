"""The Python on the client's pages runs as it stands there, and prints what the pages say."""

import asyncio
import io
from contextlib import redirect_stdout

import pytest

from recollect.caller import Caller
from tests.support.documented import ROOT, fences_of
from tests.support.gateway import NewApiKey, RunningGateway

PAGES = ("shared/recollect_client/README.md", "docs/python.md")


def runs_of(page: str) -> list[tuple[str, str]]:
    """Each block of Python on a page, and the block of text right after it, which is its output."""
    fences = fences_of((ROOT / page).read_text())
    following = [*fences[1:], None]
    return [
        (fence.content, after.content if after and after.info == "text" else "")
        for fence, after in zip(fences, following, strict=True)
        if fence.info == "python"
    ]


async def test_what_the_pages_show_is_what_comes(
    gateway: RunningGateway,
    issue: NewApiKey,
    caller: Caller,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    key = await issue(caller, kind="admin")
    monkeypatch.setenv("RECOLLECT_URL", gateway.url)
    monkeypatch.setenv("RECOLLECT_API_KEY", key.secret)
    for page in PAGES:
        runs = runs_of(page)
        assert runs
        for number, (script, output) in enumerate(runs):
            with subtests.test(f"{page} {number}"):
                assert await asyncio.to_thread(printed_by, script) == output


def printed_by(script: str) -> str:
    """What a script prints, which has no running loop, as in a process of its own."""
    with redirect_stdout(io.StringIO()) as output:
        exec(compile(script, "<page>", "exec"), {"__name__": "__main__"})
    return output.getvalue()
