"""Which tests prove which promises: read from the marks of the tests, without importing them.

`@pytest.mark.proves("agent: recall", "security: cookies")` says what a test proves: a tool of a toolset, a line of
`tests/contract/coverage.toml`, or a line of `docs/security.md`. The pages that name these tests are made of the marks.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "pytest.mark.proves"
_SETS_ASIDE = ("mark.skip", "mark.xfail")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Proof:
    """A test, the promises that it proves, and what it says, its other decorators included."""

    path: str
    name: str
    promises: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Marks:
    """The tests of one or more files that prove something, and the places (`path:line`) of marks that prove nothing.

    A mark proves something on a test that runs in `make test` or `make test-slow` and is not set aside (skip, xfail).
    """

    proofs: tuple[Proof, ...]
    void: tuple[str, ...]


@cache
def all_marks() -> Marks:
    """The marks of all tests, in the order of their files and lines."""
    paths = (path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("*.py")))
    files = (path for path in paths if not any(part == "node_modules" or part.startswith(".") for part in path.parts))
    texts = ((path.as_posix(), (ROOT / path).read_text()) for path in files)
    marks = [marks_in(path, text) for path, text in texts if ".proves" in text]
    return Marks(tuple(p for each in marks for p in each.proofs), tuple(v for each in marks for v in each.void))


def marks_in(path: str, text: str) -> Marks:
    """The marks of one file. They are taken off the tests that they stand on, and those that are left prove nothing."""
    module = ast.parse(text)
    taken = [(name, test, _take_promises(test)) for name, test in _running_tests(path, module)]
    left = (node for node in ast.walk(module) if isinstance(node, ast.Attribute) and node.attr == "proves")
    return Marks(
        tuple(Proof(path, name, promises, ast.unparse(test)) for name, test, promises in taken if promises),
        tuple(f"{path}:{node.lineno}" for node in left),
    )


def proofs_of(promise: str) -> list[Proof]:
    """The tests that prove a promise."""
    return _by_promise().get(promise, [])


def links_to(proofs: list[Proof]) -> str:
    """A cell of a table in `docs`, with a link to the file of each test."""
    return "<br>".join(f"[{proof.name}](../{proof.path})" for proof in proofs)


@cache
def _by_promise() -> dict[str, list[Proof]]:
    found: dict[str, list[Proof]] = {}
    for proof in all_marks().proofs:
        for promise in proof.promises:
            found.setdefault(promise, []).append(proof)
    return found


def _take_promises(test: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    promises: dict[str, None] = {}
    for decorator in list(test.decorator_list):
        if named := _promises_of(decorator):
            promises |= dict.fromkeys(named)
            test.decorator_list.remove(decorator)
    return tuple(promises)


def _promises_of(decorator: ast.expr) -> list[str]:
    """None if it is no mark, or one that does not say its promises in so many words."""
    match decorator:
        case ast.Call(func=func, args=args, keywords=[]) if ast.unparse(func) == MARK:
            named = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            return named if len(named) == len(args) else []
    return []


def _running_tests(path: str, module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """As `name` or `Class::name`. Those of `make verify` do not run wherever `make test` does: they need Node.js."""
    collected = Path(path).name.startswith("test_") and not path.startswith("tests/verify/")
    aliases = {name: ast.unparse(value) for name, value in _assignments(module)}
    if collected and not _is_set_aside(aliases.get("pytestmark", "")):
        set_aside = frozenset(name for name, value in aliases.items() if _is_set_aside(value))
        yield from _tests(module.body, set_aside)


def _tests(
    body: list[ast.stmt], set_aside: frozenset[str], owner: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test_") and not _skips(statement, set_aside):
                    yield f"{owner}{name}", statement
            case ast.ClassDef(name=name) if name.startswith("Test") and not _skips(statement, set_aside):
                yield from _tests(statement.body, set_aside, f"{owner}{name}::")


def _skips(definition: Definition, set_aside: frozenset[str]) -> bool:
    decorators = [ast.unparse(decorator) for decorator in definition.decorator_list]
    return any(_is_set_aside(decorator) or decorator in set_aside for decorator in decorators)


def _is_set_aside(mark: str) -> bool:
    return any(each in mark for each in _SETS_ASIDE)


def _assignments(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
