"""The table of what each reference system promises, with the tests that prove it.

`coverage.toml` is the table, `docs/coverage.md` the page that is made of it:
.venv/bin/python -m tests.contract.coverage > docs/coverage.md
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("coverage.toml")


@dataclass(frozen=True, slots=True)
class Promise:
    """A tool or a feature, and the tests (`path::name`) that prove it."""

    section: str
    name: str
    tests: tuple[str, ...]


def tools() -> list[Promise]:
    """Every tool, by toolset; a tool of several toolsets is listed in each."""
    return _promises("tools")


def features() -> list[Promise]:
    """Every behaviour that a reference, or our own catalogue of tools, promises."""
    return _promises("features")


@dataclass(frozen=True, slots=True)
class Missing:
    """A promise of a reference that is not kept: the reason, or what there is instead."""

    section: str
    name: str
    instead: str


def missing() -> list[Missing]:
    """Every promise that is not kept."""
    return [
        Missing(section, name, instead)
        for section, promises in tomllib.loads(TABLE.read_text())["missing"].items()
        for name, instead in promises.items()
    ]


@cache
def tests_in(path: str) -> dict[str, str]:
    """The tests of a file that run wherever `make test` runs, as `name` or `Class::name`, with the source of each.

    None if there is no file.
    """
    file = ROOT / path
    return dict(_tests(ast.parse(file.read_text()).body)) if file.is_file() else {}


def source_of(test: str) -> str | None:
    """What a test (`path::name`) says, its decorators included; None where it does not run wherever `make test` does.

    Those of `make verify` do not: they run where Node.js is.
    """
    path, _, name = test.partition("::")
    return None if path.startswith("tests/verify/") else tests_in(path).get(name)


def coverage_page() -> str:
    """`docs/coverage.md`."""
    return "\n".join(
        [
            "# Coverage",
            "",
            "What each reference system promises, with the test that proves it here. This page is made from "
            "`tests/contract/coverage.toml` by `python -m tests.contract.coverage`; do not edit it. `make test` fails "
            "if a promise has no test, a test does not exist, or a tool is not in the table. Promises that are not "
            "kept are listed under their reference as **missing**.",
            "",
            "## Tools",
            "",
            *_rows("tool", tools()),
            *(line for reference in _references() for line in _reference(reference)),
        ]
    )


def _promises(part: str) -> list[Promise]:
    return [
        Promise(section, name, tuple(tests))
        for section, promises in tomllib.loads(TABLE.read_text())[part].items()
        for name, tests in promises.items()
    ]


def _tests(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, str]]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test_") and not _set_aside(statement):
                    yield f"{owner}{name}", ast.unparse(statement)
            case ast.ClassDef(name=name) if name.startswith("Test") and not _set_aside(statement):
                yield from _tests(statement.body, f"{name}::")


def _set_aside(statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    decorators = " ".join(ast.unparse(decorator) for decorator in statement.decorator_list)
    return "mark.skip" in decorators or "mark.xfail" in decorators


def _references() -> list[str]:
    return list(dict.fromkeys([*(p.section for p in features()), *(m.section for m in missing())]))


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
        yield f"| {name} | {_proof(promise)} |"
    yield ""


def _proof(promise: Promise) -> str:
    return "<br>".join(f"[{name}](../{path})" for path, _, name in (test.partition("::") for test in promise.tests))


if __name__ == "__main__":
    print(coverage_page(), end="")
