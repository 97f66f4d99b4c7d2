"""Rules of the layout that import-linter's contracts cannot say."""

import ast
from pathlib import Path

import grimp
import pytest

from recollect.postgres.transactions import Session

CORE = Path(__file__).parents[3] / "shared" / "recollect"
ROOTS = [CORE.parents[1] / root for root in ("shared", "services", "workers", "infra")]
TESTS = CORE.parents[1] / "tests"
CAPABILITIES = sorted(".".join(store.parent.relative_to(CORE).parts) for store in CORE.rglob("store.py"))


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    roots = (
        "recollect",
        "recollect_http",
        "recollect_gateway",
        "recollect_operator",
        "recollect_workers",
        "recollect_cli",
        "recollect_local",
    )
    return grimp.build_graph(*roots)


def test_a_store_is_called_by_its_own_capability_only(imports: grimp.ImportGraph, subtests: pytest.Subtests) -> None:
    for capability in CAPABILITIES:
        with subtests.test(capability):
            importers = imports.find_modules_that_directly_import(f"recollect.{capability}.store")
            assert importers
            assert {importer for importer in importers if not importer.startswith(f"recollect.{capability}.")} == set()


def test_every_capability_has_the_same_files(subtests: pytest.Subtests) -> None:
    for capability in CAPABILITIES:
        with subtests.test(capability):
            present = {path.name for path in CORE.joinpath(*capability.split(".")).iterdir() if path.is_file()}
            assert present >= {"__init__.py", "model.py", "store.py", "queries.sql"}
            # `memory` is use cases of several capabilities, and has a module for each; `cells` has `Databases`.
            assert ("service.py" in present) == (capability not in ("cells", "memory"))


def test_only_stores_touch_the_connection() -> None:
    """SQL runs in stores and in `postgres`; use cases read as prose."""
    verbs = {name for name in vars(Session) if name.startswith(("fetch", "execute"))}
    offenders = [
        f"{path.relative_to(CORE)}:{node.lineno}"
        for path in CORE.rglob("*.py")
        if path.name not in ("store.py", "view.py") and path.parent.name not in ("platform", "postgres", "valkey")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in verbs
    ]
    assert offenders == []


def test_no_folder_has_the_name_of_a_package_that_we_use() -> None:
    folders = (path for root in ROOTS for path in root.rglob("*") if path.is_dir())
    names = {path.name for path in folders if "node_modules" not in path.parts}
    assert names.isdisjoint({"mcp", "redis", "arq", "utils", "common"})


@pytest.mark.parametrize("kind", ["unit", "integration"])
def test_the_folders_of_tests_are_those_of_the_code(kind: str) -> None:
    groups = {path.name for path in CORE.iterdir() if path.is_dir()}
    packages = {path.name.removeprefix("recollect_") for root in ROOTS for path in root.glob("recollect_*")}
    folders = {path.name for path in (TESTS / kind).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - groups - packages <= {"benchmarks", "project"}
    modules = {f"test_{path.name}" for path in CORE.glob("*.py")}
    assert {path.name for path in (TESTS / kind).glob("test_*.py")} <= modules
