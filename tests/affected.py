"""Run the tests that a change can reach, the nearest first, for about a minute.

A test is as near as the imports from it to what changed are few (grimp has the graph). Imports of the modules that put
everything together (the application, the catalogue, the worker) say nothing and are cut. In their place a test leads to
the handler of each tool and of each route that it names. A test with the name of what changed is near, too.

Without arguments, what differs from the branch `main` counts as changed, and what git does not track yet, too.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import grimp

from recollect_gateway.mcp_endpoint.tools import CATALOGUE

ROOT = Path(__file__).parents[1]
SOURCES = ("shared", "services", "workers", "infra", ".")
PACKAGES = (
    *(
        "recollect",
        "recollect_http",
        "recollect_gateway",
        "recollect_operator",
        "recollect_cli",
        "recollect_workers",
        "recollect_local",
    ),
    "tests",
)
COMPOSING = (
    *("recollect_gateway.app", "recollect_gateway.mcp_endpoint.tools", "recollect_operator.app"),
    *("recollect_workers.main", "recollect_workers.schedule", "recollect_cli.main", "tests.conftest"),
)
"""Modules that import whatever there is: to reach them is to reach no part in particular."""

COMMON_NAMES = {"service", "store", "model", "queries", "__init__", "accounts", "graph", "gateway", "web"}
"""Names of files and folders that say nothing of a capability."""

NEAR = 6
"""After so many imports a test reaches nearly everything."""

ROUTE = re.compile(r'"(/[^"\s]*)"')
PLAIN_SEGMENT = re.compile(r"[a-z][a-z-]{3,}")
SECONDS = 40


def affected(changed: Iterable[str]) -> list[str]:
    """The test files, as paths from the root, that a change of these files can reach, the nearest first."""
    graph = _graph()
    changed = list(changed)
    reached = {path: 0 for path in changed if _is_test(path)}
    frontier = {module for path in changed for module in _modules_of(path)} & graph.modules
    for module in graph.modules:
        if _is_test(path := _path_of(module)) and any(_are_namesakes(path, each) for each in changed):
            reached.setdefault(path, 0)
    seen = set(frontier)
    for distance in range(NEAR + 1):
        for module in frontier:
            if _is_test(path := _path_of(module)):
                reached[path] = min(distance, reached.get(path, distance))
        frontier = {
            importer
            for module in frontier - set(COMPOSING)
            for importer in graph.find_modules_that_directly_import(module)
        } - seen
        seen |= frontier
    return sorted(reached, key=lambda path: (reached[path], path))


@cache
def _graph() -> grimp.ImportGraph:
    """The imports of all packages and tests, with an import from each test to the tools and routes that it names."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    handlers = dict(_handlers_of_tools())
    routes = dict(_handlers_of_routes(graph.modules))
    for module in graph.modules:
        if not module.startswith("tests.") or module.endswith(("conftest", "__init__")):
            continue
        source = ROOT.joinpath(_path_of(module))
        text = source.read_text() if source.is_file() else ""
        named = {handlers[word] for word in re.findall(r'"([a-z_]+)"', text) if word in handlers}
        named |= {
            handler
            for route in ROUTE.findall(text)
            for segment in _segments(route)
            for handler in routes.get(segment, ())
        }
        for handler in named & graph.modules:
            graph.add_import(importer=module, imported=handler)
    return graph


def _handlers_of_tools() -> Iterator[tuple[str, str]]:
    for tool in CATALOGUE:
        yield tool.name, tool.handler.__module__


def _handlers_of_routes(modules: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The last plain segment of each route, with the modules whose routes end so."""
    found: dict[str, set[str]] = {}
    for module in modules:
        if module.startswith(("recollect_gateway.", "recollect_operator.")):
            path = ROOT / _path_of(module)
            for route in ROUTE.findall(path.read_text()) if path.is_file() else ():
                for segment in _segments(route):
                    found.setdefault(segment, set()).add(module)
    yield from ((segment, tuple(its)) for segment, its in found.items() if len(its) <= 6)


def _segments(route: str) -> list[str]:
    """The last segment of a route that is a word: `erase` of `/v1/graphs/{name}/erase`."""
    return PLAIN_SEGMENT.findall(route.rpartition("?")[0] or route)[-1:]


def _modules_of(path: str) -> Iterator[str]:
    """The modules that a file belongs to: itself, or those of its folder where it is no Python (SQL, templates)."""
    file = ROOT / path
    if file.suffix == ".py":
        yield _module_of(path)
        return
    if path.endswith("queries.sql"):
        yield _module_of(str(Path(path).with_name("store.py")))
    for folder in file.parents:
        if (folder / "__init__.py").is_file():
            for neighbour in folder.glob("*.py"):
                yield _module_of(str(neighbour.relative_to(ROOT)))
            return


def _module_of(path: str) -> str:
    for source in SOURCES:
        if source == "." or path.startswith(f"{source}/"):
            inside = path.removeprefix(f"{source}/").removesuffix(".py").removesuffix("/__init__")
            return inside.replace("/", ".")
    return path


def _path_of(module: str) -> str:
    """The path of a module from the root."""
    for source in SOURCES:
        for end in (".py", "/__init__.py"):
            path = Path(source) / (module.replace(".", "/") + end)
            if (ROOT / path).is_file():
                return str(path)
    return module


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_") and not path.startswith("tests/verify/")


def _are_namesakes(test: str, changed: str) -> bool:
    """Whether a test has the name of a changed source or of the folder of its capability, or names another file."""
    path = Path(changed)
    if path.parts[0] == "tests":
        return False
    if path.parts[0] not in SOURCES:
        return path.name in ROOT.joinpath(test).read_text()
    return any(
        re.search(rf"(^|[/_]){re.escape(name)}($|[/_.])", test) for name in {path.stem, path.parent.name} - COMMON_NAMES
    )


def changed_since(base: str) -> list[str]:
    """The files that differ from where this branch left `base`, and those that git does not track yet."""
    left_at = _git("merge-base", base, "HEAD").strip()
    return [*_git("diff", "--name-only", left_at).split(), *_git("ls-files", "--others", "--exclude-standard").split()]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Print what is run, and run it."""
    parser = argparse.ArgumentParser(description="Run the tests that a change can reach, the nearest first")
    parser.add_argument("--base", default="main", help="what the change is compared with (main)")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"start no test after so long ({SECONDS})")
    parser.add_argument("--list", action="store_true", help="only list the files")
    options, others = parser.parse_known_args()
    changed = changed_since(options.base)
    files = affected(changed)
    print(f"{len(changed)} changed files reach {len(files)} files of tests", flush=True)
    if options.list or not files:
        print(*files, sep="\n")
        return 0
    in_processes = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    # Not pytest.main: this process has imported libraries, which pytest would then no longer rewrite, and warns of.
    command = [sys.executable, "-m", "pytest", *in_processes, f"--stop-after={options.seconds}", *others, *files]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
