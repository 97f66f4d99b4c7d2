"""The table of what each reference system promises, with the tests that prove it.

`coverage.toml` has the promises, marks on the tests say what they prove (`tests/support/promises.py`), and
`docs/coverage.md` is made of both by `make pages`.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect_cli.reference.glossary import TOOLSETS
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.support.promises import links_to, proofs_of

TABLE = Path(__file__).with_name("coverage.toml")


@dataclass(frozen=True, slots=True)
class Promise:
    """A tool or a feature. Marks name it by its id."""

    id: str
    section: str
    name: str


def tools() -> list[Promise]:
    """Every tool, by toolset; a tool of several toolsets is listed in each."""
    return [
        Promise(f"{toolset}: {tool.name}", toolset, tool.name)
        for toolset in TOOLSETS
        for tool in CATALOGUE
        if toolset in tool.toolsets
    ]


def features() -> list[Promise]:
    """Every behaviour that a reference, or our own catalogue of tools, promises."""
    return [
        Promise(f"{key}: {promise}", reference["name"], name)
        for key, reference in _table().items()
        for promise, name in reference["kept"].items()
    ]


@dataclass(frozen=True, slots=True)
class Missing:
    """A promise of a reference that is not kept: the reason, or what there is instead."""

    section: str
    name: str
    instead: str


def missing() -> list[Missing]:
    """Every promise that is not kept."""
    return [
        Missing(reference["name"], name, instead)
        for reference in _table().values()
        for name, instead in reference.get("missing", {}).items()
    ]


def coverage_page() -> str:
    """`docs/coverage.md`."""
    return "\n".join(
        [
            "# Coverage",
            "",
            "What each reference system promises, with the test that proves it here. This page is made by `make "
            "pages` from `tests/contract/coverage.toml`, the catalogue of tools, and the marks on the tests "
            '(`@pytest.mark.proves("agent: recall")`); do not edit it. `make test` fails if no test that runs proves '
            "a promise or a tool. Promises that are not kept are listed under their reference as **missing**.",
            "",
            "## Tools",
            "",
            *_rows("tool", tools()),
            *(line for reference in _table().values() for line in _reference(reference["name"])),
        ]
    )


def _table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text())


def _reference(reference: str) -> Iterator[str]:
    yield from (f"## {reference}", "")
    kept = [promise for promise in features() if promise.section == reference]
    lacking = [each for each in missing() if each.section == reference]
    if kept:
        yield from _rows("feature", kept)
    if lacking:
        yield from ("| **missing** | why, or what there is instead |", "|---|---|")
        yield from (f"| {each.name} | {each.instead} |" for each in lacking)
        yield ""


def _rows(kind: str, promises: list[Promise]) -> Iterator[str]:
    toolset = kind == "tool"
    yield from (
        ("| toolset | tool | proved by |", "|---|---|---|") if toolset else ("| feature | proved by |", "|---|---|")
    )
    for promise in promises:
        name = f"{promise.section} | `{promise.name}`" if toolset else promise.name
        yield f"| {name} | {links_to(proofs_of(promise.id))} |"
    yield ""
